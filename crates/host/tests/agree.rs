//! The tree in memory and the real disk answer alike: random trees, random questions, same answers and same words.
#![allow(clippy::disallowed_methods, reason = "the test builds the tree it compares with")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use firn_host::{AbsPath, Follow, Host, LocalOnly, MemoryHost, MemoryWorld, RealHost, RealWorld, SearchPath, World};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Node {
    File(Vec<u8>, bool),
    Dir(BTreeMap<Vec<u8>, Node>),
    Link(Vec<u8>),
}

/// Few names, so that questions often hit; one is no UTF-8, one is too long for any directory.
fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => Just(b"q0".to_vec()),
        4 => Just(b"q1".to_vec()),
        2 => Just(b"default.nix".to_vec()),
        2 => Just(b"q\xff\xfe n".to_vec()),
    ]
}

fn relative() -> impl Strategy<Value = Vec<u8>> {
    let step = prop_oneof![8 => name(), 1 => Just(b"..".to_vec()), 1 => Just(b".".to_vec()), 1 => Just(vec![b'n'; 300])];
    prop::collection::vec(step, 1..5).prop_map(|steps| steps.join(&b'/'))
}

/// `@` at the start of a target or a question stands for the root of the tree.
fn target() -> impl Strategy<Value = Vec<u8>> {
    (relative(), prop::bool::weighted(0.3))
        .prop_map(|(path, absolute)| if absolute { [b"@/", &path[..]].concat() } else { path })
        .prop_filter("link targets fit a path", |target| target.len() < 1000)
}

fn tree() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        (prop::collection::vec(any::<u8>(), 0..40), any::<bool>()).prop_map(|(bytes, exec)| Node::File(bytes, exec)),
        target().prop_map(Node::Link),
    ];
    let dir = |inner| prop::collection::btree_map(name(), inner, 0..4).prop_map(Node::Dir);
    dir(leaf.prop_recursive(4, 24, 4, move |inner| dir(inner).boxed()).boxed())
}

fn placed(root: &AbsPath, target: &[u8]) -> Vec<u8> {
    target.strip_prefix(b"@").map_or_else(|| target.to_vec(), |rest| [root.as_bytes(), rest].concat())
}

fn build(node: &Node, at: &AbsPath, root: &AbsPath, memory: &MemoryWorld) {
    let real = Path::new(OsStr::from_bytes(at.as_bytes()));
    match node {
        Node::File(bytes, exec) => {
            std::fs::write(real, bytes).expect("write");
            let mode = if *exec { 0o755 } else { 0o644 };
            std::fs::set_permissions(real, std::fs::Permissions::from_mode(mode)).expect("chmod");
            if *exec { memory.write_executable(at.as_bytes(), &bytes[..]) } else { memory.write(at.as_bytes(), &bytes[..]) }
        }
        Node::Dir(entries) => {
            std::fs::create_dir_all(real).expect("mkdir");
            memory.mkdir(at.as_bytes());
            for (name, node) in entries {
                build(node, &at.join(name).expect("no NUL"), root, memory);
            }
        }
        Node::Link(target) => {
            let target = placed(root, target);
            symlink(OsStr::from_bytes(&target), real).expect("symlink");
            memory.symlink(at.as_bytes(), target);
        }
    }
}

/// Every question about one path, answers and errors as text. Stamps differ between worlds and are left out.
fn answers(host: &dyn Host, path: &AbsPath, root: &AbsPath) -> Vec<String> {
    fn show<T: std::fmt::Debug>(what: &str, answer: Result<T, firn_host::HostError>) -> String {
        match answer {
            Ok(answer) => format!("{what}: {answer:?}"),
            Err(error) => format!("{what}: error: {}", error.to_bytes().escape_ascii()),
        }
    }
    let real = host.resolve_symlinks(path, Follow::Full);
    let mut all = vec![
        show("lstat", host.lstat(path).map(|stat| stat.map(|stat| (stat.file_type, stat.executable)))),
        show("type", host.existing_type(path)),
        show("file", host.read_file(path).map(|content| content.bytes().to_vec())),
        show("link", host.read_link(path)),
        show("full", real.clone()),
        show("ancestors", host.resolve_symlinks(path, Follow::Ancestors)),
        show("import", host.resolve_expr_path(path)),
        show("exists", host.path_exists(path, false)),
        show("is dir", host.path_exists(path, true)),
    ];
    // What lies above the tree belongs to the machine, not to the test.
    if let Ok(real) = real.as_ref()
        && real.is_within(root)
    {
        all.push(show("real file", host.read_file(real).map(|content| content.bytes().to_vec())));
        all.push(show("real dir", host.read_dir(real)));
        all.push(show("entry", host.dir_entry(real, b"q0")));
    }
    if path.is_within(root) {
        all.push(show("dir", host.read_dir(path)));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn memory_and_disk_agree(tree in tree(), questions in prop::collection::vec(relative(), 1..24)) {
        let dir = tempfile::tempdir().expect("tempdir");
        let base = std::fs::canonicalize(dir.path()).expect("canonical");
        let root = AbsPath::new(base.as_os_str().as_bytes()).expect("no NUL").join(b"d/e/f/g").expect("no NUL");
        let memory = MemoryWorld::new();
        build(&tree, &root, &root, &memory);
        memory.set_current_dir(RealWorld.current_dir().expect("cwd"));
        let (memory, disk) = (MemoryHost::new(memory), RealHost::new(RealWorld));
        let search = SearchPath::parse_nix_path(&[b"q0=", root.as_bytes(), b"/q1:", root.as_bytes()].concat());
        for question in &questions {
            let path = root.join(question).expect("no NUL");
            prop_assert_eq!(answers(&memory, &path, &root), answers(&disk, &path, &root));
            let found = |host: &dyn Host| format!("{:?}", host.find_file(&search, question, &LocalOnly));
            prop_assert_eq!(found(&memory), found(&disk));
        }
    }
}
