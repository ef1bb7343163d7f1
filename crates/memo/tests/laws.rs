//! The laws of digests and equality (L1.1, L1.2, M2, M3, M5): equal digests exactly for equal values, nothing is forced, the
//! same before and after forcing, on every thread, whatever numbers symbols have; cycles end and depth does not matter.

use firn_memo::{Digests, Sameness, same};
use firn_source::{Pos, Symbol};
use firn_value::{AttrsBuilder, Context, Each, ListBuilder, PartialApp, Primop, Thunk, ThunkState, Value};
use proptest::prelude::*;
use std::collections::BTreeMap;

static ADD: Primop = Primop { name: "add", arity: 2, strict: 3, index: 0, trace: true };

/// A value without laziness, to be built in several ways.
#[derive(Clone, Debug, PartialEq)]
enum Data {
    Null,
    Bool(bool),
    Int(i64),
    Float(u64),
    Str(Vec<u8>, Vec<u8>),
    List(Vec<Data>),
    Set(BTreeMap<String, Data>),
}

fn data() -> impl Strategy<Value = Data> {
    let leaf = prop_oneof![
        Just(Data::Null),
        any::<bool>().prop_map(Data::Bool),
        prop_oneof![Just(0), Just(1 << 60), any::<i64>()].prop_map(Data::Int),
        prop_oneof![Just(0.0f64), Just(1.5), Just(1.0)].prop_map(|x| Data::Float(x.to_bits())),
        (prop::collection::vec(97u8..100, 0..3), prop::collection::vec(120u8..123, 0..3)).prop_map(|(text, context)| Data::Str(text, context)),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Data::List),
            prop::collection::btree_map("[a-d]", inner, 0..4).prop_map(Data::Set),
        ]
    })
}

/// Builds the value; `cells` puts every part into a cell of its own, `backwards` numbers and adds names the other way round.
fn build(data: &Data, cells: bool, backwards: bool) -> Value {
    let part = |inner: &Data| {
        let value = build(inner, cells, backwards);
        if cells { Thunk::ready(value) } else { value }
    };
    match data {
        Data::Null => Value::NULL,
        Data::Bool(b) => Value::bool(*b),
        Data::Int(n) => Value::int(*n),
        Data::Float(bits) => Value::float(f64::from_bits(*bits)),
        Data::Str(text, context) => {
            let mut context: Vec<u8> = context.clone();
            context.sort_unstable();
            context.dedup();
            if backwards {
                context.reverse();
            }
            Value::string(text, Context::of(context.iter().map(|&b| Symbol::intern(&[b])).collect()))
        }
        Data::List(items) => ListBuilder::of(&items.iter().map(part).collect::<Vec<_>>()),
        Data::Set(attrs) => {
            let mut all: Vec<(&String, &Data)> = attrs.iter().collect();
            if backwards {
                all.reverse();
            }
            let mut set = AttrsBuilder::with_capacity(all.len());
            all.into_iter().for_each(|(name, inner)| set.push(Symbol::from(name.as_str()), Pos::NONE, part(inner)));
            set.finish()
        }
    }
}

/// Contexts are sets.
fn normal(data: &Data) -> Data {
    match data {
        Data::Str(text, context) => {
            let mut context = context.clone();
            context.sort_unstable();
            context.dedup();
            Data::Str(text.clone(), context)
        }
        Data::List(items) => Data::List(items.iter().map(normal).collect()),
        Data::Set(attrs) => Data::Set(attrs.iter().map(|(name, inner)| (name.clone(), normal(inner))).collect()),
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn equal_digests_exactly_for_equal_data(a in data(), b in data()) {
        let digests = Digests::default();
        let equal = normal(&a) == normal(&b);
        let (x, y) = (build(&a, false, false), build(&b, true, true));
        prop_assert_eq!(digests.of(x) == digests.of(y), equal);
        prop_assert_eq!(same(x, y, &digests), if equal { Sameness::Same } else { Sameness::Different });
    }

    #[test]
    fn layout_and_thread_do_not_count(a in data()) {
        let digests = Digests::default();
        let here = digests.of(build(&a, true, false));
        let other = a.clone();
        let there = std::thread::spawn(move || Digests::default().of(build(&other, false, true))).join().expect("no panic");
        prop_assert_eq!(here, there);
        prop_assert!(here.portable);
        prop_assert_eq!(same(build(&a, true, false), build(&a, false, true), &digests), Sameness::Same);
    }

    #[test]
    fn suspended_parts_are_not_forced_and_keep_their_digest(a in data(), b in data()) {
        let digests = Digests::default();
        let add = Value::primop(&ADD);
        // An application that nobody evaluates here.
        let lazy = Thunk::apply(add, &[build(&a, false, false), build(&b, true, false)]);
        let again = Thunk::apply(add, &[build(&a, true, true), build(&b, false, false)]);
        let around = ListBuilder::of(&[Value::int(1), lazy]);
        let (before, before_around) = (digests.of(lazy), digests.of(around));
        prop_assert_eq!(before, digests.of(again));
        prop_assert_eq!(same(lazy, again, &digests), Sameness::Same);
        let thunk = lazy.as_thunk().expect("an application is a thunk");
        prop_assert!(matches!(thunk.state(), ThunkState::Suspended), "nothing is forced");
        // One of many applications is like one that is written out.
        let names: &'static [Symbol] = Vec::leak(vec![Symbol::from("x")]);
        let cells = ListBuilder::of(&[build(&b, true, true)]).as_list().expect("a list").slots();
        let item = Thunk::apply_to_each(add, Each::Named(names, cells)).next().expect("one");
        let written = Thunk::apply(add, &[Value::name(names[0]), build(&b, false, false)]);
        prop_assert_eq!(digests.of(item), digests.of(written));
        prop_assert_eq!(same(item, written, &digests), Sameness::Same);
        thunk.claim().expect("it can be claimed").publish(Value::int(42));
        prop_assert_eq!((digests.of(lazy), digests.of(around)), (before, before_around));
    }
}

#[test]
fn functions_by_name_and_by_parts() {
    let digests = Digests::default();
    let add = Value::primop(&ADD);
    let partial = |n| PartialApp::new(add, &[Value::int(n)]);
    assert_eq!(digests.of(partial(1)), digests.of(partial(1)));
    assert_ne!(digests.of(partial(1)), digests.of(partial(2)));
    assert_eq!(same(partial(1), partial(1), &digests), Sameness::Same);
    assert_eq!(same(partial(1), partial(2), &digests), Sameness::Different);
    assert_eq!(same(add, Value::int(1), &digests), Sameness::Different);
}

#[test]
fn floats_are_canonical_and_paths_say_that_they_are_not_portable() {
    let digests = Digests::default();
    assert_eq!(digests.of(Value::float(0.0)), digests.of(Value::float(-0.0)));
    assert_eq!(digests.of(Value::float(f64::NAN)), digests.of(Value::float(-f64::NAN)));
    assert_ne!(digests.of(Value::float(1.0)), digests.of(Value::int(1)));
    assert!(!digests.of(Value::path(b"/a")).portable);
}

/// A list that contains itself through a cell.
fn cycle(period: usize) -> Value {
    let lists: Vec<Value> = (0..period).map(|i| ListBuilder::of(&[Value::int(i as i64), Value::NULL])).collect();
    for (i, list) in lists.iter().enumerate() {
        let next = Thunk::ready(lists[(i + 1) % period]);
        list.as_list().expect("a list").slots()[1].set(next);
    }
    lists[0]
}

#[test]
fn cycles_end_wherever_they_lie() {
    let digests = Digests::default();
    assert_eq!(digests.of(cycle(3)), digests.of(cycle(3)));
    assert_ne!(digests.of(cycle(3)), digests.of(cycle(2)));
    assert_eq!(same(cycle(3), cycle(3), &digests), Sameness::Same);
    assert_eq!(same(cycle(3), cycle(2), &digests), Sameness::Different);
}

#[test]
fn depth_does_not_matter() {
    let deep = |end: i64| (0..50_000).fold(Value::int(end), |inner, _| ListBuilder::of(&[inner]));
    let digests = Digests::default();
    assert_eq!(digests.of(deep(1)), digests.of(deep(1)));
    assert_ne!(digests.of(deep(1)), digests.of(deep(2)));
    assert_eq!(same(deep(1), deep(2), &digests), Sameness::Different);
}

#[test]
fn what_runs_is_known_by_itself_only() {
    let digests = Digests::default();
    let cell = || Thunk::apply(Value::primop(&ADD), &[Value::int(1), Value::int(2)]);
    let (a, b) = (cell(), cell());
    let claims = [a, b].map(|cell| cell.as_thunk().and_then(|thunk| thunk.claim()).expect("it can be claimed"));
    assert_ne!(digests.of(a), digests.of(b));
    assert!(!digests.of(a).portable);
    assert_eq!(same(a, a, &digests), Sameness::Same);
    assert_eq!(same(a, b, &digests), Sameness::Unknown);
    claims.into_iter().for_each(firn_value::Claim::restore);
}
