//! Names as string values: one per symbol, made on first use, so that `attrNames` and `mapAttrs` copy no bytes.

use crate::Value;
use firn_source::Symbol;
use std::sync::OnceLock;

const CHUNK_BITS: u32 = 12;
const CHUNK: usize = 1 << CHUNK_BITS;
const CHUNKS: usize = 1 << 14;

type Chunk = Box<[OnceLock<Value>]>;

/// String values by symbol number, in chunks that never move.
static STRINGS: [OnceLock<Chunk>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];

impl Value {
    /// The name as a string without context.
    #[inline]
    pub fn name(symbol: Symbol) -> Value {
        let make = || Value::named(symbol);
        let Some(chunk) = STRINGS.get((symbol.id() >> CHUNK_BITS) as usize) else { return make() };
        let chunk = chunk.get_or_init(|| (0..CHUNK).map(|_| OnceLock::new()).collect());
        *chunk[symbol.id() as usize & (CHUNK - 1)].get_or_init(make)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_string() {
        let symbol = Symbol::from("a-name-of-this-test");
        assert_eq!(Value::name(symbol), Value::name(symbol));
        let string = Value::name(symbol).as_str().expect("a string");
        assert_eq!((string.bytes(), string.symbol()), (&b"a-name-of-this-test"[..], symbol));
        assert!(string.context().is_empty() && string.plain_bytes().is_some());
        let part = string.slice(2..6, crate::Context::EMPTY).as_str().expect("a string");
        assert_eq!((part.bytes(), part.symbol()), (&b"name"[..], Symbol::from("name")));
    }
}
