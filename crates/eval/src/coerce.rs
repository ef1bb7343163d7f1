//! Coercion to strings and paths.

use crate::{Machine, colored, show_type};
use firn_host::AbsPath;
use firn_source::Pos;
use firn_value::{Context, ContextBuilder, Error, ErrorKind, Result, Str, Value};
use smallvec::SmallVec;

/// What a coercion to a string may do.
#[derive(Clone, Copy, Debug)]
pub struct Coercion {
    /// Also take numbers, Booleans, null and lists, as `toString` does.
    pub more: bool,
    /// Copy paths to the store and give their store paths.
    pub copy_to_store: bool,
    /// Give paths in canonical form.
    pub canonical_path: bool,
}

impl Coercion {
    /// As string interpolation coerces.
    pub const INTERPOLATE: Coercion = Coercion { more: false, copy_to_store: true, canonical_path: true };
    /// As `toString` coerces.
    pub const TO_STRING: Coercion = Coercion { more: true, copy_to_store: false, canonical_path: true };
    /// Strings and paths, nothing copied.
    pub const PLAIN: Coercion = Coercion { more: false, copy_to_store: false, canonical_path: true };
}

/// A string under construction: parts that are copied once at the end, and the union of their contexts.
#[derive(Debug)]
pub struct Pieces {
    pieces: SmallVec<[&'static [u8]; 6]>,
    /// The contexts of all parts together.
    pub context: ContextBuilder,
    /// The result is a path.
    pub(crate) path: bool,
    /// Paths among the parts are copied to the store.
    pub(crate) copy: bool,
    /// The part added last, if it is a string already.
    last: Option<Str>,
}

impl Pieces {
    pub(crate) fn new(path: bool) -> Pieces {
        Pieces { pieces: SmallVec::new(), context: ContextBuilder::default(), path, copy: !path, last: None }
    }

    /// What begins with `first`. NIX: only after a string are paths copied, not after a set that is coerced to one.
    pub(crate) fn starting_with(first: Value) -> Pieces {
        Pieces { copy: first.as_str().is_some(), ..Pieces::new(first.as_path().is_some()) }
    }

    /// An empty string with room for `capacity` parts.
    pub fn with_capacity(capacity: usize) -> Pieces {
        Pieces { pieces: SmallVec::with_capacity(capacity), ..Pieces::new(false) }
    }

    /// Appends bytes that have no context.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &'static [u8]) {
        self.last = None;
        self.pieces.push(bytes);
    }

    /// Appends a string.
    #[inline]
    fn push_string(&mut self, string: Str) {
        self.context.add(string.context());
        self.pieces.push(string.bytes());
        self.last = Some(string);
    }

    /// Appends bytes made for this string. They are laid out as a string at once, which is the result if nothing else
    /// is added.
    fn push_new(&mut self, bytes: &[u8], context: Context) {
        self.push_string(Value::string(bytes, context).as_str().expect("it was made a string"));
    }

    /// The first part.
    pub(crate) fn first(&self) -> &'static [u8] {
        self.pieces.first().copied().unwrap_or_default()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.pieces.concat()
    }

    /// The string with its context; a single part that is a string already is that string.
    pub fn string(self) -> Value {
        let context = self.context.finish();
        if let (1, Some(only)) = (self.pieces.len(), self.last)
            && only.context() == context
        {
            return only.value();
        }
        Value::string_of(self.pieces.iter().copied(), context)
    }
}

/// Decimal digits of an integer, without allocating.
fn write_int(n: i64, buffer: &mut [u8; 20]) -> &[u8] {
    let mut at = buffer.len();
    let mut rest = n.unsigned_abs();
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if n < 0 {
        at -= 1;
        buffer[at] = b'-';
    }
    &buffer[at..]
}

impl Machine {
    /// The value as a string with context.
    pub fn coerce_to_string(&self, value: Value, pos: Pos, context: &'static str, how: Coercion) -> Result<Value> {
        let value = self.force(value, pos)?;
        if value.as_str().is_some() {
            return Ok(value);
        }
        if let (true, Some(n)) = (how.more, value.as_small_int()) {
            self.shallower(self.deeper(pos)?);
            return Ok(Value::string(write_int(n, &mut [0; 20]), Context::EMPTY));
        }
        let mut pieces = Pieces::new(false);
        self.coerce_into(&mut pieces, value, pos, context, how)?;
        Ok(pieces.string())
    }

    /// Appends the value's string form.
    pub fn coerce_into(&self, out: &mut Pieces, value: Value, pos: Pos, context: &'static str, how: Coercion) -> Result<()> {
        let value = self.force(value, pos)?;
        if let Some(string) = value.as_str() {
            out.push_string(string);
            return Ok(());
        }
        if let Some(path) = value.as_path() {
            if how.copy_to_store {
                let (copied, element) = self.copy_path_to_store(path, pos)?;
                out.push_new(&copied, Context::single(element));
            } else {
                // What begins a path stays one.
                let stays = out.path && out.pieces.is_empty();
                out.push_bytes(if stays { path } else { self.path_text(path) });
            }
            return Ok(());
        }
        self.nested(pos, || self.coerce_other(out, value, pos, context, how))
    }

    fn coerce_other(&self, out: &mut Pieces, value: Value, pos: Pos, context: &'static str, how: Coercion) -> Result<()> {
        if let Some(set) = value.as_attrs() {
            if let Some(to_string) = set.get(self.names().to_string) {
                let result = self.call(to_string, &[value], pos)?;
                let how = Coercion { canonical_path: true, ..how };
                return self.coerce_into(out, result, pos, "while evaluating the result of the `__toString` attribute", how);
            }
            if let Some(out_path) = set.get(self.names().out_path) {
                return self.coerce_into(out, out_path, pos, context, how);
            }
        } else if how.more {
            if let Some(list) = value.as_list() {
                return self.coerce_list(out, list, pos, context, how);
            }
            match (value, value.as_int(), value.as_float()) {
                (Value::TRUE, ..) => out.push_bytes(b"1"),
                (Value::FALSE | Value::NULL, ..) => out.push_bytes(b""),
                (_, Some(n), _) => out.push_new(write_int(n, &mut [0; 20]), Context::EMPTY),
                (_, _, Some(x)) => {
                    let mut text = Vec::with_capacity(16);
                    firn_text::float::write_fixed(&mut text, x);
                    out.push_new(&text, Context::EMPTY);
                }
                _ => return Err(self.cannot_coerce(value, pos, context)),
            }
            return Ok(());
        }
        Err(self.cannot_coerce(value, pos, context))
    }

    fn coerce_list(&self, out: &mut Pieces, list: firn_value::List, pos: Pos, context: &'static str, how: Coercion) -> Result<()> {
        let len = list.len();
        for (i, item) in list.iter().enumerate() {
            self.coerce_into(out, item, pos, "while evaluating one element of the list", how)
                .map_err(|e| e.trace(pos, context))?;
            // NIX: an empty list inside gives no separator.
            let empty = self.force(item, pos)?.as_list().is_some_and(|l| l.is_empty());
            if i + 1 < len && !empty {
                out.push_bytes(b" ");
            }
        }
        Ok(())
    }

    #[cold]
    fn cannot_coerce(&self, value: Value, pos: Pos, context: &'static str) -> Box<Error> {
        let message =
            [format!("cannot coerce {} to a string: ", colored(show_type(value))).into_bytes(), self.show(value)];
        Error::new(ErrorKind::Type, message.concat()).trace(pos, context)
    }

    /// The value as an absolute path, and the context of the string it came from.
    pub fn coerce_to_path(&self, value: Value, pos: Pos, context: &'static str) -> Result<(AbsPath, Context)> {
        let value = self.force(value, pos).map_err(|e| e.trace(pos, context))?;
        if let Some(path) = value.as_path() {
            return Ok((AbsPath::new(path).map_err(|e| self.host_error(e))?, Context::EMPTY));
        }
        if let Some(to_string) = value.as_attrs().and_then(|set| set.get(self.names().to_string)) {
            let result = self.call(to_string, &[value], pos)?;
            return self.coerce_to_path(result, pos, context);
        }
        let string = self.coerce_to_string(value, pos, context, Coercion::PLAIN)?;
        let string = string.as_str().expect("coercion gives a string");
        if string.bytes().first() != Some(&b'/') {
            let message = [b"string '".as_slice(), &crate::color_bytes(string.bytes()), b"' doesn't represent an absolute path"];
            return Err(Error::new(ErrorKind::Eval, message.concat()).trace(pos, context));
        }
        let path = AbsPath::new(string.bytes()).map_err(|e| self.host_error(e))?;
        // The same text may lie in no tree elsewhere, or in another.
        self.path_text(path.as_bytes());
        Ok((path, string.context()))
    }

    /// An error of the outside world as an evaluation error.
    #[cold]
    pub fn host_error(&self, error: firn_host::HostError) -> Box<Error> {
        let mut message = Vec::new();
        for part in error.parts() {
            match part {
                firn_host::Part::Text(text) => message.extend_from_slice(text.as_bytes()),
                firn_host::Part::System(text) => {
                    message.extend_from_slice(b": ");
                    message.extend_from_slice(text.as_bytes());
                }
                firn_host::Part::Value(text) => message.extend_from_slice(&crate::errors::color_bytes(text.as_ref())),
            }
        }
        let kind = match error {
            firn_host::HostError::Forbidden(..) | firn_host::HostError::ForbiddenUri(_) => ErrorKind::Restricted,
            error if error.is_catchable() => ErrorKind::Thrown,
            _ => ErrorKind::Host,
        };
        Error::new(kind, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_in_full() {
        for n in [0, 1, -1, 10, -90, i64::MAX, i64::MIN] {
            assert_eq!(write_int(n, &mut [0; 20]), n.to_string().as_bytes());
        }
    }
}
