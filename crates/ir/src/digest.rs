//! Code digests (L1.3, M5): what a body does, as 256 bits, the same on every machine and run.
//!
//! Slots, captures, attribute names, operators and constants are digested; positions, names of variables and the names
//! functions were bound to are not. Every suspended body and function is digested once and its digest stands for it in
//! the code around it (Merkle-fashion), so asking again costs a look-up. The captures of a body are part of its
//! creator's digest, not of its own: a body is closed over slots, whatever they hold.

use crate::expr::*;
use std::collections::HashMap;
use std::sync::Mutex;

/// A code digest.
pub type CodeDigest = [u8; 32];

/// Digests of bodies, remembered by address: code lives as long as the process and is never changed.
#[derive(Debug, Default)]
pub struct CodeDigests {
    known: Mutex<HashMap<usize, CodeDigest>>,
}

/// Digests a constant of the machine.
pub type ConstantDigest<'a, V> = &'a dyn Fn(V, &mut blake3::Hasher);

struct Writer<'a, V: 'static> {
    hasher: blake3::Hasher,
    digests: &'a CodeDigests,
    constant: ConstantDigest<'a, V>,
}

impl CodeDigests {
    /// The digest of a body's code.
    pub fn body<V: Copy>(&self, body: &'static Body<V>, constant: ConstantDigest<'_, V>) -> CodeDigest {
        if let Expr::Lazy(lazy) = body.expr {
            return self.body(lazy.body(), constant);
        }
        self.remember(std::ptr::from_ref(body).addr(), || {
            let mut writer = Writer { hasher: blake3::Hasher::new(), digests: self, constant };
            writer.number(u64::from(body.locals));
            writer.expr(body.code());
            *writer.hasher.finalize().as_bytes()
        })
    }

    /// The digest of a function's code.
    pub fn lambda<V: Copy>(&self, lambda: &'static Lambda<V>, constant: ConstantDigest<'_, V>) -> CodeDigest {
        self.remember(std::ptr::from_ref(lambda).addr(), || {
            let mut writer = Writer { hasher: blake3::Hasher::new(), digests: self, constant };
            let Lambda { params, pattern, body, name: _, strict: _, arity: _, few: _, marks: _ } = lambda;
            writer.number(params.len() as u64);
            writer.pattern(*pattern);
            writer.number(u64::from(body.locals));
            writer.expr(&body.expr);
            *writer.hasher.finalize().as_bytes()
        })
    }

    fn remember(&self, address: usize, make: impl FnOnce() -> CodeDigest) -> CodeDigest {
        if let Some(&known) = self.known.lock().unwrap_or_else(|e| e.into_inner()).get(&address) {
            return known;
        }
        let digest = stacker::maybe_grow(128 << 10, 4 << 20, make);
        self.known.lock().unwrap_or_else(|e| e.into_inner()).insert(address, digest);
        digest
    }
}

impl<V: Copy> Writer<'_, V> {
    fn tag(&mut self, tag: u8) {
        self.hasher.update(&[tag]);
    }

    fn number(&mut self, n: u64) {
        self.hasher.update(&n.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.hasher.update(bytes);
    }

    fn var(&mut self, var: Var) {
        self.number(u64::from(var.number()));
    }

    fn captured(&mut self, captures: &[Var], digest: CodeDigest) {
        self.number(captures.len() as u64);
        captures.iter().for_each(|&var| self.var(var));
        self.hasher.update(&digest);
    }

    fn pattern(&mut self, pattern: Option<&'static Pattern<V>>) {
        let Some(Pattern { formals, first, ellipsis, at: _, pos: _, plans: _ }) = pattern else { return self.tag(0) };
        self.tag(1 + u8::from(*ellipsis));
        self.number(u64::from(*first));
        // Formals are told apart by name; their slots follow the source.
        let mut sorted: Vec<(usize, &'static Formal<V>)> = formals.iter().enumerate().collect();
        sorted.sort_by_key(|(_, formal)| formal.name.as_bytes());
        self.number(sorted.len() as u64);
        for (slot, Formal { name, pos: _, default }) in sorted {
            self.bytes(name.as_bytes());
            self.number(slot as u64);
            self.optional(default.as_ref());
        }
    }

    fn optional(&mut self, expr: Option<&'static Expr<V>>) {
        match expr {
            None => self.tag(0),
            Some(expr) => {
                self.tag(1);
                self.expr(expr);
            }
        }
    }

    fn path(&mut self, path: &'static [AttrName<V>]) {
        self.number(path.len() as u64);
        for name in path {
            match name {
                AttrName::Static(name, _) => {
                    self.tag(0);
                    self.bytes(name.as_bytes());
                }
                AttrName::Dynamic(expr, _, _) => {
                    self.tag(1);
                    self.expr(expr);
                }
            }
        }
    }

    fn bindings(&mut self, bindings: &'static [Binding<V>]) {
        self.number(bindings.len() as u64);
        for Binding { slot, alone: _, value } in bindings {
            self.number(u64::from(*slot));
            self.expr(value);
        }
    }

    fn expr(&mut self, expr: &'static Expr<V>) {
        match expr {
            Expr::Const(value, _) => {
                self.tag(1);
                (self.constant)(*value, &mut self.hasher);
            }
            Expr::Local(slot, _) => {
                self.tag(2);
                self.number(u64::from(*slot));
            }
            Expr::Capture(index, _) => {
                self.tag(3);
                self.number(u64::from(*index));
            }
            Expr::Dynamic(Dynamic { name, pos: _, scopes }) => {
                self.tag(4);
                self.bytes(name.as_bytes());
                self.number(scopes.len() as u64);
                scopes.iter().for_each(|WithScope { var, pos: _, cache: _ }| self.var(*var));
            }
            Expr::SelectName(SelectName { base, name, pos: _, cache: _ }) => {
                self.tag(5);
                self.expr(base);
                self.bytes(name.as_bytes());
            }
            Expr::Select(Select { base, path, default, pos: _ }) => {
                self.tag(6);
                self.expr(base);
                self.path(path);
                self.optional(default.as_ref());
            }
            Expr::HasAttr(HasAttr { base, path, pos: _ }) => {
                self.tag(7);
                self.expr(base);
                self.path(path);
            }
            Expr::Attrs(node) => self.attrs(node),
            Expr::List(items) => {
                self.tag(9);
                self.number(items.len() as u64);
                items.iter().for_each(|item| self.expr(item));
            }
            Expr::Lambda(lambda) => {
                self.tag(10);
                let digest = self.digests.lambda(lambda, self.constant);
                self.captured(lambda.body.captures, digest);
            }
            Expr::Suspend(Suspend { body }) => {
                self.tag(11);
                let digest = self.digests.body(body, self.constant);
                self.captured(body.captures, digest);
            }
            Expr::Lazy(_) | Expr::Closed(_) => unreachable!("lazy and closed code is the whole of its body"),
            Expr::Deep(inner) => stacker::maybe_grow(128 << 10, 4 << 20, || self.expr(inner)),
            Expr::Watched(node) => self.expr(&node.inner),
            _ => self.control(expr),
        }
    }

    fn attrs(&mut self, node: &'static Attrs<V>) {
        let Attrs { shape, from, values, rec, dynamic, plain: _, guard: _, pos: _ } = node;
        self.tag(8);
        self.bindings(from);
        let names = |i: usize| shape.names()[i].as_bytes();
        self.number(shape.len() as u64);
        match rec {
            None => {
                self.tag(0);
                for &i in shape.by_name() {
                    self.bytes(names(i as usize));
                    self.expr(&values[i as usize]);
                }
            }
            Some(Rec { first, order, overrides }) => {
                self.tag(1);
                self.number(u64::from(*first));
                self.number(overrides.map_or(0, |index| u64::from(index) + 1));
                for &i in shape.by_name() {
                    self.bytes(names(i as usize));
                    self.number(u64::from(order[i as usize]));
                }
                values.iter().for_each(|value| self.expr(value));
            }
        }
        self.number(dynamic.len() as u64);
        for DynamicAttr { name, value, pos: _ } in *dynamic {
            self.expr(name);
            self.expr(value);
        }
    }

    fn control(&mut self, expr: &'static Expr<V>) {
        match expr {
            Expr::Call(Call { fun, args, pos: _ }) => {
                self.tag(12);
                self.expr(fun);
                self.number(args.len() as u64);
                args.iter().for_each(|arg| self.expr(arg));
            }
            Expr::Let(Let { bindings, early, body }) => {
                self.tag(13);
                self.bindings(bindings);
                self.bindings(early.as_slice());
                self.expr(body);
            }
            Expr::With(With { slot, scope, body }) => {
                self.tag(14);
                self.number(u64::from(*slot));
                self.expr(scope);
                self.expr(body);
            }
            Expr::If(If { cond, then, otherwise, pos: _ }) => {
                self.tag(15);
                [cond, then, otherwise].into_iter().for_each(|e| self.expr(e));
            }
            Expr::Assert(Assert { cond, body, text, pos: _ }) => {
                self.tag(16);
                self.expr(cond);
                self.expr(body);
                // The text appears in the error.
                self.bytes(text);
            }
            Expr::Not(Not { operand, pos: _ }) => {
                self.tag(17);
                self.expr(operand);
            }
            Expr::Binary(op, Binary { left, right, pos: _, operands: _ }) => {
                self.tag(18);
                self.tag(*op as u8);
                self.expr(left);
                self.expr(right);
            }
            Expr::Concat(Concat { force_string, parts, pos: _ }) => {
                self.tag(19);
                self.tag(u8::from(*force_string));
                self.number(parts.len() as u64);
                parts.iter().for_each(|(part, _)| self.expr(part));
            }
            Expr::Sum(Sum { first, rest }) => {
                self.tag(21);
                self.expr(first);
                self.number(rest.len() as u64);
                for Addend { right, pos: _, operands: _ } in *rest {
                    self.expr(right);
                }
            }
            // A position is observable through `__curPos`: such code is the same only at the same place.
            Expr::CurPos(pos) => {
                self.tag(20);
                match pos.resolve() {
                    None => self.tag(0),
                    Some(at) => {
                        self.bytes(format!("{:?}", at.file.origin()).as_bytes());
                        self.number(u64::from(at.line));
                        self.number(u64::from(at.column));
                    }
                }
            }
            _ => unreachable!("the other forms are digested by `expr`"),
        }
    }
}
