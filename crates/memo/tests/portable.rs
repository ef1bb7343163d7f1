//! What leaves the process comes back as it was, has one encoding, and hostile bytes are refused in bounded time.

use firn_host::{AbsPath, Digest, DocumentFormat, Durability, Follow, Group, MemoryHost, MemoryWorld, Observation, Question, SearchEntry, SearchPath, Stamp};
use firn_memo::kept::observation::Node;
use firn_memo::kept::{Judged, NotStorable, ObservationId, Roles, SetId, Sets, Verifier, Witness, plain};
use firn_source::{Pos, Symbol};
use firn_value::{AttrsBuilder, Context, ListBuilder, Thunk, Value};
use proptest::prelude::*;
use std::borrow::Cow;
use std::collections::BTreeMap;

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
        Shape::Ready(inner) => match build(inner, tree) {
            value if value.is_whnf() => Thunk::ready(value),
            cell => cell,
        },
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
        Question::Outline(at("/pkgs/all.nix")),
        Question::Code(at("/pkgs/code.nix")),
        Question::Member(Group::Kept(Digest([5; 32])), b"hello"[..].into()),
        Question::Key(at("/flake.lock"), DocumentFormat::Json, names()),
    ];
    let one = |(index, question)| Observation::new(question, Digest([index as u8; 32]), Durability::Medium);
    questions.into_iter().enumerate().map(one).collect()
}

#[test]
fn observations_come_back_and_name_no_checkout() {
    let (here, there) = (roles("/home/a/src"), roles("/b"));
    // Of the file whose code is observed, the bytes that it was read from.
    let texts = |base: &str| {
        let code = observations(base).into_iter().find(|seen| matches!(seen.question, Question::Code(_))).unwrap();
        let path = code.question.path().unwrap().clone();
        (BTreeMap::from([(path.clone(), Digest([77; 32]))]), vec![(path, (Digest([77; 32]), code.digest))])
    };
    let node = Node { children: vec![Digest([9; 32]), Digest([1; 32])], own: observations("/home/a/src"), texts: texts("/home/a/src").0 };
    let bytes = node.encode(&here);
    assert!(!bytes.windows(6).any(|window| window == b"/home/"));
    assert_eq!(bytes, Node { own: observations("/b").into_iter().rev().collect(), texts: texts("/b").0, ..node.clone() }.encode(&there));
    assert_eq!(Node::decode_all(&bytes, &there).unwrap().texts, texts("/b").1);
    let (children, own) = Node::decode(&bytes, &there).unwrap();
    assert_eq!(children, [Digest([1; 32]), Digest([9; 32])]);
    assert_eq!(Node::named(&bytes).unwrap(), [children, vec![Digest([5; 32])]].concat());
    let own: Vec<Observation> = own.into_iter().map(Option::unwrap).collect();
    for expected in observations("/b") {
        assert!(own.contains(&expected), "{expected:?}");
    }
    // A run without that tree knows nothing of what was observed in it.
    let (_, own) = Node::decode(&bytes, &Roles::new()).unwrap();
    assert_eq!(own.iter().flatten().count(), 8);
    for len in 0..bytes.len() {
        assert!(Node::decode(&bytes[..len], &there).is_err());
    }
}

#[test]
fn equal_sets_are_one_and_shared_parts_are_written_once() {
    let sets = Sets::new();
    let ids: Vec<_> = observations("/s").iter().map(|observation| sets.observe(observation, false)).collect();
    assert_eq!(ids[3], sets.observe(&observations("/s")[3], false));
    let base = sets.join(&ids[..5], &[]);
    assert_eq!(base, sets.join(&[ids[4], ids[0], ids[1], ids[2], ids[3], ids[0]], &[SetId::EMPTY]));
    assert_eq!(base, sets.join(&[], &[base, SetId::EMPTY, base]));
    let (a, b) = (sets.join(&ids[5..6], &[base]), sets.join(&ids[6..7], &[base]));
    let top = sets.join(&[], &[b, a]);
    assert_eq!(sets.members(top).len(), 7);
    assert_eq!(sets.without(top, ids[6]), a);
    let roles = roles("/s");
    let encoded = sets.encode(a, &roles).unwrap();
    assert_eq!(encoded.nodes.len(), 1);
    assert_eq!(sets.encode(top, &roles).unwrap().nodes.len(), 1);
    let again = sets.encode(a, &roles).unwrap();
    assert_eq!((again.root, again.nodes.len()), (encoded.root, 0));
}

fn files(count: usize) -> Vec<Observation> {
    let file = |i: usize| Observation::new(Question::File(path(&format!("/s/{i}"))), Digest([i as u8; 32]), Durability::Medium);
    (0..count).map(file).collect()
}

proptest! {
    #[test]
    fn joins_of_sets_are_unions(left in proptest::collection::btree_set(0usize..1500, 0..300), right in proptest::collection::btree_set(0usize..1500, 0..300)) {
        let sets = Sets::new();
        let ids: Vec<_> = files(1500).iter().map(|observation| sets.observe(observation, true)).collect();
        let of = |members: &std::collections::BTreeSet<usize>| sets.join(&members.iter().map(|&i| ids[i]).collect::<Vec<_>>(), &[]);
        let (a, b) = (of(&left), of(&right));
        let both = sets.union(a, b);
        prop_assert_eq!(both, of(&left.union(&right).copied().collect()));
        prop_assert_eq!(both, sets.union(b, a));
        prop_assert_eq!(sets.union(both, a), both);
        prop_assert_eq!(sets.ids(both).len(), left.union(&right).count());
        let encoded = sets.encode(both, &roles("/s")).unwrap();
        let mut found = 0;
        for (digest, bytes) in &encoded.nodes {
            prop_assert_eq!(*digest, Node::digest(bytes));
            found += Node::decode(bytes, &roles("/s")).unwrap().1.len();
        }
        prop_assert_eq!(found, left.union(&right).count());
        // What is written once is not written again, whichever set it is in.
        prop_assert!(sets.encode(both, &roles("/s")).unwrap().nodes.is_empty());
    }
}

#[test]
fn what_changed_under_the_evaluation_or_is_never_kept_is_not_stored() {
    let sets = Sets::new();
    let roles = roles("/s");
    let file = |digest: u8| Observation::new(Question::File(path("/s/x")), Digest([digest; 32]), Durability::Medium);
    let one = sets.join(&[sets.observe(&file(1), true)], &[]);
    assert!(sets.encode(one, &roles).is_ok());
    let both = sets.join(&[sets.observe(&file(2), true)], &[one]);
    let changed = NotStorable::Question(Question::File(path("/s/x")));
    assert_eq!(sets.encode(both, &roles).unwrap_err(), changed);
    // What saw only one of them cannot be trusted either.
    assert_eq!(sets.encode(one, &roles).unwrap_err(), changed);
    let time = sets.observe(&Observation::new(Question::Time, Digest([0; 32]), Durability::Low), false);
    assert!(sets.encode(sets.join(&[time], &[]), &roles).is_err());
    assert!(sets.encode(sets.join(&[ObservationId::PRINTED], &[]), &roles).is_err());
}

#[test]
fn what_follows_from_a_file_that_was_read_is_left_out() {
    let (file, world) = (path("/s/x"), MemoryWorld::new());
    world.write("/s/x", "1");
    let host = MemoryHost::new(world);
    let asked = [Question::File(file.clone()), Question::Exists(file.clone(), false), Question::Type(file.clone())];
    let seen = asked.map(|question| Observation::new(question.clone(), question.ask(&host).unwrap(), Durability::Medium));
    let count = |read: bool| {
        let sets = Sets::new();
        let ids: Vec<_> = seen.iter().map(|observation| sets.observe(observation, read)).collect();
        let nodes = sets.encode(sets.join(&ids, &[]), &roles("/s")).unwrap().nodes;
        nodes.iter().map(|(_, bytes)| Node::decode(bytes, &roles("/s")).unwrap().1.len()).sum::<usize>()
    };
    assert_eq!((count(true), count(false)), (1, 3));
}

#[test]
fn what_was_read_is_told_of_once() {
    let sets = Sets::new();
    let seen = |question| Observation::new(question, Digest([1; 32]), Durability::Medium);
    let [one, other, kind] = [Question::File(path("/s/x")), Question::Directory(path("/s")), Question::Type(path("/s/x"))]
        .map(|question| sets.observe(&seen(question), true));
    let told = |set| sets.fresh_reads(set).into_iter().map(|seen| seen.question).collect::<Vec<_>>();
    assert_eq!(told(sets.join(&[one, kind], &[])), [Question::File(path("/s/x"))]);
    assert_eq!(told(sets.join(&[one, other], &[])), [Question::Directory(path("/s"))]);
    assert_eq!(told(sets.join(&[one, other, kind], &[])), []);
    // What is not kept needs nothing beside it.
    let more = sets.observe(&seen(Question::File(path("/s/y"))), true);
    let time = sets.observe(&Observation::new(Question::Time, Digest([0; 32]), Durability::Low), false);
    assert_eq!(told(sets.join(&[more, time], &[])), []);
    assert_eq!(told(sets.join(&[more], &[])), [Question::File(path("/s/y"))]);
}

/// Nodes, and nothing that vouches for anything.
struct Only(BTreeMap<Digest, Vec<u8>>);

impl Witness for Only {
    fn node(&self, digest: &Digest) -> Option<Cow<'_, [u8]>> {
        self.0.get(digest).map(Into::into)
    }
    fn vouched(&self, _: &Question, _: &Stamp) -> Option<Digest> {
        None
    }
    fn vouch(&self, _: &Question, _: &Stamp, _: Digest) {}
    fn store_object(&self, _: &[u8]) -> Option<Digest> {
        None
    }
}

#[test]
fn code_that_is_known_by_its_bytes_is_not_read_and_other_bytes_are() {
    let ask = |text: &str, question: fn(AbsPath) -> Question| {
        let world = MemoryWorld::new();
        world.write("/s/x", text);
        question(path("/s/x")).ask(&MemoryHost::new(world)).unwrap()
    };
    let holds = |now: &str, code: Digest, text: Digest| {
        let world = MemoryWorld::new();
        world.write("/s/x", now);
        let host = MemoryHost::new(world);
        let own = vec![Observation::new(Question::Code(path("/s/x")), code, Durability::Medium)];
        let bytes = Node { own, texts: BTreeMap::from([(path("/s/x"), text)]), ..Node::default() }.encode(&roles("/s"));
        let (root, roles, judged) = (Node::digest(&bytes), roles("/s"), Judged::default());
        Verifier::new(&host, &Only(BTreeMap::from([(root, bytes)])), &roles, &judged).holds(root)
    };
    let (code, text) = (ask("[ 1 ]", Question::Code), ask("[ 1 ]", Question::File));
    assert!(holds("[ 1 ]", code, text));
    // Other bytes: the code decides.
    assert!(holds("[ 1 ] # one", code, text));
    assert!(!holds("[ 2 ]", code, text));
    // The same bytes: what was found in them is taken, whatever it is. Whoever wrote the node is believed that far, and not for others.
    let made_up = Digest([7; 32]);
    assert!(holds("[ 1 ]", made_up, text));
    assert!(!holds("[ 1 ] # one", made_up, text));
}
