//! JSON: `fromJSON`, `toJSON`, and the output of `--json`.
//!
//! Values are read and written with nothing in between. Text that is not UTF-8 fails only after everything was
//! evaluated, because Nix makes a document first and prints it then.

use firn_eval::{
    Builtin, Coercion, Error, ErrorKind, Machine, Pieces, Result, Walk, color_bytes, colored, colored_name, evaluated_value,
    show_type,
};
use firn_source::{Pos, Symbol};
use firn_text::json::{self, Builder};
use firn_value::{AttrsBuilder, Context, ContextBuilder, Function, ListBuilder, Type, Value};
use std::borrow::Cow;

/// Appends a value as JSON and adds the contexts of its strings to `context`. Forces as it goes if `strict`, otherwise
/// something unevaluated is an error.
pub fn value_to_json(
    machine: &Machine,
    value: Value,
    strict: bool,
    pos: Pos,
    out: &mut Vec<u8>,
    context: &mut ContextBuilder,
    copy_to_store: bool,
) -> Result<()> {
    let mut writer = Writer { machine, strict, copy_to_store, out, context, not_utf8: None };
    writer.write(value, true, pos)?;
    match writer.not_utf8 {
        None => Ok(()),
        Some(why) => Err(Error::new(ErrorKind::Eval, format!("JSON serialization error: {}", colored(why)))),
    }
}

struct Writer<'a> {
    machine: &'a Machine,
    strict: bool,
    copy_to_store: bool,
    out: &'a mut Vec<u8>,
    context: &'a mut ContextBuilder,
    /// Why the first text that is not UTF-8 is not.
    not_utf8: Option<String>,
}

impl Writer<'_> {
    fn text(&mut self, text: &[u8]) {
        if let Err(why) = json::write_string(self.out, text) {
            self.not_utf8.get_or_insert(why);
        }
    }

    fn write(&mut self, cell: Value, top: bool, pos: Pos) -> Result<()> {
        self.machine.nested(pos, || self.write_here(cell, top, pos))
    }

    fn write_here(&mut self, cell: Value, top: bool, pos: Pos) -> Result<()> {
        let machine = self.machine;
        let value = if self.strict { machine.force(cell, pos)? } else { evaluated_value(machine, cell, top).unwrap_or(cell) };
        match value.get_type() {
            Some(Type::Null) => self.out.extend_from_slice(b"null"),
            Some(Type::Bool) => {
                self.out.extend_from_slice(if value == Value::TRUE { b"true" } else { b"false" });
            }
            Some(Type::Int) => self.out.extend_from_slice(value.as_int().unwrap_or_default().to_string().as_bytes()),
            Some(Type::Float) => firn_text::float::write_json(self.out, value.as_float().unwrap_or_default()),
            Some(Type::String) => {
                let string = value.as_str().expect("its type is string");
                self.context.add(string.context());
                self.text(string.bytes());
            }
            Some(Type::Path) => {
                let path = value.as_path().expect("its type is path");
                if self.copy_to_store {
                    let (copied, element) = machine.copy_path_to_store(path, pos)?;
                    self.context.add(Context::single(element));
                    self.text(&copied);
                } else {
                    self.text(machine.path_text(path));
                }
            }
            Some(Type::List) => return self.list(value, pos),
            Some(Type::Attrs) => return self.attrs(value, pos),
            Some(Type::Function) | None => {
                return Err(self.no_json(cell, value, top, pos));
            }
        }
        Ok(())
    }

    #[cold]
    fn no_json(&self, cell: Value, value: Value, top: bool, pos: Pos) -> Box<Error> {
        let fail =
            |what: &str, pos| Error::new(ErrorKind::Type, format!("cannot convert {} to JSON", colored(what))).at(pos);
        // A function where Nix would have a thunk.
        if !self.strict && cell.is_whnf() && evaluated_value(self.machine, cell, top).is_none() {
            return fail("a thunk", pos);
        }
        fail(&show_type(value), function_pos(value).unwrap_or(pos))
    }

    fn list(&mut self, value: Value, pos: Pos) -> Result<()> {
        self.out.push(b'[');
        if self.strict {
            self.machine.offer(value.as_list().into_iter().flat_map(|list| list.iter()), Walk::Json);
        }
        for (i, item) in value.as_list().into_iter().flat_map(|list| list.iter()).enumerate() {
            if i > 0 {
                self.out.push(b',');
            }
            self.write(item, false, pos)
                .map_err(|e| e.trace(pos, format!("while evaluating list element at index {}", colored(i))))?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn attrs(&mut self, value: Value, pos: Pos) -> Result<()> {
        let (machine, names) = (self.machine, self.machine.names());
        let Some(set) = value.as_attrs() else { return Ok(()) };
        if let Some(to_string) = set.get(names.to_string) {
            let result = machine.call(to_string, &[value], pos)?;
            let mut text = Pieces::with_capacity(1);
            let context = "while evaluating the result of the `__toString` attribute";
            machine.coerce_into(&mut text, result, pos, context, Coercion::PLAIN)?;
            let text = text.string().as_str().expect("coercion gives a string");
            self.context.add(text.context());
            self.text(text.bytes());
            return Ok(());
        }
        if let Some((out_path, pos)) = set.get_with_pos(names.out_path) {
            return self.write(out_path, false, pos);
        }
        self.out.push(b'{');
        if self.strict {
            self.machine.offer(set.iter_by_name().map(|(_, _, cell)| cell), Walk::Json);
        }
        for (i, (name, pos, cell)) in set.iter_by_name().enumerate() {
            if i > 0 {
                self.out.push(b',');
            }
            self.text(name.as_bytes());
            self.out.push(b':');
            self.write(cell, false, pos)
                .map_err(|e| e.trace(pos, format!("while evaluating attribute '{}'", colored_name(name))))?;
        }
        self.out.push(b'}');
        Ok(())
    }
}

/// Where a function begins.
fn function_pos(value: Value) -> Option<Pos> {
    match value.as_function()? {
        Function::Closure(closure) => Some(closure.lambda().pos_at(0)),
        Function::Primop(_) => None,
        Function::Partial(partial) => match partial.function().as_function()? {
            Function::Closure(closure) => Some(closure.lambda().pos_at(partial.args().len())),
            _ => None,
        },
    }
}

fn to_json(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let (mut out, mut context) = (Vec::new(), ContextBuilder::default());
    value_to_json(machine, args[0], true, pos, &mut out, &mut context, true)?;
    Ok(Value::string(&out, context.finish()))
}

/// Makes values of a document. Open arrays and objects are stretches at the ends of `items` and `keys`.
#[derive(Default)]
struct Values {
    items: Vec<Value>,
    keys: Vec<Symbol>,
    /// Where the open arrays and objects begin in `items` and `keys`.
    open: Vec<(usize, usize)>,
}

/// NUL bytes have no place in Nix strings.
pub(crate) fn refuse_nul(text: &[u8]) -> Result<()> {
    if !text.contains(&0) {
        return Ok(());
    }
    let mut shown = Vec::new();
    for &byte in text {
        if byte == 0 { shown.extend_from_slice("␀".as_bytes()) } else { shown.push(byte) }
    }
    let message = [
        &b"input string '"[..],
        &color_bytes(&shown),
        b"' cannot be represented as Nix string because it contains null bytes",
    ];
    Err(Error::new(ErrorKind::Eval, message.concat()))
}

impl Values {
    fn push(&mut self, value: Value) -> Result<()> {
        self.items.push(value);
        Ok(())
    }

    fn start(&mut self) -> Result<()> {
        self.open.push((self.items.len(), self.keys.len()));
        Ok(())
    }

    fn begin(&mut self) -> (usize, usize) {
        self.open.pop().expect("what ends has begun")
    }
}

impl Builder for Values {
    type Error = Box<Error>;

    fn null(&mut self) -> Result<()> {
        self.push(Value::NULL)
    }

    fn boolean(&mut self, value: bool) -> Result<()> {
        self.push(Value::bool(value))
    }

    fn integer(&mut self, value: i64) -> Result<()> {
        self.push(Value::int(value))
    }

    fn float(&mut self, value: f64) -> Result<()> {
        self.push(Value::float(value))
    }

    fn string(&mut self, value: Cow<'_, [u8]>) -> Result<()> {
        refuse_nul(&value)?;
        self.push(Value::string(&value, Context::EMPTY))
    }

    fn start_array(&mut self) -> Result<()> {
        self.start()
    }

    fn end_array(&mut self) -> Result<()> {
        let (from, _) = self.begin();
        let list = ListBuilder::of(&self.items[from..]);
        self.items.truncate(from);
        self.push(list)
    }

    fn start_object(&mut self) -> Result<()> {
        self.start()
    }

    fn key(&mut self, name: Cow<'_, [u8]>) -> Result<()> {
        refuse_nul(&name)?;
        self.keys.push(Symbol::intern(&name));
        Ok(())
    }

    fn end_object(&mut self) -> Result<()> {
        let (from, first_key) = self.begin();
        let mut set = AttrsBuilder::with_capacity(self.items.len() - from);
        for (&name, &value) in self.keys[first_key..].iter().zip(&self.items[from..]) {
            set.push(name, Pos::NONE, value);
        }
        self.items.truncate(from);
        self.keys.truncate(first_key);
        self.push(set.finish())
    }
}

fn from_json(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the first argument passed to builtins.fromJSON";
    let text = machine.force_string_no_context(args[0], pos, context)?;
    let mut values = Values::default();
    match json::parse(text.bytes(), &mut values) {
        Ok(()) => Ok(values.items.pop().expect("a document is a value")),
        Err(json::Error::Builder(error)) => Err(error),
        Err(error @ json::Error::OutOfRange(_)) => {
            Err(Error::new(ErrorKind::Eval, error.message().unwrap_or_default()))
        }
        Err(error @ json::Error::Syntax(_)) => {
            let message = color_bytes(&error.message().unwrap_or_default());
            Err(Error::new(ErrorKind::Eval, message).trace(pos, "while decoding a JSON string"))
        }
    }
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin { name: "fromJSON", arity: 1, strict: 1, run: from_json },
    Builtin { name: "toJSON", arity: 1, strict: 1, run: to_json },
];
