//! Turns literals of the source into ready values while code is lowered.

use crate::{AttrsBuilder, Context, Function, ListBuilder, Production, Stamp, Thunk, Value};
use firn_ir::{Literals, Shape};
use firn_source::Symbol;

/// Makes the constants of lowered code.
#[derive(Clone, Copy, Debug, Default)]
pub struct Constants;

/// Makes a constant: it belongs to the code, whichever instance runs it first.
fn outside(make: impl FnOnce() -> Value) -> Value {
    let outer = Production::begin(Stamp::NONE);
    let value = make();
    Production::end(outer);
    value
}

impl Literals for Constants {
    type Value = Value;

    fn int(&mut self, n: i64) -> Value {
        outside(|| Value::int(n))
    }

    fn float(&mut self, x: f64) -> Value {
        outside(|| Value::float(x))
    }

    fn string(&mut self, text: &[u8]) -> Value {
        Value::string(text, Context::EMPTY)
    }

    fn path(&mut self, path: &[u8]) -> Value {
        Value::path(path)
    }

    fn list(&mut self, items: &[Value]) -> Value {
        outside(|| ListBuilder::of(items))
    }

    fn attrs(&mut self, shape: &'static Shape, values: &[Value]) -> Value {
        outside(|| AttrsBuilder::of_shape(shape, values.iter().copied()))
    }

    fn reshaped(&mut self, set: Value, shape: impl FnOnce(&'static Shape) -> &'static Shape) -> Value {
        let Some(set) = set.as_attrs() else { unreachable!("a set has a shape") };
        let shape = shape(set.flat().0);
        outside(|| AttrsBuilder::of_shape(shape, set.iter().map(|(_, _, cell)| cell)))
    }

    fn list_again(&mut self, list: Value) -> Value {
        let Some(list) = list.as_list() else { unreachable!("a list has items") };
        outside(|| ListBuilder::of(&list.iter().collect::<Vec<_>>()))
    }

    fn leaf(&mut self, value: Value, number: u32) -> Value {
        outside(|| Thunk::ready_labelled(value, number))
    }

    fn strict_args(&self, value: Value) -> (usize, u8) {
        match value.as_function() {
            Some(Function::Primop(primop)) => (primop.arity as usize, primop.strict),
            _ => (0, 0),
        }
    }

    fn builtin_in(&self, set: Value, name: Symbol) -> Option<Value> {
        let (value, _) = set.as_attrs()?.get_with_pos(name)?;
        matches!(value.as_function(), Some(Function::Primop(_))).then_some(value)
    }
}
