//! `Observation`: one question to the outside and the digest of its answer: what a memo entry depends on (spec L2.3).
//!
//! [`Question::ask`] asks again, so that whoever verifies an entry needs no knowledge of how each kind is answered.
//! Digests name no checkout: paths in an answer are folded in as seen from the path that was asked about.

use std::sync::{Arc, LazyLock};

use crate::digest::Fold;
use crate::file::{TYPE_TAGS, type_tag};
use crate::search::{EntrySource, Found, PseudoUrl, SearchPath};
use crate::{AbsPath, Digest, Entry, FileContent, FileType, Follow, Host, HostError, Listing, Stat};

/// How long an answer may be trusted (spec L2.6).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Durability {
    /// Time, environment, network: asked afresh every run; time and network are never kept.
    Low,
    /// Local files, and absence anywhere: verified every run.
    Medium,
    /// Inside store paths and locked trees: verified once.
    High,
}

impl Durability {
    /// The durability of a number in what is kept: the lowest is 0.
    pub fn from_number(number: u64) -> Option<Durability> {
        [Durability::Low, Durability::Medium, Durability::High].into_iter().find(|durability| *durability as u64 == number)
    }
}

/// What was asked. From [`Question::System`] on they are answered outside this crate and noted with [`Observation::new`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Question {
    /// The bytes of a file.
    File(AbsPath),
    /// The code in a file: its text less the blanks and comments between tokens.
    Code(AbsPath),
    /// All entries of a directory.
    Directory(AbsPath),
    /// One name in a directory.
    DirectoryEntry(AbsPath, Arc<[u8]>),
    /// The type, links not followed.
    Type(AbsPath),
    /// The type and whether it is executable: what an archive of it would say.
    Stat(AbsPath),
    /// The target of a link.
    Link(AbsPath),
    /// The path with links resolved.
    Resolve(AbsPath, Follow),
    /// The file that `import` reads.
    ExprPath(AbsPath),
    /// Whether `pathExists`; the flag asks for a directory.
    Exists(AbsPath, bool),
    /// An environment variable.
    Env(Arc<[u8]>),
    /// Where the search path has a name.
    SearchPath(SearchPath, Arc<[u8]>),
    /// The clock.
    Time,
    /// The home directory.
    Home,
    /// The directory the process runs in.
    CurrentDir,
    /// The system evaluated for.
    System,
    /// A setting that changes what expressions mean, by name.
    Setting(Arc<[u8]>),
    /// A fetched tree, by its reference.
    Tree(Arc<[u8]>),
    /// Validity and content of a store path.
    StorePath(Arc<[u8]>),
    /// The path of a built output: derivation and output name.
    Output(Arc<[u8]>, Arc<[u8]>),
    /// Where the tree of a role lies.
    Location(Arc<[u8]>),
    /// The code in a file, less what the large set binds that it gives ([`firn_syntax::Outline`]).
    Outline(AbsPath),
    /// What listings and files of bindings have under one name, all of them together.
    Member(Group, Arc<[u8]>),
    /// The value under a path of keys in a JSON or TOML document.
    Key(AbsPath, DocumentFormat, Names),
}

/// Listings and files of bindings that are seen name by name: the whole of each, as observed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Group {
    /// A set of observations of this process, by number.
    Made(u32),
    /// A set that is kept, by the digest of its node.
    Kept(Digest),
}

/// Names from the outside in.
pub type Names = Arc<[Arc<[u8]>]>;

/// The language of a document that is observed key by key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DocumentFormat {
    /// JSON.
    Json,
    /// TOML.
    Toml,
}

/// A question, the digest of its answer, and how long that may be trusted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Observation {
    /// What was asked.
    pub question: Question,
    /// The digest of what was answered.
    pub digest: Digest,
    /// How long the answer may be trusted.
    pub durability: Durability,
}

impl Observation {
    /// An observation made outside this crate, by a fetcher, a store or the settings.
    pub fn new(question: Question, digest: Digest, durability: Durability) -> Observation {
        Observation { question, digest, durability }
    }

    /// What reading a file tells besides its content: that it is one, and lies where its path says.
    pub fn of_file(path: &AbsPath, durability: Durability) -> [Observation; 2] {
        let is_regular = digest_type(path, &Ok(Some(FileType::Regular)));
        let lies_there = digest_path(PathKind::Resolve, path, &Ok(path.clone()));
        [(Question::Type(path.clone()), is_regular), (Question::Resolve(path.clone(), Follow::Full), lies_there)]
            .map(|(question, digest)| Observation { question, digest, durability })
    }

    /// The digest of an answer that is plain bytes, for questions answered outside this crate.
    pub fn digest_bytes(answer: Option<&[u8]>) -> Digest {
        digest_option("bytes", answer)
    }
}

impl Question {
    /// The path the question is about, if it is about one.
    pub fn path(&self) -> Option<&AbsPath> {
        use Question::*;
        match self {
            File(path) | Code(path) | Directory(path) | DirectoryEntry(path, _) | Type(path) | Stat(path) | Link(path)
            | Resolve(path, _) | ExprPath(path) | Exists(path, _) | Outline(path) | Key(path, ..) => Some(path),
            Env(_) | SearchPath(..) | Time | Home | CurrentDir | System | Setting(_) | Tree(_) | StorePath(_)
            | Output(..) | Location(_) | Member(..) => None,
        }
    }

    /// As [`Question::ask`] where it is known that a file with bytes of the first digest has code of the second.
    pub fn ask_knowing(&self, host: &(impl Host + ?Sized), known: Option<(Digest, Digest)>) -> Option<Digest> {
        let (Question::Code(path), Some((text, code))) = (self, known) else { return self.ask(host) };
        let answer = host.read_file(path);
        Some(if digest_file(path, &answer) == text { code } else { digest_code(path, &answer) })
    }

    /// Asks the host again and digests the answer. None for questions this crate cannot answer, among them a search
    /// path lookup that would have to fetch something.
    pub fn ask(&self, host: &(impl Host + ?Sized)) -> Option<Digest> {
        use Question::*;
        Some(match self {
            File(path) => digest_file(path, &host.read_file(path)),
            Code(path) => digest_code(path, &host.read_file(path)),
            // What is no longer cut, or has an error, has no outline.
            Outline(path) => digest_rest(&firn_syntax::outline_of_sound(&host.read_file(path).ok()?.shared())?.rest),
            Directory(path) => digest_listing(path, &host.read_dir(path)),
            DirectoryEntry(path, name) => digest_entry(path, &host.dir_entry(path, name)),
            Type(path) => digest_type(path, &host.file_type(path)),
            Stat(path) => digest_stat(path, &host.lstat(path)),
            Link(path) => digest_link(path, &host.read_link(path)),
            Resolve(path, follow) => digest_path(PathKind::Resolve, path, &host.resolve_symlinks(path, *follow)),
            ExprPath(path) => digest_path(PathKind::Import, path, &host.resolve_expr_path(path)),
            Exists(path, must_be_dir) => digest_exists(path, &host.path_exists(path, *must_be_dir)),
            Env(name) => digest_option("env", host.env(name).as_deref()),
            SearchPath(search, name) => {
                let fetches = NoFetch::default();
                let answer = host.find_file(search, name, &fetches);
                if fetches.wanted.load(std::sync::atomic::Ordering::Relaxed) {
                    return None;
                }
                digest_found(search, &answer)
            }
            Time => digest_time(host.current_time()),
            Home => digest_home(&host.home()),
            CurrentDir => digest_path(PathKind::CurrentDir, &AbsPath::root(), &host.current_dir()),
            System | Setting(_) | Tree(_) | StorePath(_) | Output(..) | Location(_) | Member(..) | Key(..) => {
                return None;
            }
        })
    }
}

/// Notes that a lookup wanted to fetch, and lets it fail quietly.
#[derive(Default)]
struct NoFetch {
    wanted: std::sync::atomic::AtomicBool,
}

impl EntrySource for NoFetch {
    fn fetch(&self, _url: PseudoUrl<'_>) -> Result<Option<AbsPath>, HostError> {
        self.wanted.store(true, std::sync::atomic::Ordering::Relaxed);
        Ok(None)
    }
    fn warn(&self, _message: &[u8]) {}
}

/// Questions that are answered with a path.
#[derive(Clone, Copy)]
pub(crate) enum PathKind {
    Resolve,
    Import,
    CurrentDir,
}

impl PathKind {
    fn name(self) -> &'static str {
        match self {
            PathKind::Resolve => "resolve",
            PathKind::Import => "import",
            PathKind::CurrentDir => "cwd",
        }
    }
}

/// Digests a failure, or leaves the answer to `ok`.
fn digest_result<T>(asked: &AbsPath, answer: &Result<T, HostError>, ok: impl FnOnce(&T) -> Digest) -> Digest {
    match answer {
        Ok(answer) => ok(answer),
        Err(error) => {
            let mut fold = Fold::new("failure");
            error.fold(asked, &mut fold);
            fold.finish()
        }
    }
}

pub(crate) fn digest_file(asked: &AbsPath, answer: &Result<FileContent, HostError>) -> Digest {
    digest_result(asked, answer, FileContent::digest)
}

/// The digest of a file's code; what is no text of the language is told apart by its bytes.
pub(crate) fn digest_code(asked: &AbsPath, answer: &Result<FileContent, HostError>) -> Digest {
    digest_result(asked, answer, |content| match firn_syntax::essence(content.bytes()) {
        Some(essence) => digest_essence(&essence),
        None => digest_no_code(content.bytes()),
    })
}

/// The digest of code by the tokens of its text.
pub(crate) fn digest_essence(essence: &[u8]) -> Digest {
    Fold::new("code").finish_with(essence)
}

/// The digest that stands for that of code where a text has none.
pub(crate) fn digest_no_code(bytes: &[u8]) -> Digest {
    Fold::new("no code").finish_with(bytes)
}

/// The digest of what stands around the bindings of a file.
pub(crate) fn digest_rest(rest: &[u8]) -> Digest {
    Fold::new("outline").finish_with(rest)
}

/// The digest of the tokens of a binding.
pub fn digest_binding(code: &[u8]) -> Digest {
    Fold::new("binding").finish_with(code)
}

pub(crate) fn digest_listing(asked: &AbsPath, answer: &Result<Listing, HostError>) -> Digest {
    digest_result(asked, answer, Listing::digest)
}

pub(crate) fn digest_entry(asked: &AbsPath, answer: &Result<Option<Entry>, HostError>) -> Digest {
    digest_result(asked, answer, |entry| match entry {
        Some((_name, file_type)) => digest_entry_type(*file_type),
        None => Fold::new("entry").number(-1).finish(),
    })
}

/// The digest of an entry that is there, of this type.
pub fn digest_entry_type(file_type: Option<FileType>) -> Digest {
    static TYPES: LazyLock<[Digest; TYPE_TAGS]> = LazyLock::new(|| std::array::from_fn(|tag| Fold::new("entry").number(tag as i64).finish()));
    TYPES[usize::from(type_tag(file_type))]
}

pub(crate) fn digest_type(asked: &AbsPath, answer: &Result<Option<FileType>, HostError>) -> Digest {
    static TYPES: LazyLock<[Digest; TYPE_TAGS]> = LazyLock::new(|| std::array::from_fn(|tag| Fold::new("type").tag(tag as u8).finish()));
    digest_result(asked, answer, |file_type| TYPES[usize::from(type_tag(*file_type))])
}

pub(crate) fn digest_stat(asked: &AbsPath, answer: &Result<Option<Stat>, HostError>) -> Digest {
    // PERF: what is asked of most files: a hundredth of verifying a thousand packages.
    static STATS: LazyLock<[[Digest; 2]; TYPE_TAGS]> = LazyLock::new(|| {
        std::array::from_fn(|tag| [0, 1].map(|executable| Fold::new("stat").tag(tag as u8).tag(executable).finish()))
    });
    digest_result(asked, answer, |stat| match *stat {
        // The stamp is how an answer is vouched for, no part of it.
        Some(Stat { file_type, executable, stamp: _ }) => STATS[usize::from(type_tag(Some(file_type)))][usize::from(executable)],
        None => Fold::new("stat").tag(type_tag(None)).finish(),
    })
}

pub(crate) fn digest_link(asked: &AbsPath, answer: &Result<Arc<[u8]>, HostError>) -> Digest {
    digest_result(asked, answer, |target| Fold::new("link").bytes(target).finish())
}

pub(crate) fn digest_path(kind: PathKind, asked: &AbsPath, answer: &Result<AbsPath, HostError>) -> Digest {
    // PERF: nearly every path is itself, or a directory whose `default.nix` is meant.
    static USUAL: LazyLock<[[Digest; 2]; 3]> = LazyLock::new(|| {
        let kinds = [PathKind::Resolve, PathKind::Import, PathKind::CurrentDir];
        kinds.map(|kind| [&b"."[..], b"default.nix"].map(|way| Fold::new(kind.name()).bytes(way).finish()))
    });
    digest_result(asked, answer, |path| match path.as_bytes().strip_prefix(asked.as_bytes()) {
        Some(b"") => USUAL[kind as usize][0],
        Some(b"/default.nix") => USUAL[kind as usize][1],
        _ => Fold::new(kind.name()).bytes(&asked.relative_to(path)).finish(),
    })
}

pub(crate) fn digest_exists(asked: &AbsPath, answer: &Result<bool, HostError>) -> Digest {
    static EXISTS: LazyLock<[Digest; 2]> = LazyLock::new(|| [0, 1].map(|exists| Fold::new("exists").tag(exists).finish()));
    digest_result(asked, answer, |exists| EXISTS[usize::from(*exists)])
}

pub(crate) fn digest_option(kind: &str, answer: Option<&[u8]>) -> Digest {
    let mut fold = Fold::new(kind);
    match answer {
        Some(bytes) => fold.tag(1).bytes(bytes),
        None => fold.tag(0),
    };
    fold.finish()
}

/// What was found is named by the entry it lies below, if there is one.
pub(crate) fn digest_found(search: &SearchPath, answer: &Result<Found, HostError>) -> Digest {
    let below = |path: &AbsPath| {
        search.entries.iter().enumerate().find_map(|(number, entry)| {
            let rest = path.as_bytes().strip_prefix(&*entry.path)?;
            matches!(rest, [] | [b'/', ..]).then(|| (number as i64, rest.to_vec()))
        })
    };
    digest_result(&AbsPath::root(), answer, |found| match found {
        Found::Path(path) => match below(path) {
            Some((number, rest)) => Fold::new("search path").tag(2).number(number).bytes(&rest).finish(),
            None => Fold::new("search path").tag(0).bytes(path.as_bytes()).finish(),
        },
        Found::Builtin(path) => Fold::new("search path").tag(1).bytes(path.as_bytes()).finish(),
    })
}

pub(crate) fn digest_time(now: i64) -> Digest {
    Fold::new("time").number(now).finish()
}

pub(crate) fn digest_home(answer: &Result<Arc<[u8]>, HostError>) -> Digest {
    digest_result(&AbsPath::root(), answer, |home| Fold::new("home").bytes(home).finish())
}
