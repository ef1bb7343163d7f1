//! What leaves the process comes back as it was, has one encoding, and hostile bytes are refused in bounded time.

use firn_host::{AbsPath, Digest, DocumentFormat, Durability, Follow, Observation, Question, SearchEntry, SearchPath};
use firn_memo::kept::observation::Node;
use firn_memo::kept::{NotStorable, Roles, SetId, Sets, plain};
use firn_source::{Pos, Symbol};
use firn_value::{AttrsBuilder, Context, ListBuilder, Thunk, Value};
use proptest::prelude::*;

fn path(text: &str) -> AbsPath {
    AbsPath::new(text.as_bytes()).unwrap()
}

fn roles(at: &str) -> Roles {
    let mut roles = Roles::new();
    roles.assign("entry", path(at));
    roles.assign("store", path("/nix/store"));
    roles
}

#[derive(Clone, Debug)]
enum Shape {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Vec<u8>, Vec<u8>),
    Path(String),
    List(Vec<Shape>),
    Set(Vec<(Vec<u8>, Shape)>),
    Ready(Box<Shape>),
}

fn shape() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        Just(Shape::Null),
        any::<bool>().prop_map(Shape::Bool),
        any::<i64>().prop_map(Shape::Int),
        any::<f64>().prop_filter("NaN is not plain", |x| !x.is_nan()).prop_map(Shape::Float),
        (prop::collection::vec(any::<u8>(), 0..8), prop::collection::vec(0..4u8, 0..3)).prop_map(|(t, c)| Shape::Text(t, c)),
        "[a-c]{1,3}(/[a-c]{1,2}){0,2}".prop_map(Shape::Path),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Shape::List),
            prop::collection::vec((prop::collection::vec(any::<u8>(), 0..4), inner.clone()), 0..6).prop_map(Shape::Set),
            inner.prop_map(|shape| Shape::Ready(Box::new(shape))),
        ]
    })
}

fn build(shape: &Shape, tree: &str) -> Value {
    match shape {
        Shape::Null => Value::NULL,
        Shape::Bool(truth) => Value::bool(*truth),
        Shape::Int(number) => Value::int(*number),
        Shape::Float(float) => Value::float(*float),
        Shape::Text(text, context) => {
            let element = |n: &u8| Symbol::intern(format!("!out!/nix/store/{n}.drv").as_bytes());
            Value::string(text, Context::of(context.iter().map(element).collect()))
        }
        Shape::Path(rest) => Value::path(format!("{tree}/{rest}").as_bytes()),
        Shape::List(items) => {
            let mut list = ListBuilder::new(items.len());
            items.iter().for_each(|item| list.push(build(item, tree)));
            list.finish()
        }
        Shape::Set(items) => {
            let mut set = AttrsBuilder::with_capacity(items.len());
            items.iter().for_each(|(name, item)| set.push(Symbol::intern(name), Pos::NONE, build(item, tree)));
            set.finish()
        }
        Shape::Ready(inner) => Thunk::ready(build(inner, tree)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn plain_values_come_back_and_have_one_encoding_in_every_checkout(shape in shape()) {
        let (here, there) = (roles("/home/a/src"), roles("/elsewhere"));
        let bytes = plain::encode(build(&shape, "/home/a/src"), &here).unwrap();
        prop_assert_eq!(&bytes, &plain::encode(build(&shape, "/elsewhere"), &there).unwrap());
        let back = plain::decode(&bytes, &there).unwrap();
        prop_assert_eq!(&bytes, &plain::encode(back, &there).unwrap());
    }

    #[test]
    fn hostile_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..64), shape in shape(), at in any::<prop::sample::Index>(), bit in 0..8u32) {
        let roles = roles("/src");
        let _ = plain::decode(&bytes, &roles);
        let _ = Node::decode(&bytes, &roles);
        let _ = firn_memo::kept::Record::decode(&bytes);
        let mut good = plain::encode(build(&shape, "/src"), &roles).unwrap();
        let index = at.index(good.len());
        good[index] ^= 1 << bit;
        // Whatever is read at all is what it would be written as.
        if let Ok(value) = plain::decode(&good, &roles) {
            prop_assert_eq!(plain::encode(value, &roles), Ok(good));
        }
    }
}

#[test]
fn functions_suspended_parts_and_endless_values_are_not_plain() {
    let roles = roles("/src");
    let mut deep = Value::NULL;
    for _ in 0..plain::MAX_DEPTH + 1 {
        deep = ListBuilder::of(&[deep]);
    }
    assert!(plain::encode(deep, &roles).is_err());
    assert!(plain::encode(Value::float(f64::NAN), &roles).is_err());
    let mut wide = Value::NULL;
    for _ in 0..40 {
        wide = ListBuilder::of(&[wide, wide]);
    }
    assert!(plain::encode(wide, &roles).is_err());
    // Arrays in arrays, closed or not.
    assert!(plain::decode(&[0x81; 100_000], &roles).is_err());
    assert!(plain::decode(&[&[0x83, 0x80, 0x80][..], &[0x81; 100_000]].concat(), &roles).is_err());
}

fn observations(tree: &str) -> Vec<Observation> {
    let at = |rest: &str| path(&format!("{tree}{rest}"));
    let names = || ["a", "b"].iter().map(|name| name.as_bytes().into()).collect::<Vec<_>>().into();
    let entry = |prefix: &str, path: &str| SearchEntry { prefix: prefix.as_bytes().into(), path: path.as_bytes().into() };
    let search = SearchPath::new([entry("nixpkgs", &format!("{tree}/np")), entry("", "rel"), entry("x", "/nix//odd/")]);
    let questions = vec![
        Question::File(at("/default.nix")),
        Question::File(at("")),
        Question::Directory(at("/pkgs")),
        Question::DirectoryEntry(at("/pkgs"), b"x"[..].into()),
        Question::Type(path("/etc/passwd")),
        Question::Stat(path("/")),
        Question::Link(path("/nix/store/x/l")),
        Question::Resolve(at("/pkgs"), Follow::Full),
        Question::Resolve(at("/pkgs"), Follow::Ancestors),
        Question::ExprPath(at("/pkgs")),
        Question::Exists(at("/pkgs/none"), true),
        Question::Env(b"HOME"[..].into()),
        Question::SearchPath(search, b"nixpkgs"[..].into()),
        Question::Home,
        Question::CurrentDir,
        Question::StorePath(b"/nix/store/x"[..].into()),
        Question::Location(b"entry"[..].into()),
        Question::Binding(at("/pkgs/all.nix"), names()),
        Question::Key(at("/flake.lock"), DocumentFormat::Json, names()),
    ];
    let one = |(index, question)| Observation::new(question, Digest([index as u8; 32]), Durability::Medium);
    questions.into_iter().enumerate().map(one).collect()
}

#[test]
fn observations_come_back_and_name_no_checkout() {
    let (here, there) = (roles("/home/a/src"), roles("/b"));
    let node = Node { children: vec![Digest([9; 32]), Digest([1; 32])], own: observations("/home/a/src") };
    let bytes = node.encode(&here);
    assert!(!bytes.windows(6).any(|window| window == b"/home/"));
    assert_eq!(bytes, Node { own: observations("/b").into_iter().rev().collect(), ..node.clone() }.encode(&there));
    let (children, own) = Node::decode(&bytes, &there).unwrap();
    assert_eq!(children, [Digest([1; 32]), Digest([9; 32])]);
    assert_eq!(Node::children(&bytes).unwrap(), children);
    let own: Vec<Observation> = own.into_iter().map(Option::unwrap).collect();
    for expected in observations("/b") {
        assert!(own.contains(&expected), "{expected:?}");
    }
    // A run without that tree knows nothing of what was observed in it.
    let (_, own) = Node::decode(&bytes, &Roles::new()).unwrap();
    assert_eq!(own.iter().flatten().count(), 7);
    for len in 0..bytes.len() {
        assert!(Node::decode(&bytes[..len], &there).is_err());
    }
}

#[test]
fn equal_sets_are_one_and_shared_parts_are_written_once() {
    let sets = Sets::new();
    let ids: Vec<_> = observations("/s").iter().map(|observation| sets.observe(observation).0).collect();
    assert!(!sets.observe(&observations("/s")[3]).1);
    let base = sets.join(&ids[..5], &[]);
    assert_eq!(base, sets.join(&[ids[4], ids[0], ids[1], ids[2], ids[3], ids[0]], &[SetId::EMPTY]));
    assert_eq!(base, sets.join(&[], &[base, SetId::EMPTY, base]));
    let (a, b) = (sets.join(&ids[5..6], &[base]), sets.join(&ids[6..7], &[base]));
    let top = sets.join(&[], &[b, a]);
    assert_eq!(sets.members(top).len(), 7);
    let roles = roles("/s");
    let (digest_a, nodes) = sets.encode(a, &roles).unwrap();
    assert_eq!(nodes.len(), 2);
    let (_, nodes) = sets.encode(top, &roles).unwrap();
    assert_eq!(nodes.len(), 2);
    assert_eq!(sets.encode(a, &roles).unwrap(), (digest_a, Vec::new()));
}

#[test]
fn what_changed_under_the_evaluation_or_is_never_kept_is_not_stored() {
    let sets = Sets::new();
    let roles = roles("/s");
    let file = |digest: u8| Observation::new(Question::File(path("/s/x")), Digest([digest; 32]), Durability::Medium);
    let (one, two) = (sets.observe(&file(1)).0, sets.observe(&file(2)).0);
    let both = sets.join(&[two], &[sets.join(&[one], &[])]);
    assert_eq!(sets.encode(both, &roles), Err(NotStorable::Question(Question::File(path("/s/x")))));
    let time = sets.observe(&Observation::new(Question::Time, Digest([0; 32]), Durability::Low)).0;
    assert!(sets.encode(sets.join(&[time], &[]), &roles).is_err());
}
