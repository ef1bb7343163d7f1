//! Which remotes share what is remembered, and whom to believe: `--remote`, `FIRN_REMOTE`, `firn.conf`.
//!
//! `firn.conf` lies beside each `nix.conf` and is written like it; Nix does not read it, so it can name what Nix does not
//! know. The user's file goes over the system's, variables over files, flags over variables.

use super::{file, non_empty};
use crate::failure::Failure;
use crate::flags::Flags;
use firn_host::{AbsPath, Follow, Host};
use firn_remote::{Address, DEADLINE, Keyring, PublicKey, SecretKey, Settings};
use std::time::Duration;

/// What was said, as it was written.
#[derive(Clone, Debug, Default)]
pub struct Remote {
    /// URLs.
    pub urls: Vec<String>,
    public_keys: Vec<String>,
    secret_key_file: Option<Vec<u8>>,
    deadline: Option<String>,
}

/// What files, environment and flags say.
pub(super) fn resolve(host: &dyn Host, flags: &Flags) -> Result<Remote, Failure> {
    let mut remote = Remote::default();
    for (name, value, place) in file::read_own(host)? {
        remote.set(&name, &value).map_err(|unknown| {
            let after = format!("' in \"{}\"", String::from_utf8_lossy(&place));
            Failure::usage("unknown setting '", unknown.as_bytes(), &after)
        })?;
    }
    let named = [
        ("FIRN_REMOTE", "remotes"),
        ("FIRN_PUBLIC_KEYS", "public-keys"),
        ("FIRN_SECRET_KEY_FILE", "secret-key-file"),
        ("FIRN_REMOTE_DEADLINE", "remote-deadline"),
    ];
    for (variable, setting) in named {
        if let Some(value) = non_empty(host, variable.as_bytes()) {
            // All four are known.
            let _ = remote.set(setting, &value);
        }
    }
    if !flags.remotes.is_empty() {
        remote.urls = flags.remotes.iter().map(|url| String::from_utf8_lossy(url).into_owned()).collect();
    }
    Ok(remote)
}

impl Remote {
    fn set(&mut self, name: &str, value: &[u8]) -> Result<(), String> {
        let text = String::from_utf8_lossy(value).into_owned();
        let words = || text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        match name {
            "remotes" => self.urls = words(),
            "extra-remotes" => self.urls.extend(words()),
            "public-keys" => self.public_keys = words(),
            "extra-public-keys" => self.public_keys.extend(words()),
            "secret-key-file" => self.secret_key_file = Some(value.to_vec()),
            "remote-deadline" => self.deadline = Some(text),
            other => return Err(other.to_owned()),
        }
        Ok(())
    }

    /// The settings, checked; the secret key is read.
    pub fn settings(&self, host: &dyn Host) -> Result<Settings, Failure> {
        let addresses = self.urls.iter().map(|url| Address::parse(url)).collect::<Result<Vec<_>, _>>();
        let addresses = addresses.map_err(|error| Failure::Usage(error.to_string().into_bytes()))?;
        let mut keys = Keyring::default();
        for text in &self.public_keys {
            let bad = |error| Failure::usage("the public key '", text.as_bytes(), &format!("' is none: {error}"));
            keys.add(PublicKey::parse(text).map_err(bad)?);
        }
        let secret = self.secret_key_file.as_deref().map(|file| secret_key(host, file)).transpose()?;
        let deadline = match &self.deadline {
            None => DEADLINE,
            Some(text) => seconds(text)
                .ok_or_else(|| Failure::usage("a deadline is a number of seconds, not '", text.as_bytes(), "'"))?,
        };
        Ok(Settings { addresses, keys, secret, deadline })
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.trim().parse().ok()?;
    (0.0..1e6).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

/// Reads a secret key from a file.
pub fn secret_key(host: &dyn Host, file: &[u8]) -> Result<SecretKey, Failure> {
    let failed = |why: &dyn std::fmt::Display| Failure::usage("the secret key file '", file, &format!("': {why}"));
    let path = host.current_dir().and_then(|here: AbsPath| here.join(file));
    let content = path.and_then(|path| host.read_once(&host.resolve_symlinks(&path, Follow::Full)?));
    let content = content.map_err(|error| failed(&String::from_utf8_lossy(&error.to_bytes())))?;
    SecretKey::parse(&String::from_utf8_lossy(content.bytes())).map_err(|error| failed(&error))
}
