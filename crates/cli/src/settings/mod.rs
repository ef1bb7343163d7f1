//! Settings as resolved: `nix.conf`, the user's files, `NIX_CONFIG`, then the flags, each over the ones before.

pub mod config;
mod fetching;
mod file;
mod memo;
pub mod remote;
pub mod table;

use crate::failure::Failure;
use crate::flags::Flags;
use config::Config;
pub use config::Origin;
pub use fetching::FlakeSettings;
pub use memo::{Memo, MemoMode};
use firn_eval::{Features, Settings};
use firn_host::{AbsPath, DefaultPaths, Host, SearchEntry, SearchPath};
use firn_syntax::Lint;
use std::collections::BTreeMap;

/// Everything that a command needs to know before it begins.
#[derive(Debug)]
pub struct Resolved {
    /// What the machine is told.
    pub eval: Settings,
    /// The search path.
    pub search: SearchPath,
    /// The store that derivations are written to, if one is named.
    pub store: Option<Vec<u8>>,
    /// When the store is written.
    pub writes: Writes,
    /// What was set that stores and builders look at.
    pub building: BTreeMap<String, Vec<u8>>,
    /// What the fetchers are told.
    pub fetch: firn_host::fetch::FetchSettings,
    /// What is said about flakes.
    pub flake: FlakeSettings,
    /// Whether pure evaluation was asked for by name.
    pub pure_by_name: bool,
    /// What is remembered.
    pub memo: Memo,
    /// Calls are printed as they begin and end.
    pub trace_function_calls: bool,
    /// The profile that `eval-profiler` asks for.
    pub profile: Option<crate::profile::Request>,
}

/// When derivations and sources are written to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// Never: paths are computed.
    Never,
    /// When evaluation must build something that needs them.
    WhenNeeded,
    /// As they are made; before an answer is given, all of them.
    AtOnce,
}

/// Settings that stores and builders look at, and that a daemon is told if they are set.
const BUILDING: [&str; 38] = [
    "allow-symlinked-store", "always-allow-substitutes", "build-poll-interval", "builders", "builders-use-substitutes",
    "compress-build-log", "connect-timeout", "cores", "extra-platforms", "fallback", "filter-syscalls", "fsync-metadata",
    "fsync-store-paths", "hashed-mirrors", "http-connections", "http2", "impersonate-linux-26", "keep-build-log", "keep-failed",
    "keep-going", "log-lines", "max-build-log-size", "max-jobs", "max-silent-time", "netrc-file", "post-build-hook",
    "require-sigs", "sandbox", "sandbox-build-dir", "sandbox-fallback", "sandbox-paths", "substitute", "substituters",
    "system-features", "timeout", "trusted-public-keys", "use-cgroups", "use-sqlite-wal",
];

/// Reads the files and applies the flags. `pure` is the command's own idea of pure evaluation.
pub fn resolve(host: &dyn Host, flags: &Flags, pure: bool, warn: &dyn Fn(&[u8])) -> Result<Resolved, Failure> {
    let config = configure(host, flags, warn)?;
    for feature in &flags.needs {
        config.require_feature(feature)?;
    }
    let named_pure = config.flag("pure-eval");
    let pure_eval = !flags.impure && named_pure.unwrap_or(pure);
    let restrict_eval = config.flag("restrict-eval").unwrap_or(false);
    let search = if pure_eval {
        SearchPath { pure: true, ..SearchPath::default() }
    } else {
        search_path(host, flags, &config, restrict_eval)?
    };
    let mut eval = eval_settings(host, &config, pure_eval, restrict_eval, &search);
    let mut memo = memo::resolve(host, flags)?;
    let (profile, traces) = (profile(&config)?, config.flag("trace-function-calls").unwrap_or(false));
    // Calls that are not made are neither counted nor told.
    let measured = profile.is_some() || crate::session::counts_calls(host);
    memo.keeps_answers &= !measured && !traces;
    let plain = flags.without_memo || traces || measured && memo.mode != MemoMode::Run;
    eval.memo = if plain { firn_memo::Mode::Off } else { memo.mode.within_a_run() };
    Ok(Resolved {
        eval,
        search,
        store: config.text("store").map(<[u8]>::to_vec).or_else(|| non_empty(host, b"NIX_REMOTE")),
        writes: match (flags.read_only, flags.writes_at_once) {
            (true, _) => Writes::Never,
            (false, true) => Writes::AtOnce,
            (false, false) => Writes::WhenNeeded,
        },
        building: building(&config),
        fetch: fetching::fetch_settings(host, flags, &config),
        flake: fetching::flake_settings(&config),
        pure_by_name: named_pure == Some(true),
        memo,
        trace_function_calls: traces,
        profile,
    })
}

/// The settings that are set, and where each came from.
pub fn origins(host: &dyn Host, flags: &Flags, warn: &dyn Fn(&[u8])) -> Result<Vec<Origin>, Failure> {
    Ok(configure(host, flags, warn)?.origins())
}

/// Applies files, variables and flags.
fn configure(host: &dyn Host, flags: &Flags, warn: &dyn Fn(&[u8])) -> Result<Config, Failure> {
    let mut config = Config::default();
    file::read_all(host, &mut config, warn)?;
    config.from_now_on("command line");
    for given in &flags.overrides {
        match config.set(&given.name, &given.value, warn) {
            Err(message) if given.by_option => warn(&message),
            Err(message) => return Err(Failure::Usage(message)),
            Ok(()) => {}
        }
    }
    config.warn_unknown(warn);
    Ok(config)
}

/// NIX: `eval-profiler = flamegraph` leaves collapsed stacks in a file.
fn profile(config: &Config) -> Result<Option<crate::profile::Request>, Failure> {
    match config.text("eval-profiler") {
        None | Some(b"disabled" | b"") => return Ok(None),
        Some(b"flamegraph") => {}
        Some(other) => return Err(Failure::usage("option 'eval-profiler' has an unrecognised value '", other, "'")),
    }
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.trim().parse::<u64>().ok();
    let frequency = config.text("eval-profiler-frequency").and_then(number).filter(|n| *n > 0).unwrap_or(99);
    let file = config.text("eval-profile-file").unwrap_or(b"nix.profile").to_vec();
    let grain = firn_eval::Grain::Sampled(std::time::Duration::from_nanos(1_000_000_000 / frequency));
    Ok(Some(crate::profile::Request { grain, collapsed: Some(file), svg: None, rows: 0 }))
}

fn building(config: &Config) -> BTreeMap<String, Vec<u8>> {
    let value = |name: &str| {
        let text = config.text(name)?;
        let is_flag = table::find(name).is_some_and(|index| table::SETTINGS[index].kind == table::Kind::Bool);
        let flag = || if config.flag(name) == Some(true) { b"true".to_vec() } else { b"false".to_vec() };
        let jobs = || std::thread::available_parallelism().map_or(1, usize::from).to_string().into_bytes();
        Some(match text {
            _ if is_flag => flag(),
            b"auto" if name == "max-jobs" => jobs(),
            text => text.to_vec(),
        })
    };
    BUILDING.iter().filter_map(|&name| Some((name.to_owned(), value(name)?))).collect()
}

fn non_empty(host: &dyn Host, name: &[u8]) -> Option<Vec<u8>> {
    host.env(name).filter(|value| !value.is_empty()).map(|value| value.to_vec())
}

fn search_path(host: &dyn Host, flags: &Flags, config: &Config, restricted: bool) -> Result<SearchPath, Failure> {
    let setting: Vec<SearchEntry> = config.words("nix-path").map(SearchEntry::parse).collect();
    let defaults = if restricted { None } else { default_paths(host, config) };
    SearchPath::of_run(host, &flags.include, &setting, defaults.as_ref()).map_err(host_failure)
}

/// Where channels lie; none where there is no home to look in.
fn default_paths(host: &dyn Host, config: &Config) -> Option<DefaultPaths> {
    let home = AbsPath::new(&host.home().ok()?).ok()?;
    let def_expr = if config.flag("use-xdg-base-directories").unwrap_or(false) {
        let state = match non_empty(host, b"XDG_STATE_HOME") {
            Some(dir) => AbsPath::new(&dir).ok()?,
            None => home.beneath(b".local/state").ok()?,
        };
        state.beneath(b"nix/defexpr").ok()?
    } else {
        home.beneath(b".nix-defexpr").ok()?
    };
    let state_dir = non_empty(host, b"NIX_STATE_DIR").unwrap_or_else(|| b"/nix/var/nix".to_vec());
    Some(DefaultPaths { def_expr, state_dir: AbsPath::new(&state_dir).ok()? })
}

/// An error of the outside world that stops a command before evaluation begins.
pub fn host_failure(error: firn_host::HostError) -> Failure {
    Failure::error(error.to_bytes())
}

fn eval_settings(host: &dyn Host, config: &Config, pure_eval: bool, restrict_eval: bool, search: &SearchPath) -> Settings {
    let defaults = Settings::default();
    let flag = |name: &str, default: bool| config.flag(name).unwrap_or(default);
    let text = |name: &str| config.text(name).filter(|t| !t.is_empty()).map(|t| String::from_utf8_lossy(t).into_owned());
    let abort_on_warn = non_empty(host, b"NIX_ABORT_ON_WARN").is_some_and(|v| matches!(&v[..], b"1" | b"yes" | b"true"));
    let store_dir = non_empty(host, b"NIX_STORE_DIR").or_else(|| non_empty(host, b"NIX_STORE"));
    Settings {
        max_call_depth: config.number("max-call-depth").map_or(defaults.max_call_depth, |n| n.min(u32::MAX.into()) as u32),
        pure_eval,
        restrict_eval,
        system: text("eval-system").or_else(|| text("system")).unwrap_or_else(this_system),
        store_dir: store_dir.map_or(defaults.store_dir, |dir| String::from_utf8_lossy(&dir).into_owned()),
        show_trace: flag("show-trace", false),
        trace_verbose: flag("trace-verbose", false),
        abort_on_warn: flag("abort-on-warn", abort_on_warn),
        allow_import_from_derivation: flag("allow-import-from-derivation", true),
        trace_import_from_derivation: flag("trace-import-from-derivation", false),
        nix_path: search.entries.iter().map(entry_text).collect(),
        features: features(config),
        syntax: syntax_features(config),
        memo: defaults.memo,
        allowed_uris: config.words("allowed-uris").map(|uri| String::from_utf8_lossy(uri).into_owned()).collect(),
    }
}

fn entry_text(entry: &SearchEntry) -> Vec<u8> {
    if entry.prefix.is_empty() { entry.path.to_vec() } else { [&entry.prefix[..], b"=", &entry.path].concat() }
}

fn features(config: &Config) -> Features {
    let has = |name| config.has_feature(name);
    Features {
        flakes: has("flakes"),
        fetch_tree: has("fetch-tree"),
        fetch_closure: has("fetch-closure"),
        dynamic_derivations: has("dynamic-derivations"),
        ca_derivations: has("ca-derivations"),
        impure_derivations: has("impure-derivations"),
        parse_toml_timestamps: has("parse-toml-timestamps"),
        blake3_hashes: has("blake3-hashes"),
        git_hashing: has("git-hashing"),
        memoise: has("memoise"),
    }
}

fn syntax_features(config: &Config) -> firn_syntax::Features {
    let lint = |name: &str| match config.text(name) {
        Some(b"warn") => Lint::Warn,
        Some(b"fatal") => Lint::Fatal,
        _ => Lint::Ignore,
    };
    let mut short_path_literals = lint("lint-short-path-literals");
    if config.text("lint-short-path-literals").is_none() && config.flag("warn-short-path-literals") == Some(true) {
        short_path_literals = Lint::Warn;
    }
    firn_syntax::Features {
        pipe_operators: config.has_feature("pipe-operators"),
        url_literals: lint("lint-url-literals"),
        absolute_path_literals: lint("lint-absolute-path-literals"),
        short_path_literals,
    }
}

/// This machine, as Nix names it.
fn this_system() -> String {
    let arch = match std::env::consts::ARCH {
        "x86" => "i686",
        "arm" => "armv7l",
        "powerpc64" => "powerpc64le",
        other => other,
    };
    let os = if std::env::consts::OS == "macos" { "darwin" } else { std::env::consts::OS };
    format!("{arch}-{os}")
}
