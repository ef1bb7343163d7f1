//! Observations in words: what `firn why`, `firn affected` and `firn watch` say of them, and their JSON.

use firn_host::{AbsPath, DocumentFormat, Durability, MemoryHost, MemoryWorld, Names, Observation, Question};
use firn_memo::kept::{Change, ENTRY, HERE, Roles};
use firn_text::json::Tree;
use std::collections::BTreeMap;

/// A path as people know it: from the tree that is evaluated, or in full where it lies elsewhere.
pub fn shown(path: &AbsPath, roles: &Roles) -> String {
    let (role, rest) = roles.place(path);
    let text = match (role, rest) {
        (ENTRY | HERE, b"") => b".",
        (ENTRY | HERE, rest) => rest.strip_prefix(b"/").unwrap_or(rest),
        _ => path.as_bytes(),
    };
    String::from_utf8_lossy(text).into_owned()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn dotted(names: &Names) -> String {
    names.iter().map(|name| lossy(name)).collect::<Vec<_>>().join(".")
}

/// Whether the answer was that there is nothing.
pub fn is_absence(observation: &Observation) -> bool {
    nothing(&observation.question) == Some(observation.digest)
}

/// The digest of the answer where there is nothing at all.
fn nothing(question: &Question) -> Option<firn_host::Digest> {
    question.ask(&MemoryHost::new(MemoryWorld::new()))
}

/// What was asked about a path, in a word or two.
pub fn about_path(observation: &Observation) -> String {
    let text = match &observation.question {
        Question::File(_) => "read",
        Question::Code(_) => "code",
        Question::Directory(_) => "listed",
        Question::DirectoryEntry(_, name) => return format!("entry {}", lossy(name)),
        Question::Type(_) => "type",
        Question::Stat(_) => "type and mode",
        Question::Link(_) => "link",
        Question::Resolve(..) => "links",
        Question::ExprPath(_) => "import",
        Question::Exists(..) => "existence",
        Question::Outline(_) => "code around bindings",
        Question::Key(_, _, names) => return format!("key {}", dotted(names)),
        _ => "",
    };
    if is_absence(observation) { format!("{text}, not there") } else { text.to_owned() }
}

/// What was asked that is about no path: the heading it stands under, and its name.
pub fn about_name(question: &Question) -> Option<(&'static str, String)> {
    Some(match question {
        Question::Env(name) => ("environment", lossy(name)),
        Question::Home => ("environment", "home directory".to_owned()),
        Question::CurrentDir => ("environment", "current directory".to_owned()),
        Question::Time => ("environment", "time".to_owned()),
        Question::SearchPath(_, name) => ("search path", format!("<{}>", lossy(name))),
        Question::System => ("settings", "system".to_owned()),
        Question::Setting(name) => ("settings", lossy(name)),
        Question::Tree(reference) => ("fetched trees", lossy(reference)),
        Question::StorePath(path) => ("store objects", lossy(path)),
        Question::Output(drv, output) => ("store objects", format!("{}!{}", lossy(drv), lossy(output))),
        Question::Location(role) => ("places of trees", lossy(role)),
        Question::Member(_, name) => ("names looked up", lossy(name)),
        _ => return None,
    })
}

/// What became of an observation, as a sentence.
pub fn sentence(change: &Change, roles: &Roles) -> String {
    let question = &change.before.question;
    let none = nothing(question);
    let (was_there, is_there) = (none != Some(change.before.digest), none != change.now && change.now.is_some());
    let path = question.path().map(|path| shown(path, roles)).unwrap_or_default();
    let came_or = |what: &str, name: &str, other: String| match (was_there, is_there) {
        (false, true) => format!("{what}{name} appeared"),
        (true, false) => format!("{what}{name} disappeared"),
        _ => other + &digests(change),
    };
    match question {
        Question::File(_) => came_or("file ", &path, format!("content of {path} changed")),
        Question::Code(_) => came_or("file ", &path, format!("code in {path} changed")),
        Question::Directory(_) => came_or("directory ", &path, format!("listing of {path} changed")),
        Question::DirectoryEntry(_, name) => {
            let entry = format!("{path}/{}", lossy(name));
            came_or("", &entry, format!("type of {entry} changed"))
        }
        Question::Type(_) | Question::Exists(..) => came_or("", &path, format!("type of {path} changed")),
        Question::Stat(_) => came_or("", &path, format!("type or mode of {path} changed")),
        Question::Link(_) => came_or("link ", &path, format!("link {path} leads elsewhere")),
        Question::Resolve(..) => format!("links on the way to {path} lead elsewhere") + &digests(change),
        Question::ExprPath(_) => came_or("", &path, format!("importing {path} reads another file")),
        Question::Key(_, _, names) => format!("{} in {path} changed", dotted(names)) + &digests(change),
        Question::Outline(_) => came_or("file ", &path, format!("code around the bindings of {path} changed")),
        Question::Member(_, name) => format!("what is called {} changed", lossy(name)) + &digests(change),
        Question::Env(name) => {
            let name = lossy(name);
            match (was_there, is_there) {
                (false, true) => format!("variable {name} was set"),
                (true, false) => format!("variable {name} was unset"),
                _ => format!("variable {name} changed") + &digests(change),
            }
        }
        Question::SearchPath(_, name) => format!("<{}> is found elsewhere", lossy(name)) + &digests(change),
        Question::Home => "the home directory changed".to_owned() + &digests(change),
        Question::CurrentDir => "the current directory changed".to_owned() + &digests(change),
        Question::StorePath(path) if change.now.is_none() => format!("store object {} is gone", lossy(path)),
        Question::StorePath(path) => format!("store object {} changed", lossy(path)) + &digests(change),
        Question::Location(role) => format!("the tree called {} lies elsewhere", lossy(role)) + &digests(change),
        _ => match about_name(question) {
            Some((_, name)) => format!("{name} cannot be asked again"),
            None => "something changed".to_owned(),
        },
    }
}

/// The beginnings of both digests.
fn digests(change: &Change) -> String {
    let short = |digest: &firn_host::Digest| digest.to_string()[..8].to_owned();
    let now = change.now.as_ref().map_or_else(|| "unknown".to_owned(), short);
    format!(" ({} → {now})", short(&change.before.digest))
}

/// The word for a kind of question in JSON.
fn kind(question: &Question) -> &'static str {
    match question {
        Question::File(_) => "file",
        Question::Code(_) => "code",
        Question::Directory(_) => "directory",
        Question::DirectoryEntry(..) => "entry",
        Question::Type(_) => "type",
        Question::Stat(_) => "mode",
        Question::Link(_) => "link",
        Question::Resolve(..) => "links",
        Question::ExprPath(_) => "import",
        Question::Exists(..) => "existence",
        Question::Env(_) => "variable",
        Question::SearchPath(..) => "searchPath",
        Question::Time => "time",
        Question::Home => "home",
        Question::CurrentDir => "currentDirectory",
        Question::System => "system",
        Question::Setting(_) => "setting",
        Question::Tree(_) => "tree",
        Question::StorePath(_) => "storeObject",
        Question::Output(..) => "output",
        Question::Location(_) => "place",
        Question::Outline(_) => "outline",
        Question::Member(..) => "member",
        Question::Key(..) => "key",
    }
}

/// An object of JSON.
pub fn object(entries: impl IntoIterator<Item = (&'static str, Tree)>) -> Tree {
    Tree::Object(entries.into_iter().map(|(name, value)| (name.as_bytes().to_vec(), value)).collect())
}

/// Text of JSON; what is no UTF-8 is replaced.
pub fn text(bytes: &[u8]) -> Tree {
    Tree::text(&String::from_utf8_lossy(bytes))
}

fn question_json(question: &Question, roles: &Roles) -> BTreeMap<Vec<u8>, Tree> {
    let mut entries = BTreeMap::from([(b"kind".to_vec(), Tree::text(kind(question)))]);
    if let Some(path) = question.path() {
        let (role, rest) = roles.place(path);
        entries.insert(b"path".to_vec(), text(path.as_bytes()));
        entries.insert(b"role".to_vec(), Tree::text(role));
        entries.insert(b"place".to_vec(), text(rest));
    }
    let name = match question {
        Question::DirectoryEntry(_, name)
        | Question::Env(name)
        | Question::SearchPath(_, name)
        | Question::Setting(name)
        | Question::Tree(name)
        | Question::StorePath(name)
        | Question::Location(name)
        | Question::Member(_, name) => text(name),
        Question::Output(drv, output) => text(&[drv, &b"!"[..], output].concat()),
        Question::Key(_, _, names) => Tree::List(names.iter().map(|name| text(name)).collect()),
        _ => Tree::Null,
    };
    if name != Tree::Null {
        entries.insert(b"name".to_vec(), name);
    }
    if let Question::Key(_, format, _) = question {
        let format = if *format == DocumentFormat::Json { "json" } else { "toml" };
        entries.insert(b"format".to_vec(), Tree::text(format));
    }
    entries
}

/// An observation as JSON.
pub fn json(observation: &Observation, roles: &Roles) -> Tree {
    let Observation { question, digest, durability } = observation;
    let mut entries = question_json(question, roles);
    let durability = match durability {
        Durability::Low => "low",
        Durability::Medium => "medium",
        Durability::High => "high",
    };
    entries.insert(b"digest".to_vec(), Tree::text(&digest.to_string()));
    entries.insert(b"durability".to_vec(), Tree::text(durability));
    entries.insert(b"absent".to_vec(), Tree::Bool(is_absence(observation)));
    Tree::Object(entries)
}

/// A change as JSON.
pub fn change_json(change: &Change, roles: &Roles) -> Tree {
    let mut entries = question_json(&change.before.question, roles);
    entries.insert(b"before".to_vec(), Tree::text(&change.before.digest.to_string()));
    let now = change.now.map_or(Tree::Null, |digest| Tree::text(&digest.to_string()));
    entries.insert(b"now".to_vec(), now);
    entries.insert(b"text".to_vec(), Tree::text(&sentence(change, roles)));
    Tree::Object(entries)
}
