//! The question that a command line asks, in the words of memory: settings by name, search path and trees by role.

use crate::session::Session;
use firn_eval::{Features, Settings};
use firn_flake::LockedFlake;
use firn_host::AbsPath;
use firn_host::fetch::Attr;
use firn_memo::kept::{Argument, Asked, Entry};
use firn_syntax::Lint;
use std::collections::BTreeMap;

/// The question about an attribute of an entry, to be answered in a form; trees get their roles. `applies` says that the form
/// has an expression in it, which is seen from the current directory.
pub fn ask(session: &Session, entry: Entry, attribute: &[u8], form: &[u8], applies: bool) -> Asked {
    let mut settings = settings(&session.machine.shared.settings);
    // Those who want to hear less are not told some of what is remembered with an answer.
    settings.insert("quiet".to_owned(), (session.verbosity < 1).to_string().into_bytes());
    let (search, trees) = search_path(session);
    settings.insert("search-path".to_owned(), search);
    let expressions = session.asked_arguments.values().any(|argument| matches!(argument, Argument::Expression(_)));
    let base = if expressions || applies { session.here().ok() } else { None };
    if let Some(memory) = &session.memory {
        memory.name_trees(&entry, base.as_ref(), &trees);
    }
    Asked { entry, base, attribute: attribute.to_vec(), form: form.to_vec(), arguments: session.asked_arguments.clone(), settings }
}

/// Every setting that changes what expressions mean. Taken apart in full: a new one breaks the build here.
fn settings(settings: &Settings) -> BTreeMap<String, Vec<u8>> {
    let Settings {
        max_call_depth,
        pure_eval,
        restrict_eval,
        system,
        store_dir,
        show_trace,
        trace_verbose,
        abort_on_warn,
        allow_import_from_derivation,
        trace_import_from_derivation,
        // By role, in `search_path`.
        nix_path: _,
        features,
        syntax,
        // Nothing but time tells.
        memo: _,
        allowed_uris,
    } = settings;
    let Features {
        flakes,
        fetch_tree,
        fetch_closure,
        dynamic_derivations,
        ca_derivations,
        impure_derivations,
        parse_toml_timestamps,
        blake3_hashes,
        git_hashing,
        memoise,
    } = features;
    let firn_syntax::Features { pipe_operators, url_literals, absolute_path_literals, short_path_literals } = syntax;
    let lint = |lint: &Lint| match lint {
        Lint::Ignore => "ignore".to_owned(),
        Lint::Warn => "warn".to_owned(),
        Lint::Fatal => "fatal".to_owned(),
    };
    let all = [
        ("max-call-depth", max_call_depth.to_string()),
        ("pure-eval", pure_eval.to_string()),
        ("restrict-eval", restrict_eval.to_string()),
        ("system", system.clone()),
        ("store-dir", store_dir.clone()),
        ("show-trace", show_trace.to_string()),
        ("trace-verbose", trace_verbose.to_string()),
        ("abort-on-warn", abort_on_warn.to_string()),
        ("allow-import-from-derivation", allow_import_from_derivation.to_string()),
        ("trace-import-from-derivation", trace_import_from_derivation.to_string()),
        ("allowed-uris", allowed_uris.join(" ")),
        ("flakes", flakes.to_string()),
        ("fetch-tree", fetch_tree.to_string()),
        ("fetch-closure", fetch_closure.to_string()),
        ("dynamic-derivations", dynamic_derivations.to_string()),
        ("ca-derivations", ca_derivations.to_string()),
        ("impure-derivations", impure_derivations.to_string()),
        ("parse-toml-timestamps", parse_toml_timestamps.to_string()),
        ("blake3-hashes", blake3_hashes.to_string()),
        ("git-hashing", git_hashing.to_string()),
        ("memoise", memoise.to_string()),
        ("pipe-operators", pipe_operators.to_string()),
        ("lint-url-literals", lint(url_literals)),
        ("lint-absolute-path-literals", lint(absolute_path_literals)),
        ("lint-short-path-literals", lint(short_path_literals)),
    ];
    all.into_iter().map(|(name, value)| (name.to_owned(), value.into_bytes())).collect()
}

/// The search path with its trees by role, and the trees.
fn search_path(session: &Session) -> (Vec<u8>, Vec<(String, AbsPath)>) {
    let (mut text, mut trees) = (Vec::new(), Vec::new());
    for (index, entry) in session.resolved.search.entries.iter().enumerate() {
        let tree = AbsPath::new(&entry.path).ok().filter(|path| path.as_bytes() == &*entry.path && !path.is_root());
        text.extend_from_slice(&entry.prefix);
        match tree {
            // The number keeps two entries of one name apart.
            Some(tree) => {
                let role = format!("search:{index}:{}", String::from_utf8_lossy(&entry.prefix));
                text.extend_from_slice(format!("={role}").as_bytes());
                trees.push((role, tree));
            }
            None => {
                text.push(b'=');
                text.extend_from_slice(&entry.path);
            }
        }
        text.push(0);
    }
    text.push(session.resolved.search.pure.into());
    (text, trees)
}

/// A flake by everything that evaluation can see of it: its tree, what is known of that, and its locked inputs. None if
/// something in it is not pinned.
pub fn flake(flake: &LockedFlake) -> Option<Entry> {
    if flake.lock_file.unlocked(true).is_some() {
        return None;
    }
    let about = &flake.flake;
    about.locked.input.text("narHash")?;
    let mut text = format!("{};{};", about.locked.dir, about.force_dirty);
    for (name, value) in &about.locked.input.attrs {
        match (name.as_str(), value) {
            // Where the tree was found cannot be seen from inside.
            ("url" | "path", _) => {}
            (_, Attr::Text(value)) => text.push_str(&format!("{name}={value};")),
            (_, Attr::Number(value)) => text.push_str(&format!("{name}={value};")),
            (_, Attr::Flag(value)) => text.push_str(&format!("{name}={value};")),
            (_, Attr::Lazy(_)) => text.push_str(&format!("{name};")),
        }
    }
    text.push_str(&flake.lock_file.print().ok()?);
    let mut bytes = text.into_bytes();
    for (node, place) in &flake.places {
        bytes.extend_from_slice(format!(";{node}=").as_bytes());
        bytes.extend_from_slice(place.as_bytes());
    }
    Some(Entry::Flake(bytes))
}
