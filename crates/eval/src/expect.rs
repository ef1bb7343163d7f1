//! Forcing with an expected type: the value, or Nix's type error with the context it was needed in.

use crate::{Machine, colored, show_type};
use firn_source::Pos;
use firn_value::{Attrs, Error, ErrorKind, Function, List, Result, Str, Value};

impl Machine {
    #[cold]
    fn unexpected(&self, wanted: &str, found: Value) -> Box<Error> {
        let message = [
            format!("expected {wanted} but found {}: ", colored(show_type(found))).into_bytes(),
            self.show(found),
        ];
        Error::new(ErrorKind::Type, message.concat())
    }

    /// A set; NIX: context only on a type mismatch.
    #[inline]
    pub fn force_attrs(&self, value: Value, pos: Pos, context: &'static str) -> Result<Attrs> {
        let value = self.force(value, pos)?;
        match value.as_attrs() {
            Some(set) => Ok(set),
            None => Err(self.unexpected("a set", value).trace(pos, context)),
        }
    }

    /// A list; NIX: context only on a type mismatch.
    #[inline]
    pub fn force_list(&self, value: Value, pos: Pos, context: &'static str) -> Result<List> {
        let value = self.force(value, pos)?;
        match value.as_list() {
            Some(list) => Ok(list),
            None => Err(self.unexpected("a list", value).trace(pos, context)),
        }
    }

    /// An integer.
    #[inline]
    pub fn force_int(&self, value: Value, pos: Pos, context: &'static str) -> Result<i64> {
        let result = self.force(value, pos).and_then(|v| v.as_int().ok_or_else(|| self.unexpected("an integer", v).at(pos)));
        result.map_err(|e| e.trace(pos, context))
    }

    /// A float, or an integer as a float.
    pub fn force_float(&self, value: Value, pos: Pos, context: &'static str) -> Result<f64> {
        let result = self.force(value, pos).and_then(|v| match (v.as_int(), v.as_float()) {
            (Some(n), _) => Ok(n as f64),
            (None, Some(x)) => Ok(x),
            (None, None) => Err(self.unexpected("a float", v).at(pos)),
        });
        result.map_err(|e| e.trace(pos, context))
    }

    /// A Boolean.
    #[inline]
    pub fn force_bool(&self, value: Value, pos: Pos, context: &'static str) -> Result<bool> {
        self.as_bool(self.force(value, pos), pos, context)
    }

    /// A Boolean out of an evaluation; errors get the context either way.
    #[inline]
    pub(crate) fn as_bool(&self, result: Result<Value>, pos: Pos, context: &'static str) -> Result<bool> {
        match result {
            Ok(Value::TRUE) => Ok(true),
            Ok(Value::FALSE) => Ok(false),
            Ok(other) => Err(self.unexpected("a Boolean", other).at(pos).trace(pos, context)),
            Err(error) => Err(error.trace(pos, context)),
        }
    }

    /// A string.
    #[inline]
    pub fn force_string(&self, value: Value, pos: Pos, context: &'static str) -> Result<Str> {
        let result = self.force(value, pos).and_then(|v| v.as_str().ok_or_else(|| self.unexpected("a string", v).at(pos)));
        result.map_err(|e| e.trace(pos, context))
    }

    /// A string that must not refer to the store.
    pub fn force_string_no_context(&self, value: Value, pos: Pos, context: &'static str) -> Result<Str> {
        let string = self.force_string(value, pos, context)?;
        if string.context().is_empty() {
            return Ok(string);
        }
        match crate::context_elements(string.context()).first() {
            None => Ok(string),
            Some(element) => {
                let message = [
                    b"the string '".as_slice(),
                    &crate::color_bytes(string.bytes()),
                    b"' is not allowed to refer to a store path (such as '",
                    &crate::color_bytes(&element.display(self.store_dir())),
                    b"')",
                ];
                Err(Error::new(ErrorKind::Eval, message.concat()).trace(pos, context))
            }
        }
    }

    /// A function or functor.
    pub fn force_function(&self, value: Value, pos: Pos, context: &'static str) -> Result<Value> {
        let result = self.force(value, pos).and_then(|v| {
            let is_function = v.as_function().is_some() || v.as_attrs().is_some_and(|s| s.has(self.names().functor));
            if is_function { Ok(v) } else { Err(self.unexpected("a function", v).at(pos)) }
        });
        result.map_err(|e| e.trace(pos, context))
    }

    /// The function's pattern names with "has a default", for `functionArgs` and automatic calls; `None` when it has no pattern.
    pub fn formals(&self, function: Value) -> Option<&'static firn_ir::Pattern<Value>> {
        match function.as_function()? {
            Function::Closure(closure) => {
                let lambda = closure.lambda();
                if lambda.params.is_empty() { lambda.pattern } else { None }
            }
            Function::Partial(partial) => match partial.function().as_function()? {
                Function::Closure(closure) => {
                    let lambda = closure.lambda();
                    if lambda.params.len() == partial.args().len() { lambda.pattern } else { None }
                }
                _ => None,
            },
            Function::Primop(_) => None,
        }
    }
}
