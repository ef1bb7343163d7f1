//! Printing values: the form of `nix-instantiate --eval` ([`print_ambiguous`]) and the form of `nix eval`, the REPL and
//! error messages ([`print_value`]).

use crate::force::place_of;
use crate::{Machine, Walk};
use firn_source::{Location, Origin};
use firn_text::literal;
use firn_value::{Attrs, Error, ErrorKind, Function, List, Result, ThunkState, Value};
use hashbrown::HashSet;

/// What to do with an error met while printing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// Print it in place.
    Print,
    /// Fail.
    Throw,
    /// Fail when the value itself fails, print it in place further inside.
    ThrowTopLevel,
}

/// How to print.
#[derive(Clone, Debug)]
pub struct PrintOptions {
    /// Colours.
    pub colors: bool,
    /// Force what is not evaluated.
    pub force: bool,
    /// Show derivations as `«derivation …»` (when forcing).
    pub derivation_paths: bool,
    /// Show a value met again as `«repeated»`.
    pub track_repeated: bool,
    /// Deepest nesting shown.
    pub max_depth: usize,
    /// Most attributes shown in all.
    pub max_attrs: usize,
    /// Most list items shown in all.
    pub max_items: usize,
    /// Longest string shown.
    pub max_string: usize,
    /// Indentation; 0 prints on one line.
    pub indent: usize,
    /// What to do with errors.
    pub errors: OnError,
}

impl Default for PrintOptions {
    fn default() -> PrintOptions {
        PrintOptions {
            colors: false,
            force: false,
            derivation_paths: false,
            track_repeated: true,
            max_depth: usize::MAX,
            max_attrs: usize::MAX,
            max_items: usize::MAX,
            max_string: usize::MAX,
            indent: 0,
            errors: OnError::Print,
        }
    }
}

impl PrintOptions {
    /// As values appear in error messages: coloured, cut short, nothing forced.
    pub fn in_errors() -> PrintOptions {
        PrintOptions { colors: true, max_depth: 10, max_attrs: 10, max_items: 10, max_string: 1024, ..Default::default() }
    }
}

const RED: &str = "\x1b[31;1m";
const GREEN: &str = "\x1b[32;1m";
const BLUE: &str = "\x1b[34;1m";
const MAGENTA: &str = "\x1b[35;1m";
const CYAN: &str = "\x1b[36;1m";
const FAINT: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// `path:line:column`.
pub fn show_location(location: &Location) -> String {
    let origin = match location.file.origin() {
        Origin::File(path) => String::from_utf8_lossy(path).into_owned(),
        Origin::Stdin => "«stdin»".to_owned(),
        Origin::Expression => "«string»".to_owned(),
        Origin::Internal(name) => (*name).to_owned(),
    };
    format!("{origin}:{}:{}", location.line, location.column)
}

/// Prints as `nix eval` and error messages do.
pub fn print_value(machine: &Machine, value: Value, options: &PrintOptions, out: &mut Vec<u8>) {
    // Errors that should surface are kept by `try_print_value`; here nothing can fail but the value printed in place.
    let _ = try_print_value(machine, value, options, out);
}

/// Prints as `nix eval` does; fails as the options say.
pub fn try_print_value(machine: &Machine, value: Value, options: &PrintOptions, out: &mut Vec<u8>) -> Result<()> {
    let mut printer = Printer { machine, options, out, seen: HashSet::new(), attrs: 0, items: 0, indent: 0 };
    printer.print(value, 0)
}

struct Printer<'a> {
    machine: &'a Machine,
    options: &'a PrintOptions,
    out: &'a mut Vec<u8>,
    seen: HashSet<u64>,
    attrs: usize,
    items: usize,
    indent: usize,
}

impl Printer<'_> {
    fn colored(&mut self, color: &str, text: &[u8]) {
        if self.options.colors {
            self.out.extend_from_slice(color.as_bytes());
            self.out.extend_from_slice(text);
            self.out.extend_from_slice(PLAIN.as_bytes());
        } else {
            self.out.extend_from_slice(text);
        }
    }

    fn space(&mut self, pretty: bool) {
        if pretty {
            self.out.push(b'\n');
            self.out.resize(self.out.len() + self.indent, b' ');
        } else {
            self.out.push(b' ');
        }
    }

    fn elided(&mut self, count: usize, single: &str, plural: &str) {
        let text = format!("«{count} {} elided»", if count == 1 { single } else { plural });
        self.colored(FAINT, text.as_bytes());
    }

    fn print(&mut self, cell: Value, depth: usize) -> Result<()> {
        if depth > self.machine.settings().max_call_depth as usize {
            return Err(Error::new(ErrorKind::StackOverflow, "stack overflow; max-call-depth exceeded"));
        }
        match self.print_inner(cell, depth) {
            Err(error) if !matches!(error.kind(), ErrorKind::StackOverflow | ErrorKind::Interrupted) => {
                let throws = match self.options.errors {
                    OnError::Throw => true,
                    OnError::ThrowTopLevel => depth == 0,
                    OnError::Print => false,
                };
                if throws {
                    return Err(error);
                }
                let message = firn_source::terminal::filter_escapes(error.message(), true);
                self.colored(RED, &["«error: ".as_bytes(), &message, "»".as_bytes()].concat());
                Ok(())
            }
            other => other,
        }
    }

    fn print_inner(&mut self, cell: Value, depth: usize) -> Result<()> {
        let value = if self.options.force {
            self.machine.force(cell, place_of(cell))?
        } else {
            match evaluated(self.machine, cell, depth == 0) {
                Ok(value) => value,
                Err(Unevaluated::Thunk) => {
                    self.colored(MAGENTA, "«thunk»".as_bytes());
                    return Ok(());
                }
                Err(Unevaluated::Running) => {
                    self.colored(RED, "«potential infinite recursion»".as_bytes());
                    return Ok(());
                }
            }
        };
        if let Some(set) = value.as_attrs() {
            return self.machine.with_stack(|| self.print_attrs(set, depth));
        }
        if let Some(list) = value.as_list() {
            return self.machine.with_stack(|| self.print_list(list, cell, depth));
        }
        if let Some(function) = value.as_function() {
            let text = show_function(self.machine, function);
            self.colored(BLUE, text.as_bytes());
        } else if let Some(string) = value.as_str() {
            self.print_string(string.bytes());
        } else if let Some(path) = value.as_path() {
            self.colored(GREEN, self.machine.path_text(path));
        } else {
            let text = show_scalar(value);
            self.colored(CYAN, text.as_bytes());
        }
        Ok(())
    }

    fn print_string(&mut self, bytes: &[u8]) {
        if self.options.colors {
            self.out.extend_from_slice(MAGENTA.as_bytes());
        }
        let elided = literal::write_string_start(self.out, bytes, self.options.max_string);
        if elided > 0 {
            self.out.push(b' ');
            self.elided(elided, "byte", "bytes");
            return;
        }
        if self.options.colors {
            self.out.extend_from_slice(PLAIN.as_bytes());
        }
    }

    fn repeated(&mut self, identity: u64) -> bool {
        if self.options.track_repeated && !self.seen.insert(identity) {
            self.colored(MAGENTA, "«repeated»".as_bytes());
            return true;
        }
        false
    }

    fn print_attrs(&mut self, set: Attrs, depth: usize) -> Result<()> {
        if self.repeated(set.value().identity()) {
            return Ok(());
        }
        if self.options.force && self.options.derivation_paths && self.machine.is_derivation(set)? {
            return self.print_derivation(set);
        }
        if depth >= self.options.max_depth {
            self.out.extend_from_slice(b"{ ... }");
            return Ok(());
        }
        self.indent += self.options.indent;
        self.out.push(b'{');
        let mut sorted: Vec<_> = set.iter_by_name().collect();
        if self.options.max_attrs != usize::MAX {
            sorted.sort_by_key(|(name, _, _)| !matches!(name.as_bytes(), b"type" | b"_type"));
        }
        if self.options.force && self.options.max_attrs == usize::MAX && self.options.max_depth == usize::MAX {
            self.machine.offer(sorted.iter().map(|(_, _, cell)| *cell), Walk::Print);
        }
        let pretty = self.is_pretty(&sorted.iter().map(|e| e.2).collect::<Vec<_>>())?;
        for (shown, (name, _, cell)) in sorted.iter().enumerate() {
            self.space(pretty);
            if self.attrs >= self.options.max_attrs {
                self.elided(sorted.len() - shown, "attribute", "attributes");
                break;
            }
            literal::write_name(self.out, name.as_bytes());
            self.out.extend_from_slice(b" = ");
            self.print(*cell, depth + 1)?;
            self.out.push(b';');
            self.attrs += 1;
        }
        self.indent -= self.options.indent;
        self.space(pretty);
        self.out.push(b'}');
        Ok(())
    }

    fn print_derivation(&mut self, set: Attrs) -> Result<()> {
        let mut text = "«derivation".as_bytes().to_vec();
        if let Some((cell, pos)) = set.get_with_pos(self.machine.names().drv_path) {
            let path = self.machine.coerce_to_string(
                cell,
                pos,
                "while evaluating the drvPath of a derivation",
                crate::Coercion::PLAIN,
            )?;
            text.push(b' ');
            text.extend_from_slice(path.as_str().map_or(&[], |s| s.bytes()));
        }
        text.extend_from_slice("»".as_bytes());
        self.colored(GREEN, &text);
        Ok(())
    }

    fn is_pretty(&self, cells: &[Value]) -> Result<bool> {
        if self.options.indent == 0 || cells.is_empty() {
            return Ok(false);
        }
        if cells.len() > 1 {
            return Ok(true);
        }
        let value = self.machine.force(cells[0], place_of(cells[0]))?;
        Ok(value.as_attrs().is_some() || value.as_list().is_some())
    }

    fn print_list(&mut self, list: List, cell: Value, depth: usize) -> Result<()> {
        // NIX: lists are told apart by cell, sets by content.
        if !list.is_empty() && self.repeated(cell.identity()) {
            return Ok(());
        }
        if depth >= self.options.max_depth {
            self.out.extend_from_slice(b"[ ... ]");
            return Ok(());
        }
        self.indent += self.options.indent;
        self.out.push(b'[');
        if self.options.force && self.options.max_items == usize::MAX && self.options.max_depth == usize::MAX {
            self.machine.offer(list.iter(), Walk::Print);
        }
        let pretty = self.is_pretty(&list.iter().take(2).collect::<Vec<_>>())?;
        for (shown, item) in list.iter().enumerate() {
            self.space(pretty);
            if self.items >= self.options.max_items {
                self.elided(list.len() - shown, "item", "items");
                break;
            }
            self.print(item, depth + 1)?;
            self.items += 1;
        }
        self.indent -= self.options.indent;
        self.space(pretty);
        self.out.push(b']');
        Ok(())
    }
}

enum Unevaluated {
    Thunk,
    Running,
}

/// The value of a cell that Nix would show as evaluated; `top` says that this very cell was forced.
pub fn evaluated_value(machine: &Machine, cell: Value, top: bool) -> Option<Value> {
    evaluated(machine, cell, top).ok()
}

fn evaluated(machine: &Machine, cell: Value, top: bool) -> std::result::Result<Value, Unevaluated> {
    if let Some(thunk) = cell.as_thunk() {
        let unevaluated = match thunk.state() {
            ThunkState::Forced(value) => return Ok(value),
            ThunkState::Noisy(value, label) | ThunkState::Labelled(value, label) => {
                firn_memo::kept::labels::take(label);
                return Ok(value);
            }
            ThunkState::Claimed(_) => Unevaluated::Running,
            ThunkState::Suspended if machine.is_file_of_position(thunk) => {
                return machine.force(cell, firn_source::Pos::NONE).map_err(|_| Unevaluated::Thunk);
            }
            ThunkState::Suspended | ThunkState::Failed(..) | ThunkState::Ahead(..) => Unevaluated::Thunk,
        };
        firn_memo::doubt::unevaluated_shown();
        // What others evaluated before shows: that is nothing to be kept.
        if firn_value::Production::current().is_marked() {
            firn_memo::kept::labels::print();
        }
        return Err(unevaluated);
    }
    match cell.as_function() {
        Some(Function::Closure(closure)) if closure.is_delayed() && !top => {
            firn_memo::doubt::function_shown();
            Err(Unevaluated::Thunk)
        }
        _ => Ok(cell),
    }
}

fn show_scalar(value: Value) -> String {
    match (value, value.as_int(), value.as_float()) {
        (Value::TRUE, ..) => "true".to_owned(),
        (Value::FALSE, ..) => "false".to_owned(),
        (_, Some(n), _) => n.to_string(),
        (_, _, Some(x)) => {
            let mut text = Vec::with_capacity(16);
            firn_text::float::write_general(&mut text, x);
            text.into_iter().map(char::from).collect()
        }
        _ => "null".to_owned(),
    }
}

fn show_function(machine: &Machine, function: Function) -> String {
    let closure = |closure: firn_value::Closure, done: usize| {
        let lambda = closure.lambda();
        if let Some(firn_source::Origin::File(path)) = lambda.pos_at(done).file_offset().map(|(file, _)| file.origin()) {
            machine.path_text(path);
            machine.see_position(lambda.pos_at(done));
        }
        let name = lambda.name.map(|n| format!(" {n}")).unwrap_or_default();
        let place = lambda.pos_at(done).resolve().map_or_else(|| "«none»:0".to_owned(), |l| show_location(&l));
        format!("«lambda{name} @ {place}»")
    };
    match function {
        Function::Closure(c) => closure(c, 0),
        Function::Primop(primop) => format!("«primop {}»", primop.name),
        Function::Partial(partial) => match partial.function().as_function() {
            Some(Function::Primop(primop)) => format!("«partially applied primop {}»", primop.name),
            Some(Function::Closure(c)) => closure(c, partial.args().len()),
            _ => "«partially applied primop»".to_owned(),
        },
    }
}

/// Prints as `nix-instantiate --eval` does; evaluates nothing. `forced` says that everything was forced before.
pub fn print_ambiguous(machine: &Machine, value: Value, forced: bool, out: &mut Vec<u8>) {
    let mut seen = HashSet::new();
    ambiguous(machine, value, forced, true, &mut seen, out);
}

fn ambiguous(machine: &Machine, cell: Value, forced: bool, top: bool, seen: &mut HashSet<u64>, out: &mut Vec<u8>) {
    let value = match evaluated(machine, cell, top || forced) {
        Ok(value) => value,
        Err(Unevaluated::Thunk) => return out.extend_from_slice(b"<CODE>"),
        Err(Unevaluated::Running) => return out.extend_from_slice("«potential infinite recursion»".as_bytes()),
    };
    if let Some(set) = value.as_attrs() {
        if !set.is_empty() && !seen.insert(value.identity()) {
            return out.extend_from_slice("«repeated»".as_bytes());
        }
        out.extend_from_slice(b"{ ");
        for (name, _, cell) in set.iter_by_name() {
            literal::write_name(out, name.as_bytes());
            out.extend_from_slice(b" = ");
            stacker::maybe_grow(192 << 10, 16 << 20, || ambiguous(machine, cell, forced, false, seen, out));
            out.extend_from_slice(b"; ");
        }
        out.push(b'}');
    } else if let Some(list) = value.as_list() {
        if !list.is_empty() && !seen.insert(cell.identity()) {
            return out.extend_from_slice("«repeated»".as_bytes());
        }
        out.extend_from_slice(b"[ ");
        for item in list.iter() {
            stacker::maybe_grow(192 << 10, 16 << 20, || ambiguous(machine, item, forced, false, seen, out));
            out.push(b' ');
        }
        out.push(b']');
    } else if let Some(function) = value.as_function() {
        let text: &[u8] = match function {
            Function::Closure(_) => b"<LAMBDA>",
            Function::Primop(_) => b"<PRIMOP>",
            Function::Partial(partial) => match partial.function().as_function() {
                Some(Function::Closure(_)) => b"<LAMBDA>",
                _ => b"<PRIMOP-APP>",
            },
        };
        out.extend_from_slice(text);
    } else if let Some(string) = value.as_str() {
        literal::write_string(out, string.bytes());
    } else if let Some(path) = value.as_path() {
        out.extend_from_slice(machine.path_text(path));
    } else {
        out.extend_from_slice(show_scalar(value).as_bytes());
    }
}

impl Machine {
    /// Forces a value and everything in it.
    pub fn force_deep(&self, value: Value) -> Result<()> {
        let mut seen = HashSet::new();
        self.force_all(value, &mut seen)
    }

    fn force_all(&self, cell: Value, seen: &mut HashSet<u64>) -> Result<()> {
        let pos = place_of(cell);
        self.nested(pos, || self.force_parts(cell, pos, seen))
    }

    fn force_parts(&self, cell: Value, pos: firn_source::Pos, seen: &mut HashSet<u64>) -> Result<()> {
        let is_atom = cell.is_whnf() && cell.as_attrs().is_none() && cell.as_list().is_none();
        if is_atom || !seen.insert(cell.identity()) {
            return Ok(());
        }
        let value = self.force(cell, pos)?;
        if let Some(set) = value.as_attrs() {
            self.offer(set.iter().map(|(_, _, cell)| cell), Walk::Strict);
            for (name, pos, cell) in set.iter() {
                self.force_all(cell, seen)
                    .map_err(|e| e.trace(pos, format!("while evaluating the attribute '{}'", crate::colored_name(name))))?;
            }
        } else if let Some(list) = value.as_list() {
            self.offer(list.iter(), Walk::Strict);
            for (i, item) in list.iter().enumerate() {
                self.force_all(item, seen).map_err(|e| {
                    e.trace(firn_source::Pos::NONE, format!("while evaluating list element at index {}", crate::colored(i)))
                })?;
            }
        }
        Ok(())
    }
}
