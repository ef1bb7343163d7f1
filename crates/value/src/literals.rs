//! Turns literals of the source into ready values while code is lowered.

use crate::{AttrsBuilder, Context, Function, ListBuilder, Value};
use firn_ir::{Literals, Shape};

/// Makes the constants of lowered code.
#[derive(Clone, Copy, Debug, Default)]
pub struct Constants;

impl Literals for Constants {
    type Value = Value;

    fn int(&mut self, n: i64) -> Value {
        Value::int(n)
    }

    fn float(&mut self, x: f64) -> Value {
        Value::float(x)
    }

    fn string(&mut self, text: &[u8]) -> Value {
        Value::string(text, Context::EMPTY)
    }

    fn path(&mut self, path: &[u8]) -> Value {
        Value::path(path)
    }

    fn list(&mut self, items: &[Value]) -> Value {
        let mut list = ListBuilder::new(items.len());
        for &item in items {
            list.push(item);
        }
        list.finish()
    }

    fn attrs(&mut self, shape: &'static Shape, values: &[Value]) -> Value {
        AttrsBuilder::of_shape(shape, values.iter().copied())
    }

    fn strict_args(&self, value: Value) -> (usize, u8) {
        match value.as_function() {
            Some(Function::Primop(primop)) => (primop.arity as usize, primop.strict),
            _ => (0, 0),
        }
    }
}
