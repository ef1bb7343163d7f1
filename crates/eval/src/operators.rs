//! Operators: arithmetic, comparison, logic, `//`, `++`, `+` and interpolation.

use crate::coerce::{Coercion, Pieces};
use crate::eval::at_hand;
use crate::frame::Frame;
use crate::{Machine, Stats, colored, show_type};
use firn_ir::{Addend, Binary, BinaryOp, Concat, Sum};
use firn_source::{Pos, Symbol};
use firn_value::{Attrs, Context, Error, ErrorKind, Expr, List, ListBuilder, Result, Str, Value};

/// Interpolations of at most so many parts are put together without collecting them first.
const MOST_PLAIN: usize = 8;

impl Machine {
    #[inline(never)]
    pub(crate) fn logic(&self, node: &'static Binary<Value>, frame: Frame<'_>, op: BinaryOp) -> Result<Value> {
        // The value of the left operand that decides, what the result is then, and where errors are said to be.
        let (decides, result, left_text, right_text) = match op {
            BinaryOp::And => (
                Value::FALSE,
                Value::FALSE,
                "in the left operand of the AND (&&) operator",
                "in the right operand of the AND (&&) operator",
            ),
            BinaryOp::Or => (
                Value::TRUE,
                Value::TRUE,
                "in the left operand of the OR (||) operator",
                "in the right operand of the OR (||) operator",
            ),
            _ => (
                Value::FALSE,
                Value::TRUE,
                "in the left operand of the IMPL (->) operator",
                "in the right operand of the IMPL (->) operator",
            ),
        };
        let left = self.eval(&node.left, frame);
        if Value::bool(self.as_bool(left, node.pos, left_text)?) == decides {
            return Ok(result);
        }
        let right = self.eval(&node.right, frame);
        Ok(Value::bool(self.as_bool(right, node.pos, right_text)?))
    }

    #[inline(never)]
    pub(crate) fn concat_two_lists(&self, node: &'static Binary<Value>, frame: Frame<'_>, _: BinaryOp) -> Result<Value> {
        let left = self.eval(&node.left, frame)?;
        let right = self.eval(&node.right, frame)?;
        self.concat_lists(&[left, right], node.pos, "while evaluating one of the elements to concatenate")
    }

    #[inline(never)]
    pub(crate) fn compare_equal(&self, node: &'static Binary<Value>, frame: Frame<'_>, op: BinaryOp) -> Result<Value> {
        if let Some(equal) = self.quick_comparison(op, node, frame) {
            return Ok(Value::bool(equal));
        }
        self.compare_equal_slow(node, frame, op)
    }

    #[inline(never)]
    fn compare_equal_slow(&self, node: &'static Binary<Value>, frame: Frame<'_>, op: BinaryOp) -> Result<Value> {
        let left = self.eval(&node.left, frame)?;
        let right = self.eval(&node.right, frame)?;
        let context = match op {
            BinaryOp::Eq => "while testing two values for equality",
            _ => "while testing two values for inequality",
        };
        // NIX: operands are compared as two cells, so a function is not even equal to itself here.
        let equal = self.equal_whnf(left, right, node.pos, context)?;
        Ok(Value::bool(equal == (op == BinaryOp::Eq)))
    }

    #[inline(never)]
    pub(crate) fn update(&self, node: &'static Binary<Value>, frame: Frame<'_>, _: BinaryOp) -> Result<Value> {
        // NIX: the right operand is evaluated first.
        let right = self.update_operand(&node.right, frame, node.operands[1], "in the right operand of the update (//) operator")?;
        let left = self.update_operand(&node.left, frame, node.operands[0], "in the left operand of the update (//) operator")?;
        Ok(self.update_attrs(left, right))
    }

    fn update_operand(&self, expr: &'static Expr, frame: Frame<'_>, pos: Pos, context: &'static str) -> Result<Attrs> {
        match self.eval(expr, frame) {
            Ok(value) => match value.as_attrs() {
                Some(set) => Ok(set),
                None => Err(self.force_attrs(value, Pos::NONE, context).expect_err("it is no set")),
            },
            // NIX: a nested `//` adds its own context, not this one.
            Err(error) if matches!(expr, Expr::Binary(BinaryOp::Update, _)) => Err(error),
            Err(error) => Err(error.trace(pos, context)),
        }
    }

    /// `left // right`.
    pub fn update_attrs(&self, left: Attrs, right: Attrs) -> Value {
        Stats::bump(&self.stats.updates);
        left.update(right)
    }

    /// All the lists' elements in one list.
    pub fn concat_lists(&self, lists: &[Value], pos: Pos, context: &'static str) -> Result<Value> {
        Stats::bump(&self.stats.list_concats);
        let (mut len, mut non_empty) = (0, None);
        for &list in lists {
            let list = self.force_list(list, pos, context)?;
            len += list.len();
            if !list.is_empty() {
                non_empty = Some(list);
            }
        }
        if let Some(only) = non_empty
            && only.len() == len
        {
            return Ok(only.value());
        }
        if let &[left, right] = lists {
            let left = self.force_list(left, pos, context)?;
            return Ok(left.append(self.force_list(right, pos, context)?));
        }
        let mut all = ListBuilder::new(len);
        for &list in lists {
            self.force_list(list, pos, context)?.iter().for_each(|v| all.push(v));
        }
        Ok(all.finish())
    }

    /// `left - right`.
    #[inline(never)]
    pub(crate) fn subtract(&self, node: &'static Binary<Value>, frame: Frame<'_>, _: BinaryOp) -> Result<Value> {
        // PERF: numbers in hand are the common case by far.
        if let Some(a) = self.cell(&node.left, frame)
            && let Some(b) = self.cell(&node.right, frame)
        {
            if let Some(difference) = Value::small_difference(a, b) {
                return Ok(difference);
            }
            if let (Some(a), Some(b)) = (at_hand(a), at_hand(b))
                && let Some(difference) = Value::small_difference(a, b)
            {
                return Ok(difference);
            }
        }
        self.arithmetic_expr(node, frame, BinaryOp::Sub)
    }

    #[inline(never)]
    pub(crate) fn arithmetic_expr(&self, node: &'static Binary<Value>, frame: Frame<'_>, op: BinaryOp) -> Result<Value> {
        let left = match self.eval(&node.left, frame) {
            Ok(left) => left,
            Err(error) => return Err(while_calling(error, op, node.pos)),
        };
        let right = match self.eval(&node.right, frame) {
            Ok(right) => right,
            Err(error) => return Err(while_calling(error, op, node.pos)),
        };
        let quick = match op {
            BinaryOp::Sub => Value::small_difference(left, right),
            BinaryOp::Mul => left.as_small_int().zip(right.as_small_int()).and_then(|(a, b)| a.checked_mul(b)).map(Value::int),
            _ => None,
        };
        match quick {
            Some(value) => Ok(value),
            None => self.arithmetic(op, left, right, Pos::NONE).map_err(|e| while_calling(e, op, node.pos)),
        }
    }

    /// `-`, `*`, `/` of two numbers, as the builtins `sub`, `mul`, `div` do it. The operands are forced.
    pub fn arithmetic(&self, op: BinaryOp, left: Value, right: Value, pos: Pos) -> Result<Value> {
        let (first, second) = match op {
            BinaryOp::Sub => ("while evaluating the first argument of the subtraction", "while evaluating the second argument of the subtraction"),
            BinaryOp::Mul => ("while evaluating the first argument of the multiplication", "while evaluating the second argument of the multiplication"),
            BinaryOp::Div => ("while evaluating the first operand of the division", "while evaluating the second operand of the division"),
            _ => ("while evaluating the first argument of the addition", "while evaluating the second argument of the addition"),
        };
        if op == BinaryOp::Div {
            let divisor = self.force_float(right, pos, second)?;
            if divisor == 0.0 {
                return Err(Error::new(ErrorKind::Eval, "division by zero").at(pos));
            }
        }
        if left.as_float().is_some() || right.as_float().is_some() {
            let (a, b) = (self.force_float(left, pos, first)?, self.force_float(right, pos, second)?);
            return Ok(Value::float(match op {
                BinaryOp::Sub => a - b,
                BinaryOp::Mul => a * b,
                BinaryOp::Div => a / b,
                _ => a + b,
            }));
        }
        let (a, b) = (self.force_int(left, pos, first)?, self.force_int(right, pos, second)?);
        let (result, verb, sign) = match op {
            BinaryOp::Sub => (a.checked_sub(b), "subtracting", "-"),
            BinaryOp::Mul => (a.checked_mul(b), "multiplying", "*"),
            BinaryOp::Div => (a.checked_div(b), "dividing", "/"),
            _ => (a.checked_add(b), "adding", "+"),
        };
        result.map(Value::int).ok_or_else(|| {
            let message = format!("integer overflow in {verb} {} {sign} {}", colored(a), colored(b));
            Error::new(ErrorKind::Eval, message).at(pos)
        })
    }

    #[inline(never)]
    pub(crate) fn less_expr(&self, node: &'static Binary<Value>, frame: Frame<'_>, op: BinaryOp) -> Result<Value> {
        if let Some(holds) = self.quick_comparison(op, node, frame) {
            return Ok(Value::bool(holds));
        }
        self.less_slow(node, frame, op)
    }

    #[inline(never)]
    fn less_slow(&self, node: &'static Binary<Value>, frame: Frame<'_>, op: BinaryOp) -> Result<Value> {
        let swapped = matches!(op, BinaryOp::Greater | BinaryOp::LessEq);
        let negated = matches!(op, BinaryOp::LessEq | BinaryOp::GreaterEq);
        let (first, second) = if swapped { (&node.right, &node.left) } else { (&node.left, &node.right) };
        let left = self.eval(first, frame);
        let right = match &left {
            Ok(_) => self.eval(second, frame),
            Err(_) => Ok(Value::NULL),
        };
        let less = match (left, right) {
            (Ok(left), Ok(right)) => {
                if let (Some(a), Some(b)) = (left.as_small_int(), right.as_small_int()) {
                    return Ok(Value::bool((a < b) != negated));
                }
                self.less_than(left, right, Pos::NONE, "")
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        match less {
            Ok(less) => Ok(Value::bool(less != negated)),
            Err(error) => {
                let error = while_calling(error, op, node.pos);
                // NIX: `<=` and `>=` negate the call.
                Err(if negated { error.trace(node.pos, "in the argument of the not operator") } else { error })
            }
        }
    }

    /// Whether one value is less than another, as `lessThan` and `sort` order them. Errors get the context, if any.
    pub fn less_than(&self, left: Value, right: Value, pos: Pos, context: &'static str) -> Result<bool> {
        let (left, right) = (self.force(left, pos)?, self.force(right, pos)?);
        match (left.as_int(), left.as_float(), right.as_int(), right.as_float()) {
            (Some(a), _, Some(b), _) => return Ok(a < b),
            (Some(a), _, _, Some(b)) => return Ok((a as f64) < b),
            (_, Some(a), Some(b), _) => return Ok(a < (b as f64)),
            (_, Some(a), _, Some(b)) => return Ok(a < b),
            _ => {}
        }
        if let (Some(a), Some(b)) = (left.as_str(), right.as_str()) {
            return Ok(a.bytes() < b.bytes());
        }
        if let (Some(a), Some(b)) = (left.as_path(), right.as_path()) {
            self.path_related(a, b);
            return Ok(a < b);
        }
        let result = match (left.as_list(), right.as_list()) {
            (Some(a), Some(b)) => self.with_stack(|| self.list_less_than(a, b, pos, context)),
            _ => Err(self.incomparable(left, right)),
        };
        result.map_err(|e| if context.is_empty() { e } else { e.trace(Pos::NONE, context) })
    }

    fn list_less_than(&self, a: List, b: List, pos: Pos, context: &'static str) -> Result<bool> {
        for (x, y) in a.iter().zip(b.iter()) {
            if !self.equal(x, y, pos, context)? {
                return self.less_than(x, y, pos, "while comparing two list elements");
            }
        }
        Ok(a.len() < b.len())
    }

    #[cold]
    fn incomparable(&self, left: Value, right: Value) -> Box<Error> {
        let (a, b) = (colored(show_type(left)), colored(show_type(right)));
        let (shown, other) = (self.show(left), self.show(right));
        let text = if left.get_type() == right.get_type() {
            let before = format!("cannot compare {a} with {b}; values of that type are incomparable (values are ");
            [before.as_bytes(), &shown, b" and ", &other, b")"].concat()
        } else {
            [format!("cannot compare {a} with {b}; values are ").as_bytes(), &shown, b" and ", &other].concat()
        };
        Error::new(ErrorKind::Eval, text)
    }

    /// `left + right`.
    #[inline(never)]
    pub(crate) fn add(&self, node: &'static Binary<Value>, frame: Frame<'_>, _: BinaryOp) -> Result<Value> {
        if let Some(a) = self.cell(&node.left, frame)
            && let Some(b) = self.cell(&node.right, frame)
        {
            if let Some(sum) = Value::small_sum(a, b) {
                return Ok(sum);
            }
            if let (Some(a), Some(b)) = (at_hand(a), at_hand(b))
                && let Some(sum) = Value::small_sum(a, b)
            {
                return Ok(sum);
            }
        }
        self.add_slow(node, frame)
    }

    #[inline(never)]
    fn add_slow(&self, node: &'static Binary<Value>, frame: Frame<'_>) -> Result<Value> {
        let left = self.eval(&node.left, frame)?;
        self.add_to(left, &node.right, node.pos, node.operands, frame)
    }

    /// `left + right` with the left operand in hand.
    #[inline(always)]
    fn add_to(&self, left: Value, right: &'static Expr, pos: Pos, operands: [Pos; 2], frame: Frame<'_>) -> Result<Value> {
        if left.as_small_int().is_some() {
            let right = self.eval(right, frame)?;
            return match Value::small_sum(left, right) {
                Some(sum) => Ok(sum),
                None => self.add_to_number(left, right, operands[1]),
            };
        }
        self.add_to_other(left, right, pos, operands, frame)
    }

    #[inline(never)]
    fn add_to_other(&self, left: Value, right: &'static Expr, pos: Pos, operands: [Pos; 2], frame: Frame<'_>) -> Result<Value> {
        if left.as_int().is_some() || left.as_float().is_some() {
            let right = self.eval(right, frame)?;
            return self.add_to_number(left, right, operands[1]);
        }
        if let Some(a) = left.as_str().and_then(Str::plain_bytes) {
            let right = self.eval(right, frame)?;
            if let Some(b) = right.as_str().and_then(Str::plain_bytes) {
                return Ok(Value::string_of([a, b].into_iter(), Context::EMPTY));
            }
            return self.add_values(left, right, pos, operands);
        }
        let mut pieces = Pieces::starting_with(left);
        self.add_piece(&mut pieces, left, operands[0], true)?;
        let right = self.eval(right, frame)?;
        self.add_piece(&mut pieces, right, operands[1], false)?;
        self.join(pieces, pos)
    }

    #[inline(never)]
    fn add_values(&self, left: Value, right: Value, pos: Pos, operands: [Pos; 2]) -> Result<Value> {
        let mut pieces = Pieces::starting_with(left);
        self.add_piece(&mut pieces, left, operands[0], true)?;
        self.add_piece(&mut pieces, right, operands[1], false)?;
        self.join(pieces, pos)
    }

    /// `a + b + c …`.
    #[inline]
    pub(crate) fn sum(&self, node: &'static Sum<Value>, frame: Frame<'_>) -> Result<Value> {
        // PERF: numbers in hand are added without saving anything.
        if let Some(first) = self.cell(&node.first, frame) {
            let mut sum = first;
            for (i, addend) in node.rest.iter().enumerate() {
                match self.cell(&addend.right, frame).and_then(|right| Value::small_sum(sum, right)) {
                    Some(next) => sum = next,
                    None => return self.sum_from(node, i, sum, frame),
                }
            }
            return Ok(sum);
        }
        self.sum_from(node, 0, Value::NULL, frame)
    }

    /// A sum from addend `done` on; `sum` is what those before gave, if there are any.
    #[inline(never)]
    fn sum_from(&self, node: &'static Sum<Value>, done: usize, sum: Value, frame: Frame<'_>) -> Result<Value> {
        let mut sum = if done == 0 { self.eval(&node.first, frame)? } else { sum };
        for (i, addend) in node.rest.iter().enumerate().skip(done) {
            if sum.as_str().is_some() {
                return self.append(sum, &node.rest[i..], frame);
            }
            sum = self.add_to(sum, &addend.right, addend.pos, addend.operands, frame)?;
        }
        Ok(sum)
    }

    /// Appends everything that is left of a sum to a string, which is then copied once.
    #[inline(never)]
    fn append(&self, string: Value, rest: &'static [Addend<Value>], frame: Frame<'_>) -> Result<Value> {
        let mut pieces = Pieces::starting_with(string);
        self.add_piece(&mut pieces, string, Pos::NONE, true)?;
        for addend in rest {
            let right = self.eval(&addend.right, frame)?;
            self.add_piece(&mut pieces, right, addend.operands[1], false)?;
        }
        Ok(pieces.string())
    }

    fn add_to_number(&self, left: Value, right: Value, pos: Pos) -> Result<Value> {
        match (left.as_int(), right.as_int(), right.as_float()) {
            (Some(a), Some(b), _) => a.checked_add(b).map(Value::int).ok_or_else(|| {
                let message = format!("integer overflow in adding {} + {}", colored(a), colored(b));
                Error::new(ErrorKind::Eval, message).at(pos)
            }),
            (Some(a), None, Some(b)) => Ok(Value::float(a as f64 + b)),
            (None, b, c) if b.is_some() || c.is_some() => {
                let a = left.as_float().unwrap_or_default();
                Ok(Value::float(a + c.unwrap_or_else(|| b.unwrap_or_default() as f64)))
            }
            (number, ..) => {
                let kind = if number.is_some() { "an integer" } else { "a float" };
                let message = format!("cannot add {} to {kind}", colored(show_type(right)));
                Err(Error::new(ErrorKind::Eval, message).at(pos))
            }
        }
    }

    fn add_piece(&self, pieces: &mut Pieces, value: Value, pos: Pos, first: bool) -> Result<()> {
        let how = Coercion { more: false, copy_to_store: pieces.copy, canonical_path: !first };
        self.coerce_into(pieces, value, pos, "while evaluating a path segment", how)
    }

    /// Interpolation.
    #[inline]
    pub(crate) fn concat(&self, node: &'static Concat<Value>, frame: Frame<'_>) -> Result<Value> {
        if let [(only, _)] = node.parts {
            let value = self.eval(only, frame)?;
            return if value.as_str().is_some() { Ok(value) } else { self.concat_any(node, &[], value, frame) };
        }
        let mut parts = [&b""[..]; MOST_PLAIN];
        match self.plain_parts(node, &mut parts, frame)? {
            Ok(()) => Ok(Value::string_of(parts[..node.parts.len()].iter().copied(), Context::EMPTY)),
            Err((done, value)) => self.concat_any(node, &parts[..done], value, frame),
        }
    }

    /// The name that an interpolation gives, if that is all of plain strings; otherwise its value.
    pub(crate) fn concat_name(&self, node: &'static Concat<Value>, frame: Frame<'_>) -> Result<std::result::Result<Symbol, Value>> {
        let mut parts = [&b""[..]; MOST_PLAIN];
        match self.plain_parts(node, &mut parts, frame)? {
            Ok(()) => Ok(Ok(Symbol::intern_parts(&parts[..node.parts.len()]))),
            Err((done, value)) => self.concat_any(node, &parts[..done], value, frame).map(Err),
        }
    }

    /// Evaluates the parts of an interpolation as long as they are strings without context, which most are. Stops at
    /// the first that is not, with its number and value.
    #[inline(always)]
    fn plain_parts(
        &self,
        node: &'static Concat<Value>,
        parts: &mut [&'static [u8]; MOST_PLAIN],
        frame: Frame<'_>,
    ) -> Result<std::result::Result<(), (usize, Value)>> {
        for (i, (expr, _)) in node.parts.iter().enumerate() {
            let value = self.eval(expr, frame)?;
            match value.as_str().and_then(Str::plain_bytes) {
                Some(bytes) if i < MOST_PLAIN => parts[i] = bytes,
                _ => return Ok(Err((i, value))),
            }
        }
        Ok(Ok(()))
    }

    /// Interpolation in general: `done` are the parts evaluated already, `value` is the next one's.
    #[inline(never)]
    fn concat_any(&self, node: &'static Concat<Value>, done: &[&'static [u8]], value: Value, frame: Frame<'_>) -> Result<Value> {
        let mut pieces = Pieces::with_capacity(node.parts.len());
        let mut rest = node.parts[done.len()..].iter();
        let first = done.is_empty() && !node.force_string;
        if first {
            if value.as_int().is_some() || value.as_float().is_some() {
                let mut sum = value;
                for (expr, pos) in rest.skip(1) {
                    let value = self.eval(expr, frame)?;
                    sum = self.add_to_number(sum, value, *pos)?;
                }
                return Ok(sum);
            }
            pieces = Pieces::starting_with(value);
        }
        done.iter().for_each(|part| pieces.push_bytes(part));
        if let Some((_, pos)) = rest.next() {
            self.add_piece(&mut pieces, value, *pos, first)?;
        }
        for (expr, pos) in rest {
            let value = self.eval(expr, frame)?;
            self.add_piece(&mut pieces, value, *pos, false)?;
        }
        self.join(pieces, node.pos)
    }

    fn join(&self, pieces: Pieces, pos: Pos) -> Result<Value> {
        if !pieces.path {
            return Ok(pieces.string());
        }
        if !pieces.context.is_empty() {
            let message = "a string that refers to a store path cannot be appended to a path";
            return Err(Error::new(ErrorKind::Eval, message).at(pos));
        }
        let path = firn_host::AbsPath::new(&pieces.bytes()).map_err(|e| self.host_error(e))?;
        self.path_related(pieces.first(), path.as_bytes());
        Ok(Value::path(path.as_bytes()))
    }
}

#[cold]
fn while_calling(error: Box<Error>, op: BinaryOp, pos: Pos) -> Box<Error> {
    let name = match op {
        BinaryOp::Sub => "sub",
        BinaryOp::Mul => "mul",
        BinaryOp::Div => "div",
        _ => "lessThan",
    };
    error.trace(pos, format!("while calling the '{}' builtin", colored(name)))
}
