//! Equality. NIX: cells are compared by identity first, so a function equals itself exactly when both sides are the
//! same cell (M7).

use crate::{Machine, colored, show_type};
use firn_source::Pos;
use firn_value::{Attrs, Error, ErrorKind, Result, Slot, Type, Value};

impl Machine {
    /// Whether two cells hold equal values.
    pub fn equal(&self, left: Value, right: Value, pos: Pos, context: &'static str) -> Result<bool> {
        let (a, b) = (self.force(left, pos)?, self.force(right, pos)?);
        if left == right {
            return Ok(true);
        }
        self.equal_whnf(a, b, pos, context)
    }

    /// Whether two evaluated values are equal, taken as different cells.
    pub(crate) fn equal_whnf(&self, a: Value, b: Value, pos: Pos, context: &'static str) -> Result<bool> {
        if let (Some(x), Some(y)) = (a.as_small_int(), b.as_small_int()) {
            return Ok(x == y);
        }
        if let (Some(x), Some(y)) = (a.as_str(), b.as_str()) {
            return Ok(x.bytes() == y.bytes());
        }
        match (a.as_int(), a.as_float(), b.as_int(), b.as_float()) {
            (Some(x), _, Some(y), _) => return Ok(x == y),
            (Some(x), _, _, Some(y)) => return Ok(x as f64 == y),
            (_, Some(x), Some(y), _) => return Ok(x == y as f64),
            (_, Some(x), _, Some(y)) => return Ok(x == y),
            _ => {}
        }
        let kind = a.get_type();
        if kind != b.get_type() {
            return Ok(false);
        }
        match kind {
            Some(Type::List | Type::Attrs) => {
                let depth = self.deeper(pos)?;
                let equal = self.with_stack(|| {
                    self.equal_containers(a, b, pos, context)
                });
                self.shallower(depth);
                equal
            }
            Some(Type::Path) => {
                self.path_related(a.as_path().unwrap_or_default(), b.as_path().unwrap_or_default());
                Ok(a.as_path() == b.as_path())
            }
            Some(Type::Function) => Ok(false),
            _ => Ok(a == b),
        }
    }

    fn equal_containers(&self, a: Value, b: Value, pos: Pos, context: &'static str) -> Result<bool> {
        if let (Some(x), Some(y)) = (a.as_list(), b.as_list()) {
            if x.len() != y.len() {
                return Ok(false);
            }
            return self.equal_cells(x.slots(), y.slots(), pos, context);
        }
        let (Some(x), Some(y)) = (a.as_attrs(), b.as_attrs()) else { return Ok(false) };
        if let Some((x, y)) = self.derivation_out_paths(x, y)? {
            return self.equal(x, y, pos, context);
        }
        if x.len() != y.len() {
            return Ok(false);
        }
        let ((shape, cells), (other, others)) = (x.flat(), y.flat());
        // NIX: names are compared one by one, so what comes before the first that differs is evaluated.
        let alike = match std::ptr::eq(shape, other) {
            true => shape.len(),
            false => shape.names().iter().zip(other.names()).take_while(|(name, other)| name == other).count(),
        };
        Ok(self.equal_cells(&cells[..alike], &others[..alike], pos, context)? && alike == shape.len())
    }

    fn equal_cells(&self, left: &[Slot], right: &[Slot], pos: Pos, context: &'static str) -> Result<bool> {
        for (left, right) in left.iter().zip(right) {
            let (left, right) = (left.get(), right.get());
            // PERF: platforms are compared with platforms that are made of the same cells.
            let known = || left.as_thunk().is_none_or(|thunk| thunk.forced().is_some());
            if !(left == right && known()) && !self.equal(left, right, pos, context)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The `outPath`s to compare when both sets are derivations.
    fn derivation_out_paths(&self, x: Attrs, y: Attrs) -> Result<Option<(Value, Value)>> {
        if !self.is_derivation(x)? || !self.is_derivation(y)? {
            return Ok(None);
        }
        let name = self.names().out_path;
        Ok(x.get(name).zip(y.get(name)))
    }

    /// Whether the set has `type = "derivation"`.
    pub fn is_derivation(&self, set: Attrs) -> Result<bool> {
        match set.get_with_pos(self.names().type_) {
            None => Ok(false),
            Some((cell, pos)) => Ok(self.force(cell, pos)?.as_str().is_some_and(|s| s.bytes() == b"derivation")),
        }
    }

    /// For a failed `assert a == b`: the error that says where they differ.
    pub(crate) fn assert_equal(&self, left: Value, right: Value, pos: Pos) -> Result<()> {
        let depth = self.deeper(pos)?;
        let (a, b) = (self.force(left, pos)?, self.force(right, pos)?);
        let result = if left == right && !left.is_whnf() { Ok(()) } else { self.assert_equal_values(a, b, pos) };
        self.shallower(depth);
        result
    }

    fn assert_equal_cells(&self, left: Value, right: Value, pos: Pos) -> Result<()> {
        let (a, b) = (self.force(left, pos)?, self.force(right, pos)?);
        if left == right {
            return Ok(());
        }
        let depth = self.deeper(pos)?;
        let result = self.assert_equal_values(a, b, pos);
        self.shallower(depth);
        result
    }

    fn assert_equal_values(&self, a: Value, b: Value, pos: Pos) -> Result<()> {
        let shown = |v| String::from_utf8_lossy(&self.show(v)).into_owned();
        let number = |v: Value| v.as_int().is_some() || v.as_float().is_some();
        let types = (a.get_type(), b.get_type());
        let differ = |text: String| Err(Error::new(ErrorKind::Assertion, text));
        if types.0 != types.1 {
            if number(a) && number(b) {
                if self.equal_whnf(a, b, pos, "in an equality assertion")? {
                    return Ok(());
                }
                return differ(format!(
                    "{} with value '{}' is not equal to {} with value '{}'",
                    colored(show_type(a)), shown(a), colored(show_type(b)), shown(b)
                ));
            }
            return differ(format!(
                "{} of value '{}' is not equal to {} of value '{}'",
                colored(show_type(a)), shown(a), colored(show_type(b)), shown(b)
            ));
        }
        match types.0 {
            Some(Type::List) => self.assert_equal_lists(a, b, pos),
            Some(Type::Attrs) => self.assert_equal_sets(a, b, pos),
            Some(Type::Function) => {
                differ("distinct functions and immediate comparisons of identical functions compare as unequal".to_owned())
            }
            _ if self.equal_whnf(a, b, pos, "in an equality assertion")? => Ok(()),
            Some(Type::Int) => differ(format!(
                "{0} with value '{1}' is not equal to {0} with value '{2}'",
                colored("an integer"), shown(a), shown(b)
            )),
            Some(Type::Float) => differ(format!(
                "{0} with value '{1}' is not equal to {0} with value '{2}'",
                colored("a float"), shown(a), shown(b)
            )),
            Some(Type::Bool) => differ(format!("boolean '{}' is not equal to boolean '{}'", shown(a), shown(b))),
            Some(Type::Path) => differ(format!("path '{}' is not equal to path '{}'", shown(a), shown(b))),
            _ => differ(format!("string '{}' is not equal to string '{}'", shown(a), shown(b))),
        }
    }

    fn assert_equal_lists(&self, a: Value, b: Value, pos: Pos) -> Result<()> {
        let (Some(x), Some(y)) = (a.as_list(), b.as_list()) else { return Ok(()) };
        if x.len() != y.len() {
            let message = format!(
                "list of size '{}' is not equal to list of size '{}', left hand side is '{}', right hand side is '{}'",
                colored(x.len()),
                colored(y.len()),
                String::from_utf8_lossy(&self.show(a)),
                String::from_utf8_lossy(&self.show(b))
            );
            return Err(Error::new(ErrorKind::Assertion, message));
        }
        for (i, (x, y)) in x.iter().zip(y.iter()).enumerate() {
            self.assert_equal_cells(x, y, pos)
                .map_err(|e| e.trace(pos, format!("while comparing list element {}", colored(i))))?;
        }
        Ok(())
    }

    fn assert_equal_sets(&self, a: Value, b: Value, pos: Pos) -> Result<()> {
        let (Some(x), Some(y)) = (a.as_attrs(), b.as_attrs()) else { return Ok(()) };
        if let Some((x, y)) = self.derivation_out_paths(x, y)? {
            let text = format!("while comparing a derivation by its '{}' attribute", colored("outPath"));
            return self.assert_equal_cells(x, y, pos).map_err(|e| e.trace(pos, text));
        }
        let (left, right) = (
            String::from_utf8_lossy(&self.show(a)).into_owned(),
            String::from_utf8_lossy(&self.show(b)).into_owned(),
        );
        if x.len() != y.len() {
            let message = format!("attribute names of attribute set '{left}' differs from attribute set '{right}'");
            return Err(Error::new(ErrorKind::Assertion, message));
        }
        for ((name, at, v), (other, other_at, w)) in x.iter().zip(y.iter()) {
            if name != other {
                let message = if !y.has(name) {
                    format!("attribute name '{}' is contained in '{left}', but not in '{right}'", crate::colored_name(name))
                } else {
                    format!("attribute name '{}' is missing in '{left}', but is contained in '{right}'", crate::colored_name(other))
                };
                return Err(Error::new(ErrorKind::Assertion, message));
            }
            self.assert_equal_cells(v, w, pos).map_err(|e| {
                let e = if other_at.is_some() { e.trace(other_at, "where right hand side is") } else { e };
                let e = if at.is_some() { e.trace(at, "where left hand side is") } else { e };
                e.trace(pos, format!("while comparing attribute '{}'", crate::colored_name(name)))
            })?;
        }
        Ok(())
    }
}
