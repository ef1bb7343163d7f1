//! Signed commits: `git verify-commit` decides, with the keys of the input as the only ones that may sign.
#![allow(clippy::disallowed_methods)] // Runs `git`, and writes the file of keys it reads.

use std::path::Path;

use firn_store::encoding::base64_decode;
use firn_store::hash::{Algorithm, Format, Hash};
use firn_text::json::Tree as Json;

use super::error::{FetchError, file_error, shown};
use super::fetcher::Fetcher;
use super::git;
use super::input::Input;

/// Kinds of keys by the names that inputs have for them, and OpenSSH's.
const KINDS: [(&str, &str); 6] = [
    ("ssh-dsa", "ssh-dsa"),
    ("ssh-ecdsa", "ssh-ecdsa"),
    ("ssh-ecdsa-sk", "sk-ecdsa-sha2-nistp256@openssh.com"),
    ("ssh-ed25519", "ssh-ed25519"),
    ("ssh-ed25519-sk", "sk-ssh-ed25519@openssh.com"),
    ("ssh-rsa", "ssh-rsa"),
];

/// A key that may sign.
struct Signer {
    /// OpenSSH's name of its kind.
    kind: &'static str,
    key: String,
}

impl Signer {
    fn new(kind: &str, key: &str) -> Result<Signer, FetchError> {
        let Some((_, kind)) = KINDS.iter().find(|(name, _)| *name == kind) else {
            let names: String = KINDS.iter().map(|(name, _)| format!("  {}\n", shown(name))).collect();
            let message = format!("Invalid SSH key type '{}' in publicKeys.\nPlease use one of:\n{names}", shown(kind));
            return Err(FetchError::new(message));
        };
        // A line break would begin another line of the file of keys.
        if key.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(FetchError::new(format!("public key '{}' has blanks in it", shown(key))));
        }
        Ok(Signer { kind, key: key.to_owned() })
    }

    /// `SHA256:…`, as OpenSSH shows it.
    fn fingerprint(&self) -> Result<String, FetchError> {
        let bytes = base64_decode(self.key.as_bytes()).map_err(|error| {
            let what = format!("while decoding public key '{}' used for git signature", shown(&self.key));
            FetchError::from(error).while_doing(what)
        })?;
        let hash = Hash::of(Algorithm::Sha256, &bytes).to_string(Format::Base64, false);
        Ok(format!("SHA256:{}", hash.trim_end_matches('=')))
    }
}

/// The keys that an input names.
fn signers(input: &Input) -> Result<Vec<Signer>, FetchError> {
    let mut all = Vec::new();
    if let Some(keys) = input.text("publicKeys") {
        let bad = || FetchError::new(format!("'{}' is no list of public keys", shown(keys)));
        let list = Json::parse(keys.as_bytes()).map_err(|_| bad())?;
        for entry in list.as_list().ok_or_else(bad)? {
            let key = entry.get("key").and_then(Json::as_text).ok_or_else(bad)?;
            let kind = entry.get("type").and_then(Json::as_text).unwrap_or("ssh-ed25519");
            all.push(Signer::new(kind, key)?);
        }
    }
    if let Some(key) = input.text("publicKey") {
        all.push(Signer::new(input.text("keytype").unwrap_or("ssh-ed25519"), key)?);
    }
    Ok(all)
}

impl Fetcher {
    /// Refuses a commit that none of the input's keys signed, where the input wants that. Without a commit, what is there
    /// was changed after it was signed.
    pub(super) fn verify_commit(&self, input: &Input, repo: &Path, rev: Option<&str>) -> Result<(), FetchError> {
        let signers = signers(input)?;
        let wanted = if input.attrs.contains_key("verifyCommit") { input.flag("verifyCommit")? } else { !signers.is_empty() };
        if !wanted {
            return Ok(());
        }
        let Some(rev) = rev else {
            let input = shown(input.show());
            return Err(FetchError::new(format!("commit verification is required for Git repository '{input}', but it's dirty")));
        };
        let failed = |why: &str| {
            FetchError::new(format!("Commit signature verification on commit {} failed: {}", shown(rev), shown(why)))
        };
        if signers.is_empty() {
            return Err(failed("no public key is given"));
        }
        let fingerprints = signers.iter().map(Signer::fingerprint).collect::<Result<Vec<_>, _>>()?;
        let allowed = self.cache.temporary("git")?;
        let lines: String = signers.iter().map(|signer| format!("* {} {}\n", signer.kind, signer.key)).collect();
        std::fs::write(&allowed, lines).map_err(|e| file_error("writing", &allowed, e))?;
        let file = format!("gpg.ssh.allowedSignersFile={}", allowed.display());
        let output = git::command(repo).env("LC_ALL", "C").args(["-c", &file, "verify-commit", rev]).output();
        let _ = std::fs::remove_file(&allowed);
        let output = output.map_err(|e| failed(&format!("cannot run 'git': {}", crate::Errno::from(e))))?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        // `git` is content with the user's own GPG keys too: only one of the named keys will do.
        let good = |line: &str| {
            let by = line.strip_prefix("Good \"git\" signature for * with ").and_then(|rest| rest.rsplit(' ').next());
            by.is_some_and(|by| fingerprints.iter().any(|known| known == by))
        };
        if output.status.success() && said.lines().any(good) { Ok(()) } else { Err(failed(&said)) }
    }
}
