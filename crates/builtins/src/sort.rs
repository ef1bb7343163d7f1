//! `sort`: a stable natural merge sort that asks the comparator the same questions in the same order as Nix's.
//!
//! The algorithm is peeksort (Munro and Wild, 2018): sort `begin..end`, given that `begin..left` and `right..end` are
//! runs already. The middle run is found by looking at the middle, both sides are sorted, and the parts are merged.
//! Any answer of the comparator gives some permutation, so a comparator that is no order does no harm.

use firn_eval::{Builtin, Machine, Result};
use firn_source::Pos;
use firn_value::{Function, ListBuilder, Value};

/// Ranges up to this length are sorted by insertion.
const INSERTION: usize = 16;

fn sort(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let list = machine.force_list(args[1], pos, "while evaluating the second argument passed to builtins.sort")?;
    if list.is_empty() {
        return Ok(list.value());
    }
    let function = machine.force_function(args[0], pos, "while evaluating the first argument passed to builtins.sort")?;
    let mut items: Vec<Value> = list.iter().collect();
    for &item in &items {
        machine.force(item, pos)?;
    }
    if matches!(function.as_function(), Some(Function::Primop(primop)) if primop.name == "lessThan") {
        if !sort_plain(machine, &mut items, pos)? {
            let context = "while evaluating the ordering function passed to builtins.sort";
            peeksort(&mut items, &mut |a, b| machine.less_than(a, b, Pos::NONE, context))?;
        }
    } else {
        let context = "while evaluating the return value of the sorting function passed to builtins.sort";
        peeksort(&mut items, &mut |a, b| {
            let result = machine.call(function, &[a, b], Pos::NONE)?;
            machine.force_bool(result, pos, context)
        })?;
    }
    Ok(ListBuilder::of(&items))
}

/// Sorts when all are integers or all are strings, whose order nobody can watch; false otherwise.
fn sort_plain(machine: &Machine, items: &mut [Value], pos: Pos) -> Result<bool> {
    let mut ints = Vec::with_capacity(items.len());
    let mut strings = Vec::new();
    for &item in &*items {
        let value = machine.force(item, pos)?;
        match (value.as_int(), value.as_str()) {
            (Some(n), _) => ints.push((n, item)),
            (_, Some(s)) => strings.push((s.bytes(), item)),
            _ => return Ok(false),
        }
        if !ints.is_empty() && !strings.is_empty() {
            return Ok(false);
        }
    }
    ints.sort_by_key(|&(n, _)| n);
    strings.sort_by_key(|&(s, _)| s);
    for (place, item) in items.iter_mut().zip(ints.iter().map(|i| i.1).chain(strings.iter().map(|s| s.1))) {
        *place = item;
    }
    Ok(true)
}

/// Whether the first value is less than the second.
type Less<'a> = &'a mut dyn FnMut(Value, Value) -> Result<bool>;

fn peeksort(items: &mut [Value], less: Less<'_>) -> Result<()> {
    match items.len() {
        0 | 1 => Ok(()),
        2 => {
            if less(items[1], items[0])? {
                items.swap(0, 1);
            }
            Ok(())
        }
        len => {
            let mut sorter = Sorter { buffer: vec![Value::NULL; len], items, less };
            sorter.sort(0, len, 0, len)
        }
    }
}

struct Sorter<'a, 'b> {
    items: &'a mut [Value],
    buffer: Vec<Value>,
    less: Less<'b>,
}

impl Sorter<'_, '_> {
    fn less(&mut self, a: usize, b: usize) -> Result<bool> {
        (self.less)(self.items[a], self.items[b])
    }

    /// Sorts `begin..end`, where `begin..left` and `right..end` are runs. `right` may be `begin - 1` when `left == end`.
    fn sort(&mut self, begin: usize, end: usize, left: usize, right: usize) -> Result<()> {
        if left == end || right == begin {
            return Ok(());
        }
        let length = end - begin;
        if length <= INSERTION {
            return self.insertion(begin, end);
        }
        let middle = begin + length / 2;
        if middle <= left {
            self.sort(left, end, left + 1, right)?;
            return self.merge(begin, left, end);
        }
        if middle >= right {
            self.sort(begin, right, left, right - 1)?;
            return self.merge(begin, right, end);
        }
        let decreasing = self.less(middle, middle - 1)?;
        let i = self.run_before(left, middle, decreasing)?;
        let j = self.run_after(middle - 1, right, decreasing)?;
        if decreasing {
            self.items[i..j].reverse();
        }
        if i == begin && j == end {
            return Ok(());
        }
        if middle - i < j - middle {
            self.sort(begin, i, left, i.wrapping_sub(1))?;
            self.sort(i, end, j, right)?;
            self.merge(begin, i, end)
        } else {
            self.sort(begin, j, left, i)?;
            self.sort(j, end, j + 1, right)?;
            self.merge(begin, j, end)
        }
    }

    /// Where the run that ends at `end` begins, not before `begin`.
    fn run_before(&mut self, begin: usize, mut end: usize, decreasing: bool) -> Result<usize> {
        if begin == end {
            return Ok(end);
        }
        while end - 1 > begin && self.less(end - 1, end - 2)? == decreasing {
            end -= 1;
        }
        Ok(end - 1)
    }

    /// Where the run that begins at `begin` ends, not after `end`.
    fn run_after(&mut self, mut begin: usize, end: usize, decreasing: bool) -> Result<usize> {
        if begin == end {
            return Ok(begin);
        }
        while begin + 1 != end && self.less(begin + 1, begin)? == decreasing {
            begin += 1;
        }
        Ok(begin + 1)
    }

    fn insertion(&mut self, begin: usize, end: usize) -> Result<()> {
        for current in begin + 1..end {
            let mut at = current;
            while at != begin && self.less(at, at - 1)? {
                self.items.swap(at, at - 1);
                at -= 1;
            }
        }
        Ok(())
    }

    /// Merges the runs `begin..middle` and `middle..end`; of equals the left one comes first.
    fn merge(&mut self, begin: usize, middle: usize, end: usize) -> Result<()> {
        let (left_end, right_end) = (middle - begin, end - begin);
        self.buffer[..right_end].copy_from_slice(&self.items[begin..end]);
        let (mut out, mut left, mut right) = (begin, 0, left_end);
        while left != left_end && right != right_end {
            let from = if (self.less)(self.buffer[right], self.buffer[left])? { &mut right } else { &mut left };
            self.items[out] = self.buffer[*from];
            *from += 1;
            out += 1;
        }
        for i in (left..left_end).chain(right..right_end) {
            self.items[out] = self.buffer[i];
            out += 1;
        }
        Ok(())
    }
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[Builtin { name: "sort", arity: 2, strict: 0b10, run: sort }];
