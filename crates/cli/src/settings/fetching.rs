//! Settings of fetchers and flakes.

use super::config::Config;
use super::non_empty;
use crate::flags::Flags;
use firn_host::Host;
use firn_host::fetch::FetchSettings;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

/// What the settings say about flakes, beyond fetching them.
#[derive(Clone, Debug, Default)]
pub struct FlakeSettings {
    /// Settings that a flake asks for take effect.
    pub accept_config: bool,
    /// Registries may be looked into.
    pub use_registries: bool,
    /// The first line of commit messages of lock files.
    pub commit_summary: String,
}

pub(super) fn flake_settings(config: &Config) -> FlakeSettings {
    FlakeSettings {
        accept_config: config.flag("accept-flake-config").unwrap_or(false),
        use_registries: config.flag("use-registries").unwrap_or(true),
        commit_summary: text(config, "commit-lock-file-summary").unwrap_or_default(),
    }
}

pub(super) fn fetch_settings(host: &dyn Host, flags: &Flags, config: &Config) -> FetchSettings {
    let defaults = FetchSettings::default();
    let flag = |name: &str, default: bool| config.flag(name).unwrap_or(default);
    let seconds = |name: &str, default: Duration| config.number(name).map_or(default, Duration::from_secs);
    let ttl = if flags.refresh { Duration::ZERO } else { seconds("tarball-ttl", defaults.tarball_ttl) };
    let pair = |word: &[u8]| {
        let word = String::from_utf8_lossy(word).into_owned();
        word.split_once('=').map(|(host, token)| (host.to_owned(), token.to_owned()))
    };
    let user_conf = dir(host, b"NIX_CONFIG_HOME").or_else(|| under_home(host, b"XDG_CONFIG_HOME", ".config").map(|dir| dir.join("nix")));
    FetchSettings {
        cache_dir: cache_home(host).unwrap_or_else(|| PathBuf::from("/tmp")).join("firn/fetch"),
        flakes: config.has_feature("flakes"),
        verified_fetches: config.has_feature("verified-fetches"),
        allow_dirty: flag("allow-dirty", true),
        warn_dirty: flag("warn-dirty", true),
        allow_dirty_locks: flag("allow-dirty-locks", false),
        tarball_ttl: ttl,
        offline: flags.offline,
        connect_timeout: seconds("connect-timeout", defaults.connect_timeout),
        stalled_timeout: seconds("stalled-download-timeout", defaults.stalled_timeout),
        attempts: config.number("filetransfer-retry-attempts").map_or(defaults.attempts, |n| n.min(1000) as u32),
        retry_delay: config.number("filetransfer-retry-delay").map_or(defaults.retry_delay, Duration::from_millis),
        user_agent_suffix: text(config, "user-agent-suffix").unwrap_or_default(),
        access_tokens: config.words("access-tokens").filter_map(pair).collect(),
        trusted_public_keys: match config.text("trusted-public-keys") {
            Some(_) => config.words("trusted-public-keys").map(|key| String::from_utf8_lossy(key).into_owned()).collect(),
            None => defaults.trusted_public_keys,
        },
        require_sigs: flag("require-sigs", true),
        flake_registry: text(config, "flake-registry").unwrap_or(defaults.flake_registry),
        conf_dir: dir(host, b"NIX_CONF_DIR").unwrap_or(defaults.conf_dir),
        user_conf_dir: user_conf,
    }
}

/// The user's cache home; none if there is no home at all.
pub(super) fn cache_home(host: &dyn Host) -> Option<PathBuf> {
    dir(host, b"NIX_CACHE_HOME").or_else(|| under_home(host, b"XDG_CACHE_HOME", ".cache"))
}

fn under_home(host: &dyn Host, variable: &[u8], below: &str) -> Option<PathBuf> {
    let home = || Some(PathBuf::from(std::ffi::OsString::from_vec(host.home().ok()?.to_vec())).join(below));
    dir(host, variable).or_else(home)
}

fn text(config: &Config, name: &str) -> Option<String> {
    config.text(name).map(|text| String::from_utf8_lossy(text).into_owned())
}

fn dir(host: &dyn Host, variable: &[u8]) -> Option<PathBuf> {
    non_empty(host, variable).map(|dir| PathBuf::from(std::ffi::OsString::from_vec(dir)))
}
