//! What is remembered, and where: `--memo`, `FIRN_MEMO`, and the variables that bound it.

use super::non_empty;
use super::remote::Remote;
use crate::failure::Failure;
use crate::flags::Flags;
use firn_host::{AbsPath, Host};
use firn_memo::kept::record::FORMAT;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// How much is remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoMode {
    /// Nothing.
    #[default]
    Off,
    /// What happened in this run.
    Run,
    /// What happened in this run and answers of earlier ones: the default of `eval`, `instantiate` and `jobs`.
    Disk,
    /// The same, and answers of other machines.
    Shared,
    /// As within a run and on disk, but everything remembered is evaluated as well and compared.
    Shadow,
}

impl MemoMode {
    /// Whether earlier runs are remembered.
    pub fn uses_disk(self) -> bool {
        matches!(self, MemoMode::Disk | MemoMode::Shared | MemoMode::Shadow)
    }

    /// What is remembered within the run.
    pub fn within_a_run(self) -> firn_memo::Mode {
        match self {
            MemoMode::Off => firn_memo::Mode::Off,
            MemoMode::Run | MemoMode::Disk | MemoMode::Shared => firn_memo::Mode::Run,
            MemoMode::Shadow => firn_memo::Mode::Shadow,
        }
    }

    /// Whether what is remembered is evaluated as well.
    pub fn is_shadow(self) -> bool {
        self == MemoMode::Shadow
    }
}

/// What is remembered, and where.
#[derive(Clone, Debug, Default)]
pub struct Memo {
    /// How much.
    pub mode: MemoMode,
    /// Whether answers to whole questions are remembered between runs.
    pub keeps_answers: bool,
    /// Evaluation is measured (`firn profile`): what is known is evaluated as well.
    pub measured: bool,
    /// The directory of the cache on disk; none if there is no home.
    pub dir: Option<PathBuf>,
    /// The most bytes that it may take.
    pub limit: u64,
    /// The least milliseconds that an answer must have taken to be kept.
    pub least: Option<u64>,
    /// The remotes that are named, whether they are used or not.
    pub remote: Remote,
    /// The remotes that are used.
    pub shared: Option<firn_remote::Settings>,
}

/// Whether there is a place for a cache: one that was named, or a home. Where nobody is at home nothing is kept and nothing is said.
fn has_place(host: &dyn Host) -> bool {
    let named = ["FIRN_CACHE_DIR", "NIX_CACHE_HOME", "XDG_CACHE_HOME"].iter().any(|name| non_empty(host, name.as_bytes()).is_some());
    let home = || AbsPath::new(&host.home().ok()?).ok();
    named || home().is_some_and(|home| matches!(host.file_type(&home), Ok(Some(_))))
}

/// One gigabyte.
const LIMIT: u64 = 1 << 30;

/// What flags and environment say.
pub(super) fn resolve(host: &dyn Host, flags: &Flags) -> Result<Memo, Failure> {
    let (wanted, named) = match &flags.memo {
        Some(mode) => (Some(mode.clone()), "--memo"),
        None => (non_empty(host, b"FIRN_MEMO"), "FIRN_MEMO"),
    };
    let remote = super::remote::resolve(host, flags)?;
    let mode = match wanted.as_deref() {
        // Who names a remote on the command line means to use it.
        None if !flags.remotes.is_empty() => MemoMode::Shared,
        None if flags.profile.is_some() => MemoMode::Off,
        None if flags.keeps_answers && has_place(host) => MemoMode::Disk,
        None => MemoMode::Off,
        Some(b"off") => MemoMode::Off,
        Some(b"run") => MemoMode::Run,
        Some(b"disk") => MemoMode::Disk,
        Some(b"shared") => MemoMode::Shared,
        Some(b"shadow") => MemoMode::Shadow,
        Some(other) => {
            let before = format!("{named} is one of off, run, disk, shared, shadow, not '");
            return Err(Failure::usage(&before, other, "'"));
        }
    };
    if mode == MemoMode::Shared && remote.urls.is_empty() {
        let message = "sharing needs a remote: name one with --remote, FIRN_REMOTE or in firn.conf";
        return Err(Failure::Usage(message.as_bytes().to_vec()));
    }
    let number = |name: &str| -> Result<Option<u64>, Failure> {
        let Some(text) = non_empty(host, name.as_bytes()) else { return Ok(None) };
        let parsed = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
        parsed.map(Some).ok_or_else(|| Failure::usage(&format!("{name} is a number, not '"), &text, "'"))
    };
    let home = super::fetching::cache_home(host);
    let named = non_empty(host, b"FIRN_CACHE_DIR").map(|dir| PathBuf::from(OsString::from_vec(dir)));
    Ok(Memo {
        mode,
        keeps_answers: flags.keeps_answers && mode.uses_disk(),
        measured: flags.profile.is_some(),
        dir: named.or_else(|| home.map(|home| home.join(format!("firn/memo-{FORMAT}")))),
        limit: number("FIRN_CACHE_SIZE")?.map_or(LIMIT, |megabytes| megabytes.saturating_mul(1 << 20)),
        least: if flags.keeps_cheap_answers { Some(0) } else { number("FIRN_MEMO_LEAST")? },
        shared: if mode == MemoMode::Shared { Some(remote.settings(host)?) } else { None },
        remote,
    })
}
