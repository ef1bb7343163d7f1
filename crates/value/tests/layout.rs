//! The representation of values seen from outside: what goes in comes out. Miri runs this over all unsafe code:
//! `cargo +nightly miri test -p firn-value --test layout --test threads`.

use firn_source::{Pos, Symbol};
use firn_value::{
    Attrs, AttrsBuilder, Context, Function, ListBuilder, PartialApp, Primop, Type, Value,
};
use proptest::prelude::*;
use proptest::test_runner::Config;
use std::collections::BTreeMap;

static ADD: Primop = Primop { name: "add", arity: 2, strict: 3, index: 0, trace: true };

/// Miri is slow, and fails differently: a few cases are enough for it.
fn config() -> Config {
    Config { cases: if cfg!(miri) { 2 } else { 256 }, failure_persistence: None, ..Config::default() }
}

#[test]
fn integers_at_the_edges_of_the_word() {
    let edge = 1i64 << 60;
    for n in [0, 1, -1, edge - 1, edge, edge + 1, -edge, -edge - 1, -edge + 1, i64::MAX, i64::MIN] {
        let value = Value::int(n);
        assert_eq!((value.as_int(), value.get_type()), (Some(n), Some(Type::Int)));
        let small = (-edge..edge).contains(&n);
        assert_eq!(value.as_small_int(), small.then_some(n), "{n}");
        assert!(value.is_whnf() && value.as_float().is_none() && value.as_path().is_none() && value.as_bool().is_none());
        // Small ones are their own cells, large ones objects.
        assert_eq!(value == Value::int(n), small);
    }
}

#[test]
fn small_integers_are_added_and_compared_as_words() {
    let edge = 1i64 << 60;
    let is_small = |n: i64| (-edge..edge).contains(&n);
    let all = [0, 1, -1, 7, -8, edge - 1, edge, edge - 2, -edge, -edge - 1, -edge + 1];
    for (a, b) in all.iter().flat_map(|&a| all.iter().map(move |&b| (a, b))) {
        let (x, y) = (Value::int(a), Value::int(b));
        let both = is_small(a) && is_small(b);
        assert_eq!(Value::small_sum(x, y), (both && is_small(a + b)).then(|| Value::int(a + b)), "{a} + {b}");
        assert_eq!(Value::small_difference(x, y), (both && is_small(a - b)).then(|| Value::int(a - b)), "{a} - {b}");
        assert_eq!(Value::small_ints(x, y).map(|(x, y)| x.cmp(&y)), both.then(|| a.cmp(&b)));
    }
    for other in [Value::NULL, Value::TRUE, Value::float(1.0), Value::path(b"/")] {
        assert_eq!((Value::small_sum(other, Value::int(1)), Value::small_difference(Value::int(1), other)), (None, None));
    }
}

#[test]
fn immediates_are_told_apart() {
    let all = [Value::NULL, Value::FALSE, Value::TRUE, Value::int(0), Value::int(1), Value::int(2)];
    for (i, a) in all.iter().enumerate() {
        assert!(all.iter().enumerate().all(|(j, b)| (a == b) == (i == j)));
    }
    assert_eq!((Value::TRUE.as_bool(), Value::FALSE.as_bool(), Value::NULL.as_bool()), (Some(true), Some(false), None));
    assert_eq!(Value::NULL.get_type(), Some(Type::Null));
}

#[test]
fn floats_and_paths_keep_their_bits() {
    for x in [0.0, -0.0, 1.5, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE, 5e-324] {
        let value = Value::float(x);
        assert_eq!(value.as_float().map(f64::to_bits), Some(x.to_bits()));
        assert_eq!((value.get_type(), value.as_int()), (Some(Type::Float), None));
    }
    for path in [&b"/"[..], b"/a", b"/etc/\xff\x00", b"/12345678"] {
        assert_eq!((Value::path(path).as_path(), Value::path(path).get_type()), (Some(path), Some(Type::Path)));
    }
}

#[test]
fn strings_with_and_without_context() {
    let source = Context::single(Symbol::from("/nix/store/x-source"));
    let both = source.union(Context::single(Symbol::from("!out!/nix/store/y.drv")));
    for len in 0..20 {
        let bytes: Vec<u8> = (0..len).map(|i| 250 + i as u8 % 6).collect();
        for context in [Context::EMPTY, source, both] {
            let value = Value::string(&bytes, context);
            let string = value.as_str().expect("it is a string");
            assert_eq!((string.bytes(), string.context()), (&bytes[..], context));
            assert_eq!(string.value(), value);
            let (left, right) = bytes.split_at(len / 3);
            let joined = Value::string_of([left, b"", right].into_iter(), context).as_str().expect("it is a string");
            assert_eq!((joined.bytes(), joined.context()), (&bytes[..], context));
        }
    }
    assert_eq!(both.elements().len(), 2);
    assert_eq!(both.union(source), both);
}

#[test]
fn a_suffix_shares_the_cells_of_its_list() {
    let items: Vec<Value> = (0..10).map(Value::int).collect();
    let list = ListBuilder::of(&items).as_list().expect("it is a list");
    let tail = list.suffix(3).as_list().expect("it is a list");
    let shorter = tail.suffix(4).as_list().expect("it is a list");
    assert_eq!(shorter.iter().map(|v| v.as_int().unwrap()).collect::<Vec<_>>(), [7, 8, 9]);
    assert!(std::ptr::eq(&shorter.slots()[0], &list.slots()[7]));
    assert_eq!((tail.len(), tail.get(0), list.suffix(0).as_list().map(|l| l.len())), (7, items[3], Some(10)));
    let none = list.suffix(10).as_list().expect("it is a list");
    assert!(none.is_empty() && none.suffix(0).as_list().is_some_and(|l| l.is_empty()));
}

#[test]
fn a_partial_application_keeps_function_and_arguments() {
    let add = Value::primop(&ADD);
    assert!(matches!(add.as_function(), Some(Function::Primop(p)) if std::ptr::eq(p, &ADD)));
    for count in 0..5 {
        let args: Vec<Value> = (0..count).map(Value::int).collect();
        let partial = PartialApp::new(add, &args);
        let Some(Function::Partial(app)) = partial.as_function() else { panic!("it is a partial application") };
        assert_eq!(app.function(), add);
        assert_eq!(app.args().iter().map(|slot| slot.get()).collect::<Vec<_>>(), args);
        assert_ne!(partial, PartialApp::new(add, &args), "each is a cell of its own");
    }
}

#[test]
fn large_objects_get_blocks_of_their_own() {
    let before = firn_value::heap_bytes();
    // Miri checks the whole list on each push: a long one is beyond it, the string is not.
    let items = vec![Value::TRUE; if cfg!(miri) { 100 } else { 200_000 }];
    let list = ListBuilder::of(&items).as_list().expect("it is a list");
    let text = vec![b'x'; if cfg!(miri) { 270_000 } else { 3_000_000 }];
    let string = Value::string(&text, Context::EMPTY).as_str().expect("it is a string");
    assert!(list.iter().all(|v| v == Value::TRUE) && string.bytes() == text);
    assert!(firn_value::heap_bytes() >= before + text.len() as u64);
}

type Model = BTreeMap<Vec<u8>, (i64, Pos)>;

fn set_of(model: &Model) -> Attrs {
    let mut builder = AttrsBuilder::with_capacity(model.len());
    for (name, &(n, pos)) in model {
        builder.push(Symbol::intern(name), pos, Value::int(n));
    }
    builder.finish().as_attrs().expect("it is a set")
}

fn agrees(set: Attrs, model: &Model) {
    assert_eq!((set.len(), set.is_empty()), (model.len(), model.is_empty()));
    for (name, &(n, pos)) in model {
        let symbol = Symbol::intern(name);
        assert_eq!(set.get(symbol), Some(Value::int(n)));
        assert_eq!(set.get_with_pos(symbol), Some((Value::int(n), pos)));
    }
    assert!(!set.has(Symbol::from("no such name")));
    let by_name: Vec<(Vec<u8>, i64)> =
        set.iter_by_name().map(|(name, _, v)| (name.as_bytes().to_vec(), v.as_int().unwrap())).collect();
    assert_eq!(by_name, model.iter().map(|(name, &(n, _))| (name.clone(), n)).collect::<Vec<_>>());
    assert!(set.iter().is_sorted_by_key(|(name, _, _)| name));
}

fn models() -> impl Strategy<Value = Vec<Model>> {
    // From few names, in no order of their own: neither symbol order nor byte order is the order of drawing.
    let name = (0u32..160).prop_map(|n| format!("n{}", n * 67 % 160).into_bytes());
    let entry = (name, (any::<i64>().prop_map(|n| n >> 4), (0u32..50).prop_map(Pos::from_number)));
    let one = prop_oneof![
        prop::collection::vec(entry.clone(), 0..6),
        prop::collection::vec(entry.clone(), 20..60),
        prop::collection::vec(entry, if cfg!(miri) { 30..32 } else { 100..140 }),
    ];
    prop::collection::vec(one.prop_map(|entries| entries.into_iter().collect()), 1..if cfg!(miri) { 4 } else { 14 })
}

proptest! {
    #![proptest_config(config())]

    /// `//` by layers, by merging, and their mixture are the map that it should be; the operands stay as they were.
    #[test]
    fn updates_are_those_of_a_map(models in models(), look_early in any::<bool>()) {
        let mut expected = Model::new();
        let mut set = Attrs::empty().as_attrs().expect("it is a set");
        let operands: Vec<Attrs> = models.iter().map(set_of).collect();
        for (operand, model) in operands.iter().zip(&models) {
            set = set.update(*operand).as_attrs().expect("it is a set");
            expected.extend(model.iter().map(|(k, v)| (k.clone(), *v)));
            if look_early {
                agrees(set, &expected);
            }
        }
        agrees(set, &expected);
        operands.into_iter().zip(&models).for_each(|(operand, model)| agrees(operand, model));
    }

    /// A small set over a layered one over a layered one, grouped from the right.
    #[test]
    fn updates_associate(models in models()) {
        let mut set = Attrs::empty().as_attrs().expect("it is a set");
        let mut expected = Model::new();
        for model in models.iter().rev() {
            set = set_of(model).update(set).as_attrs().expect("it is a set");
            let mut below = model.clone();
            below.extend(std::mem::take(&mut expected));
            expected = below;
        }
        agrees(set, &expected);
    }

    #[test]
    fn any_integer_and_float_comes_back(n in any::<i64>(), bits in any::<u64>()) {
        prop_assert_eq!(Value::int(n).as_int(), Some(n));
        prop_assert_eq!(Value::float(f64::from_bits(bits)).as_float().map(f64::to_bits), Some(bits));
    }
}

#[test]
fn of_equal_names_the_builder_keeps_the_last_or_the_first() {
    let build = || {
        let mut builder = AttrsBuilder::default();
        [("b", 1), ("a", 2), ("b", 3)].into_iter().for_each(|(name, n)| builder.insert(name, Value::int(n)));
        builder
    };
    let b = |set: Value| set.as_attrs().and_then(|set| set.get(Symbol::from("b"))).and_then(Value::as_int);
    assert_eq!((b(build().finish()), b(build().finish_first())), (Some(3), Some(1)));
}
