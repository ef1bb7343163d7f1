//! The command line of `firn jobs`, which is that of `nix-eval-jobs` and a little more.

use crate::arguments::Words;
use crate::failure::Failure;
use crate::flags::Flags;
use crate::lock_flags::TypedLocks;

/// The command line as typed.
#[derive(Debug, Default)]
pub(super) struct Typed {
    pub expression: Option<Vec<u8>>,
    pub is_expression: bool,
    pub flake: bool,
    pub force_recurse: bool,
    pub meta: bool,
    pub constituents: bool,
    pub check_cache_status: bool,
    pub show_input_drvs: bool,
    pub no_instantiate: bool,
    pub gc_roots: Option<Vec<u8>>,
    pub apply: Option<Vec<u8>>,
    pub select: Option<Vec<u8>>,
    pub workers: Option<usize>,
    pub memory: Option<u64>,
    pub shard: Option<Shard>,
    pub sorted: bool,
    pub locks: TypedLocks,
}

/// `--shard I/N`: the part of the jobs that this run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shard {
    /// Counted from zero.
    pub index: u64,
    pub count: u64,
}

impl Shard {
    fn parse(text: &[u8]) -> Option<Shard> {
        let (index, count) = std::str::from_utf8(text).ok()?.split_once('/')?;
        let (index, count): (u64, u64) = (index.parse().ok()?, count.parse().ok()?);
        (1..=count).contains(&index).then(|| Shard { index: index - 1, count })
    }

    /// Whether what has this path is done here. The digest depends on the names alone, on every machine.
    pub fn owns(self, path: &[Vec<u8>]) -> bool {
        // FNV-1a over the names, each ended by a byte that no UTF-8 text has.
        let mut digest = 0xcbf2_9ce4_8422_2325_u64;
        for byte in path.iter().flat_map(|name| name.iter().copied().chain([0xff])) {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        (digest ^ digest >> 32) % self.count == self.index
    }

    /// A set with so many names is divided by its names; smaller ones are looked into by every run.
    pub fn divides(self, names: usize) -> bool {
        names as u64 >= 4 * self.count
    }
}

impl Typed {
    /// Reads one flag; whether it is one of this command's own.
    pub fn read(&mut self, flag: &[u8], words: &mut Words, flags: &mut Flags) -> Result<bool, Failure> {
        let one = |words: &mut Words| words.values::<1>(flag).map(|[value]| value);
        match flag {
            b"--expr" | b"-E" => self.is_expression = true,
            b"--flake" => self.flake = true,
            b"--force-recurse" => self.force_recurse = true,
            b"--meta" => self.meta = true,
            b"--constituents" => self.constituents = true,
            b"--check-cache-status" => self.check_cache_status = true,
            b"--show-input-drvs" => self.show_input_drvs = true,
            b"--no-instantiate" => self.no_instantiate = true,
            b"--gc-roots-dir" => self.gc_roots = Some(one(words)?).filter(|dir| !dir.is_empty()),
            b"--apply" => self.apply = Some(one(words)?),
            b"--select" => self.select = Some(one(words)?),
            b"--workers" => self.workers = Some(number(flag, &one(words)?)? as usize),
            b"--max-memory-size" => self.memory = Some(number(flag, &one(words)?)?),
            b"--shard" => {
                let text = one(words)?;
                let wrong = || Failure::usage("'--shard' takes two numbers I/N with I from 1 to N, not '", &text, "'");
                self.shard = Some(Shard::parse(&text).ok_or_else(wrong)?);
            }
            b"--sorted" => self.sorted = true,
            b"--repair" => {}
            b"--offline" | b"--no-net" => flags.offline = true,
            b"--refresh" => flags.refresh = true,
            _ => return self.locks.read(flag, words),
        }
        Ok(true)
    }

    /// Refuses what cannot go together.
    pub fn check(&self) -> Result<(), Failure> {
        if self.expression.as_ref().is_none_or(Vec::is_empty) {
            return Err(Failure::Usage(b"no expression specified".to_vec()));
        }
        if self.flake && self.is_expression {
            return Err(Failure::Usage(b"'--flake' and '--expr' are exclusive".to_vec()));
        }
        let needing = [
            (self.show_input_drvs, "--show-input-drvs"),
            (self.check_cache_status, "--check-cache-status"),
            (self.constituents, "--constituents"),
        ];
        let named: Vec<&str> = needing.iter().filter(|(given, _)| *given).map(|(_, name)| *name).collect();
        if self.no_instantiate && !named.is_empty() {
            let shown = firn_eval::colored(named.join(", "));
            let message = format!(
                "--no-instantiate is incompatible with: {shown}. These features require instantiated derivations."
            );
            return Err(Failure::Usage(message.into_bytes()));
        }
        Ok(())
    }
}

fn number(flag: &[u8], text: &[u8]) -> Result<u64, Failure> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).filter(|n| *n > 0);
    let after = [b"' takes a number above zero, not '", text, b"'"].concat();
    number.ok_or_else(|| Failure::usage("'", flag, &String::from_utf8_lossy(&after)))
}

#[cfg(test)]
mod tests {
    use super::Shard;

    #[test]
    fn shards_are_disjoint_and_complete() {
        let paths: Vec<Vec<Vec<u8>>> = (0..1000).map(|n| vec![format!("name-{n}").into_bytes()]).collect();
        let shards: Vec<Shard> = (1..=3).map(|i| Shard::parse(format!("{i}/3").as_bytes()).expect("a shard")).collect();
        for path in &paths {
            assert_eq!(shards.iter().filter(|shard| shard.owns(path)).count(), 1);
        }
        for shard in &shards {
            let share = paths.iter().filter(|path| shard.owns(path)).count();
            assert!((200..470).contains(&share), "{share}");
        }
        for wrong in ["0/3", "4/3", "1", "1/0", "a/b", ""] {
            assert_eq!(Shard::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
