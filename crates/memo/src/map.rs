//! Maps between instances: how the cells of one call appear in another of equal key.
//!
//! A cell inside the first call appears as a cell of the second, made once: functions, sets and lists as copies of one
//! level, thunks as cells that stand for the original until they are forced. What is outside appears as itself, what was
//! an argument as the corresponding argument. So the cells of the second call are as many and as different from each other
//! as if it had been evaluated (M7).

use crate::{Instances, Pairs, Refusal};
use firn_source::Pos;
use firn_value::{
    AttrsBuilder, Closure, Function, List, ListBuilder, PartialApp, Production, Slot, Stamp, Thunk, ThunkState, Value,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

/// A map from the cells of one instance to those of another.
#[derive(Debug)]
pub struct Map {
    /// Its number, which transported cells carry.
    pub number: u32,
    /// The call whose cells are handed on.
    pub from: Stamp,
    /// The instance in which they appear.
    pub to: Stamp,
    /// How cells outside `from` appear, if this map is itself seen through another.
    outer: Option<Arc<Map>>,
    images: FxHashMap<u64, Value>,
    positions: FxHashSet<Pos>,
    made: Mutex<FxHashMap<u64, Value>>,
    /// Maps seen through this one, by their number.
    within: Mutex<FxHashMap<u32, Arc<Map>>>,
}

/// All maps by number.
#[derive(Debug, Default)]
pub struct Maps {
    all: RwLock<Vec<Arc<Map>>>,
}

impl Maps {
    /// A map from the cells of `from` to new ones of `to`.
    pub fn add(&self, from: Stamp, to: Stamp, pairs: Pairs) -> Arc<Map> {
        self.insert(|number| Map {
            number,
            from,
            to,
            outer: None,
            images: pairs.images,
            positions: pairs.positions,
            made: Mutex::default(),
            within: Mutex::default(),
        })
    }

    fn insert(&self, make: impl FnOnce(u32) -> Map) -> Arc<Map> {
        let mut all = self.all.write().unwrap_or_else(|e| e.into_inner());
        let map = Arc::new(make(u32::try_from(all.len()).expect("there are fewer maps than instances")));
        all.push(Arc::clone(&map));
        map
    }

    /// The map of a number.
    pub fn get(&self, number: u32) -> Arc<Map> {
        Arc::clone(&self.all.read().unwrap_or_else(|e| e.into_inner())[number as usize])
    }

    /// How the map `inner`, which leads into what `outer` leads from, looks on the other side of `outer`.
    pub fn through(&self, outer: &Arc<Map>, inner: &Arc<Map>, instances: &Instances) -> Result<Arc<Map>, Refusal> {
        let mut within = outer.within.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(known) = within.get(&inner.number) {
            return Ok(Arc::clone(known));
        }
        let mut images = FxHashMap::default();
        for (&word, &image) in &inner.images {
            images.insert(word, outer.carry(image, instances)?);
        }
        let map = self.insert(|number| Map {
            number,
            from: inner.from,
            to: outer.to,
            outer: Some(Arc::clone(outer)),
            images,
            positions: inner.positions.clone(),
            made: Mutex::default(),
            within: Mutex::default(),
        });
        within.insert(inner.number, Arc::clone(&map));
        Ok(map)
    }
}

/// One run of copying: what it made so far, and what of that is not filled in.
struct Copying<'a> {
    map: &'a Map,
    instances: &'a Instances,
    made: MutexGuard<'a, FxHashMap<u64, Value>>,
    fresh: FxHashMap<u64, Value>,
    todo: Vec<(Value, Value)>,
}

impl Map {
    /// The word as it appears in the other instance. Forces nothing. A refusal leaves no trace.
    pub fn carry(&self, word: Value, instances: &Instances) -> Result<Value, Refusal> {
        let outer = Production::begin(self.to);
        let made = self.made.lock().unwrap_or_else(|e| e.into_inner());
        let mut copying = Copying { map: self, instances, made, fresh: FxHashMap::default(), todo: Vec::new() };
        let result = copying.all(word);
        if result.is_ok() {
            copying.made.extend(copying.fresh.drain());
        }
        drop(copying);
        Production::end(outer);
        result
    }

    /// How many cells were made.
    pub fn len(&self) -> usize {
        self.made.lock().unwrap_or_else(|e| e.into_inner()).len()
    }

    /// Whether no cell was made.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Copying<'_> {
    fn all(&mut self, word: Value) -> Result<Value, Refusal> {
        let image = self.image(word)?;
        while let Some((original, copy)) = self.todo.pop() {
            self.fill(original, copy)?;
        }
        Ok(image)
    }

    fn image(&mut self, word: Value) -> Result<Value, Refusal> {
        let has_identity = word.as_thunk().is_some()
            || word.as_attrs().is_some()
            || word.as_list().is_some()
            || word.is_told_apart_by_cell();
        if !has_identity {
            return Ok(word);
        }
        if let Some(&image) = self.map.images.get(&word.identity()) {
            // Where an argument was written is known for certain only to who has the argument itself.
            return if self.shows_position(word) { Err(Refusal::Position) } else { Ok(image) };
        }
        if !self.instances.is_inside(word.stamp(), self.map.from) {
            return match &self.map.outer {
                Some(outer) => outer.carry(word, self.instances),
                None => Ok(word),
            };
        }
        let known = self.fresh.get(&word.identity()).or_else(|| self.made.get(&word.identity()));
        if let Some(&copy) = known {
            return Ok(copy);
        }
        let copy = self.blank(word)?;
        self.fresh.insert(word.identity(), copy);
        Ok(copy)
    }

    fn shows_position(&self, word: Value) -> bool {
        let shows = |pos: &Pos| self.map.positions.contains(pos);
        !self.map.positions.is_empty() && word.as_attrs().is_some_and(|set| set.flat().0.positions().iter().any(shows))
    }

    /// A copy whose parts are filled in later, so that cycles end and depth costs no stack.
    fn blank(&mut self, word: Value) -> Result<Value, Refusal> {
        if let Some(thunk) = word.as_thunk() {
            if thunk.is_ready() {
                let copy = Thunk::ready(Value::NULL);
                self.todo.push((word, copy));
                return Ok(copy);
            }
            let made_failed = thunk.retained().is_none() && matches!(thunk.state(), ThunkState::Failed(_));
            return if made_failed { Err(Refusal::Failed) } else { Ok(Thunk::transport(self.map.number, word)) };
        }
        if self.shows_position(word) {
            return Err(Refusal::Position);
        }
        let copy = if let Some(set) = word.as_attrs() {
            AttrsBuilder::of_shape(set.flat().0, std::iter::empty())
        } else if let Some(list) = word.as_list() {
            let mut copy = ListBuilder::new(list.len());
            (0..list.len()).for_each(|_| copy.push(Value::NULL));
            copy.finish()
        } else {
            match word.as_function() {
                Some(Function::Closure(closure)) => Closure::new(closure.lambda(), closure.is_delayed()).value(),
                Some(Function::Partial(partial)) => PartialApp::blank(partial.args().len()),
                Some(Function::Primop(_)) => return Ok(word),
                // A NaN, which is told apart by its cell.
                None => return Ok(word.as_float().map_or(word, Value::float)),
            }
        };
        self.todo.push((word, copy));
        Ok(copy)
    }

    fn fill(&mut self, original: Value, copy: Value) -> Result<(), Refusal> {
        if let (Some(from), Some(to)) = (original.as_thunk(), copy.as_thunk()) {
            if let Some(value) = from.forced() {
                let image = self.image(value)?;
                to.set_ready(image);
            }
            return Ok(());
        }
        if let (Some(Function::Partial(from)), Some(Function::Partial(to))) = (original.as_function(), copy.as_function()) {
            let function = self.image(from.function())?;
            let args: Vec<Value> = from.args().iter().map(|arg| self.image(arg.get())).collect::<Result<_, _>>()?;
            to.fill(function, |i| args[i]);
            return Ok(());
        }
        for (from, to) in slots(original).iter().zip(slots(copy)) {
            to.set(self.image(from.get())?);
        }
        Ok(())
    }
}

fn slots(value: Value) -> &'static [Slot] {
    if let Some(set) = value.as_attrs() {
        return set.flat().1;
    }
    match value.as_function() {
        Some(Function::Closure(closure)) => closure.captures(),
        _ => value.as_list().map_or(&[], List::slots),
    }
}
