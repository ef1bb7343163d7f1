//! What the user's settings say about fetching.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use firn_store::key::{Keyring, PublicKey};

use super::error::{FetchError, shown};

/// Settings of the fetchers.
#[derive(Clone, Debug)]
pub struct FetchSettings {
    /// Where downloads and clones are kept.
    pub cache_dir: PathBuf,
    /// The `flakes` feature: `path:` and `flake:` references need it.
    pub flakes: bool,
    /// The `verified-fetches` feature.
    pub verified_fetches: bool,
    /// Work trees with uncommitted changes may be used.
    pub allow_dirty: bool,
    /// The user is told of them.
    pub warn_dirty: bool,
    /// Lock files may name inputs that only their NAR hash pins.
    pub allow_dirty_locks: bool,
    /// For how long a download is taken as current without asking.
    pub tarball_ttl: Duration,
    /// Nothing is asked of the network.
    pub offline: bool,
    /// For how long to wait for a connection.
    pub connect_timeout: Duration,
    /// For how long to wait while nothing arrives.
    pub stalled_timeout: Duration,
    /// How often a transfer is tried.
    pub attempts: u32,
    /// The pause before the second try; each further one is twice as long.
    pub retry_delay: Duration,
    /// What is added to the name this program gives to servers.
    pub user_agent_suffix: String,
    /// Tokens by host, or by host and path.
    pub access_tokens: BTreeMap<String, String>,
    /// Keys whose signatures are believed, `name:base64`.
    pub trusted_public_keys: Vec<String>,
    /// What another store has needs such a signature, unless its content vouches for it.
    pub require_sigs: bool,
    /// Where the global registry is: a URL, a file, or nothing.
    pub flake_registry: String,
    /// Nix's configuration directory: the system's registry lies there.
    pub conf_dir: PathBuf,
    /// The user's configuration directory: their registry lies there.
    pub user_conf_dir: Option<PathBuf>,
}

impl Default for FetchSettings {
    fn default() -> FetchSettings {
        FetchSettings {
            cache_dir: PathBuf::from("/nonexistent"),
            flakes: false,
            verified_fetches: false,
            allow_dirty: true,
            warn_dirty: true,
            allow_dirty_locks: false,
            tarball_ttl: Duration::from_secs(3600),
            offline: false,
            connect_timeout: Duration::from_secs(15),
            stalled_timeout: Duration::from_secs(300),
            attempts: 5,
            retry_delay: Duration::from_millis(250),
            user_agent_suffix: String::new(),
            access_tokens: BTreeMap::new(),
            trusted_public_keys: vec!["cache.nixos.org-1:6NCHdD59X431o0gWypbMrAURkbJ16ZPMQFGspcDShjY=".to_owned()],
            require_sigs: true,
            flake_registry: "https://channels.nixos.org/flake-registry.json".to_owned(),
            conf_dir: PathBuf::from("/etc/nix"),
            user_conf_dir: None,
        }
    }
}

impl FetchSettings {
    /// The keys whose signatures are believed.
    pub(super) fn keys(&self) -> Result<Keyring, FetchError> {
        let mut keys = Keyring::default();
        for text in &self.trusted_public_keys {
            let key = PublicKey::parse(text).map_err(|why| {
                FetchError::new(format!("'{}' in the setting 'trusted-public-keys' is no public key: {why}", shown(text)))
            })?;
            keys.add(key);
        }
        Ok(keys)
    }

    /// Fails unless flakes are enabled.
    pub(super) fn require_flakes(&self) -> Result<(), FetchError> {
        require("flakes", self.flakes)
    }

    /// Fails unless verified fetches are enabled.
    pub(super) fn require_verified(&self) -> Result<(), FetchError> {
        require("verified-fetches", self.verified_fetches)
    }
}

fn require(name: &str, enabled: bool) -> Result<(), FetchError> {
    if enabled {
        return Ok(());
    }
    let name = shown(name);
    Err(FetchError::new(format!(
        "experimental Nix feature '{name}' is disabled; add '--extra-experimental-features {name}' to enable it"
    )))
}
