//! Maps between instances: how the cells of one call appear in another of equal key.
//!
//! A cell inside the first call appears as a cell of the second, made once: functions, sets and lists as copies of one
//! level, thunks as cells that stand for the original until they are forced. What is outside appears as itself, what was
//! an argument as the corresponding argument. So the cells of the second call are as many and as different from each other
//! as if it had been evaluated (M7).

use crate::{Instances, Pairs};
use firn_ir::Shape;
use firn_source::Pos;
use firn_value::{
    AttrsBuilder, Closure, Function, ListBuilder, PartialApp, Production, Slot, Stamp, Thunk, Value,
};
use rustc_hash::FxHashMap;
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
    positions: FxHashMap<Pos, Pos>,
    made: Mutex<Made>,
    /// Maps seen through this one, by their number.
    within: Mutex<FxHashMap<u32, Arc<Map>>>,
}

/// What a map has made so far.
#[derive(Debug, Default)]
struct Made {
    cells: FxHashMap<u64, Value>,
    shapes: FxHashMap<usize, &'static Shape>,
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
    pub fn through(&self, outer: &Arc<Map>, inner: &Arc<Map>, instances: &Instances) -> Arc<Map> {
        let mut within = outer.within.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(known) = within.get(&inner.number) {
            return Arc::clone(known);
        }
        let images = inner.images.iter().map(|(&word, &image)| (word, outer.carry(image, instances))).collect();
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
        map
    }
}

/// One run of copying: what is not filled in yet.
struct Copying<'a> {
    map: &'a Map,
    instances: &'a Instances,
    made: MutexGuard<'a, Made>,
    todo: Vec<(Value, Value)>,
}

impl Map {
    /// The word as it appears in the other instance. Forces nothing.
    pub fn carry(&self, word: Value, instances: &Instances) -> Value {
        let outer = Production::begin(self.to);
        let made = self.made.lock().unwrap_or_else(|e| e.into_inner());
        let mut copying = Copying { map: self, instances, made, todo: Vec::new() };
        let image = copying.image(word);
        while let Some((original, copy)) = copying.todo.pop() {
            copying.fill(original, copy);
        }
        drop(copying);
        Production::end(outer);
        image
    }

    /// Whether values of the originals may be taken: neither call is knotted with its inputs.
    pub fn may_share(&self, instances: &Instances) -> bool {
        !instances.is_knotted(self.from) && self.outer.as_ref().is_none_or(|outer| outer.may_share(instances))
    }
}

impl Copying<'_> {
    fn image(&mut self, word: Value) -> Value {
        let has_identity = word.as_thunk().is_some()
            || word.as_attrs().is_some()
            || word.as_list().is_some()
            || word.is_told_apart_by_cell();
        if !has_identity {
            return word;
        }
        if let Some(&image) = self.map.images.get(&word.identity()) {
            return image;
        }
        if !self.instances.is_inside(word.stamp(), self.map.from) {
            return self.map.outer.as_ref().map_or(word, |outer| outer.carry(word, self.instances));
        }
        if let Some(&copy) = self.made.cells.get(&word.identity()) {
            return copy;
        }
        let copy = self.blank(word);
        self.made.cells.insert(word.identity(), copy);
        copy
    }

    /// A copy whose parts are filled in later, so that cycles end and depth costs no stack.
    fn blank(&mut self, word: Value) -> Value {
        if let Some(thunk) = word.as_thunk()
            && !thunk.is_ready()
        {
            return Thunk::transport(self.map.number, word);
        }
        let copy = if word.as_thunk().is_some() {
            Thunk::ready(Value::NULL)
        } else if let Some(set) = word.as_attrs() {
            // The copy is whoever's, at any time: what the names of the original rest on they rest on, and nobody has seen it.
            let copy = AttrsBuilder::of_shape(self.shape(set.unguarded().flat().0), std::iter::empty());
            copy.as_attrs().map_or(copy, |copy| copy.guarded_by(set.guard()))
        } else if let Some(list) = word.as_list() {
            let len = list.unguarded().len();
            let mut copy = ListBuilder::new(len);
            (0..len).for_each(|_| copy.push(Value::NULL));
            let copy = copy.finish();
            match (list.guard(), copy.as_list()) {
                (Some((guard, row)), Some(copy)) => copy.guarded_by(guard, row),
                _ => copy,
            }
        } else {
            match word.as_function() {
                Some(Function::Closure(closure)) => Closure::new(closure.lambda(), closure.is_delayed()).value(),
                Some(Function::Partial(partial)) => PartialApp::blank(partial.args().len()),
                Some(Function::Primop(_)) => return word,
                // A NaN, which is told apart by its cell.
                None => return word.as_float().map_or(word, Value::float),
            }
        };
        self.todo.push((word, copy));
        copy
    }

    /// The shape as it would be had it been written where the second call's arguments were: if it was made from the arguments,
    /// and not by the same code once more. Which of the two cannot be told, so the positions are uncertain.
    fn shape(&mut self, shape: &'static Shape) -> &'static Shape {
        let positions = &self.map.positions;
        if positions.is_empty() || !shape.positions().iter().any(|pos| positions.contains_key(pos)) {
            return shape;
        }
        self.made.shapes.entry(std::ptr::from_ref(shape).addr()).or_insert_with(|| {
            let moved: Vec<Pos> = shape.positions().iter().map(|pos| positions.get(pos).map_or(*pos, |moved| moved.uncertain())).collect();
            Shape::new(shape.names(), &moved)
        })
    }

    fn fill(&mut self, original: Value, copy: Value) {
        if let (Some(from), Some(to)) = (original.as_thunk(), copy.as_thunk()) {
            if let Some(value) = from.forced() {
                to.set_ready(self.image(value));
            }
            return;
        }
        if let (Some(Function::Partial(from)), Some(Function::Partial(to))) = (original.as_function(), copy.as_function()) {
            let function = self.image(from.function());
            to.fill(function, |i| self.image(from.args()[i].get()));
            return;
        }
        self.made.cells.reserve(slots(copy).len());
        for (from, to) in slots(original).iter().zip(slots(copy)) {
            to.set(self.image(from.get()));
        }
    }
}

fn slots(value: Value) -> &'static [Slot] {
    if let Some(set) = value.as_attrs() {
        return set.unguarded().flat().1;
    }
    match value.as_function() {
        Some(Function::Closure(closure)) => closure.captures(),
        _ => value.as_list().map_or(&[], |list| list.unguarded().slots()),
    }
}
