//! Names as string values: one per symbol, made on first use, so that `attrNames` and `mapAttrs` copy no bytes.

use crate::{Context, Value};
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
        let make = || Value::string(symbol.as_bytes(), Context::EMPTY);
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
        assert_eq!(Value::name(symbol).as_str().map(|s| s.bytes()), Some(&b"a-name-of-this-test"[..]));
    }
}
