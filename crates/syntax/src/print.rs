//! The printer: a tree as `nix-instantiate --parse` writes it.
//!
//! Called by the command line and by the parser for names in messages. Sets print in name order, after their
//! `inherit`s, so the text does not depend on the order in which symbols were made.

use crate::ast::{Arith, Ast, AttrDef, AttrName, AttrValue, Attrs, AttrsId, BinOp, Expr, ExprId, Lambda, Text};
use std::io::Write;
use std::ops::Range;

/// Appends the whole tree to `out`, without a final line feed.
pub fn print(ast: &Ast, out: &mut Vec<u8>) {
    let mut printer = Printer { ast, out, depth: 0, sorted: Vec::new(), each_path: &mut |_, _| () };
    printer.expr(ast.root());
}

/// Appends one expression of a tree to `out`; tells where in `out` each path literal is that starts from the directory of the text.
pub fn print_expr(ast: &Ast, expr: ExprId, out: &mut Vec<u8>, mut each_path: impl FnMut(Range<usize>, &[u8])) {
    let mut each_path = |range, text| ast.relative_path(text).into_iter().for_each(|literal| each_path(Range::clone(&range), literal));
    let mut printer = Printer { ast, out, depth: 0, sorted: Vec::new(), each_path: &mut each_path };
    printer.expr(expr);
}

pub(crate) fn write_path(ast: &Ast, path: &[AttrName], out: &mut Vec<u8>) {
    let mut printer = Printer { ast, out, depth: 0, sorted: Vec::new(), each_path: &mut |_, _| () };
    printer.path(path);
}

struct Printer<'a> {
    ast: &'a Ast,
    out: &'a mut Vec<u8>,
    depth: u32,
    /// Stack of the names that are printed in order.
    sorted: Vec<Name>,
    /// Told of every path literal.
    each_path: &'a mut dyn FnMut(Range<usize>, Text),
}

/// A name among those that are sorted, with its first bytes in front for quick comparison.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    first: u64,
    name: &'static [u8],
    index: u32,
}

impl Name {
    #[inline]
    fn new(name: &'static [u8], index: usize) -> Name {
        let first = match name.first_chunk::<8>() {
            Some(eight) => u64::from_be_bytes(*eight),
            // Short names are filled up with zeros; the whole name decides between those that look the same.
            None => name.iter().rev().fold(0, |first, &byte| first >> 8 | u64::from(byte) << 56),
        };
        Name { first, name, index: index as u32 }
    }
}

impl Printer<'_> {
    #[inline(always)]
    fn put(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
    }

    fn expr(&mut self, id: ExprId) {
        self.depth += 1;
        if self.depth.is_multiple_of(16) {
            stacker::maybe_grow(128 << 10, 2 << 20, || self.node(id));
        } else {
            self.node(id);
        }
        self.depth -= 1;
    }

    fn node(&mut self, id: ExprId) {
        let ast = self.ast;
        match ast.expr(id) {
            Expr::Int(n) => self.int(n),
            Expr::Float(x) => write_float(x, self.out),
            Expr::String(text) => write_string(ast.text(text), self.out),
            Expr::Path(text) => {
                let start = self.out.len();
                ast.path_literal(text, self.out);
                (self.each_path)(start..self.out.len(), text);
            }
            // What was read as an identifier needs no quotes.
            Expr::Var { name, .. } => self.put(name.as_bytes()),
            Expr::CurPos(_) => self.put(b"__curPos"),
            Expr::Select { base, path, default, .. } => {
                self.put(b"(");
                self.expr(base);
                self.put(b").");
                self.path(ast.path(path));
                if let Some(default) = default {
                    self.around(b" or (", default.expr(), b")");
                }
            }
            Expr::HasAttr { base, path } => {
                self.around(b"((", base, b") ? ");
                self.path(ast.path(path));
                self.put(b")");
            }
            Expr::Attrs(set) => self.set(set),
            Expr::List(range) => {
                self.put(b"[ ");
                for &element in ast.exprs(range) {
                    self.around(b"(", element, b") ");
                }
                self.put(b"]");
            }
            Expr::Lambda(lambda) => self.lambda(ast.lambda(lambda)),
            Expr::Call { fun, args, .. } => {
                self.around(b"(", fun, b"");
                for &arg in ast.exprs(args) {
                    self.around(b" ", arg, b"");
                }
                self.put(b")");
            }
            Expr::Arith { op, lhs, rhs, .. } => self.arith(op, lhs, rhs),
            Expr::Binary { op, lhs, rhs, .. } => {
                self.around(b"(", lhs, op.text());
                self.around(b"", rhs, b")");
            }
            Expr::Not(operand) => self.around(b"(! ", operand, b")"),
            Expr::Let { attrs, body } => {
                self.put(b"(let ");
                self.bindings(ast.attrs(attrs));
                self.around(b"in ", body, b")");
            }
            Expr::With { attrs, body, .. } => {
                self.around(b"(with ", attrs, b"; ");
                self.around(b"", body, b")");
            }
            Expr::If { cond, then, other, .. } => {
                self.around(b"(if ", cond, b" then ");
                self.around(b"", then, b" else ");
                self.around(b"", other, b")");
            }
            Expr::Assert { cond, body, .. } => {
                self.around(b"assert ", cond, b"; ");
                self.expr(body);
            }
            Expr::Concat { parts, .. } => {
                let mut before: &[u8] = b"(";
                for part in ast.parts(parts) {
                    self.around(before, part.expr, b"");
                    before = b" + ";
                }
                self.put(b")");
            }
        }
    }

    // PERF: inlined, the brackets and separators are stored as constants instead of being copied as slices.
    #[inline(always)]
    fn around(&mut self, before: &[u8], expr: ExprId, after: &[u8]) {
        self.put(before);
        self.expr(expr);
        self.put(after);
    }

    fn int(&mut self, n: i64) {
        // Writing to a vector cannot fail.
        let _ = write!(self.out, "{n}");
    }

    /// The call that the operator stands for.
    fn arith(&mut self, op: Arith, lhs: ExprId, rhs: ExprId) {
        let negated = matches!(op, Arith::LessEq | Arith::GreaterEq);
        let swapped = matches!(op, Arith::Greater | Arith::LessEq);
        let (first, second) = if swapped { (rhs, lhs) } else { (lhs, rhs) };
        self.put(if negated { b"(! (" } else { b"(" });
        self.put(op.function());
        self.around(b" ", first, b" ");
        self.around(b"", second, if negated { b"))" } else { b")" });
    }

    fn path(&mut self, path: &[AttrName]) {
        for (i, name) in path.iter().enumerate() {
            if i > 0 {
                self.put(b".");
            }
            match *name {
                AttrName::Static(name) => write_identifier(name.as_bytes(), self.out),
                AttrName::Dynamic(expr) => self.around(b"\"${", expr, b"}\""),
            }
        }
    }

    fn set(&mut self, set: AttrsId) {
        let attrs = self.ast.attrs(set);
        self.put(if attrs.recursive { b"rec { " } else { b"{ " });
        self.bindings(attrs);
        self.put(b"}");
    }

    fn bindings(&mut self, attrs: &Attrs) {
        let ast = self.ast;
        let defs = ast.attr_defs(attrs.defs);
        let from = self.sorted.len();
        self.sorted.extend(defs.iter().enumerate().map(|(i, def)| Name::new(def.name.as_bytes(), i)));
        let to = self.sorted.len();
        self.sorted[from..].sort_unstable();
        self.inherited(from, to, defs);
        if !attrs.sources.is_empty() {
            self.inherited_from(from, to, defs, attrs);
        }
        for i in from..to {
            let Name { name, index, .. } = self.sorted[i];
            if let AttrValue::Plain(value) = defs[index as usize].value {
                write_identifier(name, self.out);
                self.around(b" = ", value, b"; ");
            }
        }
        self.sorted.truncate(from);
        for def in ast.dynamic_defs(attrs.dynamic) {
            self.around(b"\"${", def.name, b"}\" = ");
            self.around(b"", def.value, b"; ");
        }
    }

    /// The names inherited from around the set, if any.
    fn inherited(&mut self, from: usize, to: usize, defs: &[AttrDef]) {
        let mut before: &[u8] = b"inherit ";
        for i in from..to {
            let Name { name, index, .. } = self.sorted[i];
            if defs[index as usize].value == AttrValue::Inherited {
                self.put(before);
                write_identifier(name, self.out);
                before = b" ";
            }
        }
        if before == b" " {
            self.put(b"; ");
        }
    }

    /// The names inherited from expressions, one `inherit` for each that gives any.
    fn inherited_from(&mut self, from: usize, to: usize, defs: &[AttrDef], attrs: &Attrs) {
        let sources = self.ast.inherit_sources(attrs.sources);
        let mut names: Vec<(u32, &[u8])> = Vec::new();
        for Name { name, index, .. } in &self.sorted[from..to] {
            if let AttrValue::InheritedFrom(source) = defs[*index as usize].value {
                names.push((source, name));
            }
        }
        names.sort_by_key(|(source, _)| *source); // stable: names stay in order
        for group in names.chunk_by(|a, b| a.0 == b.0) {
            self.around(b"inherit (", sources[group[0].0 as usize].expr, b")");
            for (_, name) in group {
                self.put(b" ");
                write_identifier(name, self.out);
            }
            self.put(b"; ");
        }
    }

    fn lambda(&mut self, lambda: &Lambda) {
        let ast = self.ast;
        self.put(b"(");
        if let Some(formals) = lambda.formals {
            self.put(b"{ ");
            let listed = ast.formals(formals.list);
            let from = self.sorted.len();
            self.sorted.extend(listed.iter().enumerate().map(|(i, formal)| Name::new(formal.name.as_bytes(), i)));
            let to = self.sorted.len();
            self.sorted[from..].sort_unstable();
            for i in from..to {
                if i > from {
                    self.put(b", ");
                }
                let Name { name, index, .. } = self.sorted[i];
                self.put(name);
                if let Some(default) = listed[index as usize].default {
                    self.around(b" ? ", default, b"");
                }
            }
            self.sorted.truncate(from);
            if formals.ellipsis {
                self.put(if listed.is_empty() { b"..." } else { b", ..." });
            }
            self.put(if lambda.arg.is_some() { b" } @ " } else { b" }" });
        }
        if let Some(arg) = lambda.arg {
            self.put(arg.as_bytes());
        }
        self.around(b": ", lambda.body, b")");
    }
}

impl BinOp {
    /// The operator between its spaces.
    fn text(self) -> &'static [u8] {
        match self {
            BinOp::Eq => b" == ",
            BinOp::NEq => b" != ",
            BinOp::And => b" && ",
            BinOp::Or => b" || ",
            BinOp::Impl => b" -> ",
            BinOp::Update => b" // ",
            BinOp::ConcatLists => b" ++ ",
        }
    }
}

const LITERAL: u8 = 1;
const NAME: u8 = 2;

/// Which bytes stand for themselves in a string literal, and which may be in a name.
const LITERALS_AND_NAMES: [u8; 256] = {
    let mut table = [0; 256];
    let mut b = 0;
    while b < 256 {
        let c = b as u8;
        table[b] = match c {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | b'$' => 0,
            b'_' | b'\'' | b'-' => LITERAL | NAME,
            _ if c.is_ascii_alphanumeric() => LITERAL | NAME,
            _ => LITERAL,
        };
        b += 1;
    }
    table
};

/// How many bytes at the start of the text are of a class.
#[inline]
fn run(text: &[u8], class: u8) -> usize {
    static TABLE: [u8; 256] = LITERALS_AND_NAMES;
    let mut rest = text;
    while let Some((&[a, b, c, d], after)) = rest.split_first_chunk::<4>() {
        if TABLE[a as usize] & TABLE[b as usize] & TABLE[c as usize] & TABLE[d as usize] & class == 0 {
            break;
        }
        rest = after;
    }
    let more = rest.iter().take_while(|&&byte| TABLE[byte as usize] & class != 0).count();
    text.len() - rest.len() + more
}

/// Writes a name, quoted where it could not be read back as an identifier. NIX: `or` is not quoted.
pub(crate) fn write_identifier(name: &[u8], out: &mut Vec<u8>) {
    let plain = name.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_') && run(name, NAME) == name.len();
    let reserved = name.len() <= 7 && matches!(
        name,
        b"if" | b"then" | b"else" | b"assert" | b"with" | b"let" | b"in" | b"rec" | b"inherit"
    );
    if plain && !reserved {
        out.extend_from_slice(name);
    } else {
        write_string(name, out);
    }
}

/// Writes a string literal.
pub(crate) fn write_string(text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text;
    loop {
        let at = run(rest, LITERAL);
        out.extend_from_slice(&rest[..at]);
        let Some(&byte) = rest.get(at) else { break };
        if byte != b'$' || rest.get(at + 1) == Some(&b'{') {
            out.push(b'\\');
        }
        out.push(match byte {
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            other => other,
        });
        rest = &rest[at + 1..];
    }
    out.push(b'"');
}

/// Writes a float as a C++ stream does by default: six significant digits, `%g`.
pub(crate) fn write_float(x: f64, out: &mut Vec<u8>) {
    if x == 0.0 || !x.is_finite() {
        // Literals are finite and not negative.
        out.extend_from_slice(format!("{x}").as_bytes());
        return;
    }
    let scientific = format!("{x:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |s: &str| match s.contains('.') {
        true => s.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => s.to_owned(),
    };
    let text = if (-4..6).contains(&exponent) {
        trim(&format!("{x:.*}", (5 - exponent) as usize))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(digits), exponent.abs())
    };
    out.extend_from_slice(text.as_bytes());
}
