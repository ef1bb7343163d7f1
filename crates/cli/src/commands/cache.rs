//! `firn cache`: looking after what is remembered between runs, and sharing it.

mod keys;
mod serve;
mod sharing;

use crate::arguments::{Word, Words};
use crate::failure::Failure;
use crate::flags::Flags;
use crate::program::Invocation;
use crate::settings::{self, host_failure};
use firn_cache::{Disk, Statistics};
use firn_host::{Follow, Host};
use std::io::{Read, Write};

/// The help.
pub const HELP: &str = "\
firn cache looks after what is remembered between runs (--memo disk).

Usage: firn cache stats [--json]
       firn cache verify [--repair]
       firn cache gc [--size MEGABYTES]
       firn cache clear
       firn cache export FILE
       firn cache import FILE
       firn cache push [ATTR…]
       firn cache pull [ATTR…]
       firn cache key generate NAME
       firn cache key public [FILE]
       firn cache serve DIR [--listen ADDRESS] [--read-only] [--token-file FILE]

  stats                  how much is remembered, and where
  verify                 look at every part; the exit status is 1 if one is broken or missing
  gc                     remove what has outlived its time and, beyond the size, what was of use longest ago
  clear                  forget everything
  export, import         take what is remembered elsewhere; `-` is standard output or input
  push                   give what is remembered here to the remotes, signed: all of it, or the answers about
                           these attributes and what is below them
  pull                   take what the remotes remember: all that they tell of, or the answers about these
                           attributes; what a remote does not list is asked for where it is known here
  key generate           print a new secret key; `key public` prints the public one that belongs to it
  serve                  be a remote: give out what lies in DIR over HTTP, and take what is pushed; the page for people
                           is at /

Flags:
  --json                 print JSON
  --repair               remove what is broken
  --size MEGABYTES       the size to leave; that of FIRN_CACHE_SIZE if not given
  --listen ADDRESS       the address and port to serve at (127.0.0.1:8080)
  --read-only            give, but take nothing
  --token-file FILE      take only from those who show the token in this file (?token-file=FILE in their URL); where
                           public-keys are named, only what they signed is taken
  --remote URL           share with this remote; may be repeated (also FIRN_REMOTE, and remotes in firn.conf)

The cache lies in FIRN_CACHE_DIR or under the user's cache home (firn/memo-4). FIRN_CACHE_SIZE bounds it, in megabytes;
answers that took less than FIRN_MEMO_LEAST milliseconds are not kept. Nothing in it is ever needed: it may be removed at
any time.

Remotes are directories (file:/PATH), HTTP servers that take GET and PUT (http:, https:), S3 (s3://BUCKET) and Redis
(redis:). firn.conf, beside nix.conf, names them: remotes, public-keys (whose answers are believed), secret-key-file
(signs what is pushed), remote-deadline (seconds that a remote may cost in a run, 3 unless said); so do the variables
FIRN_REMOTE, FIRN_PUBLIC_KEYS, FIRN_SECRET_KEY_FILE and FIRN_REMOTE_DEADLINE.

Examples:
  firn eval --memo disk -f '<nixpkgs>' hello.drvPath
  firn cache stats
  firn cache export - | ssh elsewhere firn cache import -
  firn cache key generate team-1 > ~/.config/nix/firn.key
  firn cache push --remote 's3://our-cache?region=eu-central-1' hello
  firn eval --memo shared --remote 'file:/srv/firn?mode=ro' -f '<nixpkgs>' hello.drvPath
";

/// Which command it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Command {
    Stats,
    Verify,
    Collect,
    Clear,
    Export,
    Import,
    Push,
    Pull,
    Key,
    Serve,
}

/// The command line as typed.
#[derive(Debug, Default)]
struct Typed {
    json: bool,
    repair: bool,
    size: Option<Vec<u8>>,
    file: Option<Vec<u8>>,
    /// What follows `push`, `pull`, `key` and `serve`.
    words: Vec<Vec<u8>>,
    listen: Option<Vec<u8>>,
    read_only: bool,
    token_file: Option<Vec<u8>>,
}

/// Runs the command.
pub fn run(invocation: &mut Invocation, mut words: Words, mut flags: Flags) -> Result<(), Failure> {
    let (mut command, mut typed) = (None, Typed::default());
    while let Some(word) = words.next_word() {
        match word {
            Word::Argument(name) if command.is_none() => {
                command = Some(match &name[..] {
                    b"stats" => Command::Stats,
                    b"verify" => Command::Verify,
                    b"gc" => Command::Collect,
                    b"clear" => Command::Clear,
                    b"export" => Command::Export,
                    b"import" => Command::Import,
                    b"push" => Command::Push,
                    b"pull" => Command::Pull,
                    b"key" => Command::Key,
                    b"serve" => Command::Serve,
                    _ => return Err(Failure::usage("'", &name, "' is not a recognised command")),
                });
            }
            Word::Argument(file) => typed.take_file(command, file)?,
            Word::Flag(flag) if flag == b"-" => typed.take_file(command, flag)?,
            Word::Flag(flag) if flag == b"--help" => return invocation.output.write(HELP.as_bytes()),
            Word::Flag(flag) if flag == b"--version" => return super::help::version(invocation),
            Word::Flag(flag) if flag == b"--json" && command == Some(Command::Stats) => typed.json = true,
            Word::Flag(flag) if flag == b"--repair" && command == Some(Command::Verify) => typed.repair = true,
            Word::Flag(flag) if flag == b"--read-only" && command == Some(Command::Serve) => typed.read_only = true,
            Word::Flag(flag) if flag == b"--listen" && command == Some(Command::Serve) => {
                let [address] = words.values(&flag)?;
                typed.listen = Some(address);
            }
            Word::Flag(flag) if flag == b"--token-file" && command == Some(Command::Serve) => {
                let [file] = words.values(&flag)?;
                typed.token_file = Some(file);
            }
            Word::Flag(flag) if flag == b"--size" && command == Some(Command::Collect) => {
                let [size] = words.values(&flag)?;
                typed.size = Some(size);
            }
            Word::Flag(flag) => {
                if !flags.read(&flag, &mut words)? {
                    return Err(Failure::usage("unrecognised flag '", &flag, "'"));
                }
            }
        }
    }
    let Some(command) = command else { return Err(Failure::Usage(b"no subcommand specified".to_vec())) };
    invocation.log.set_verbosity(flags.verbosity);
    if command == Command::Key {
        return keys::run(invocation, &typed.words);
    }
    let log = invocation.log.clone();
    let resolved = settings::resolve(&*invocation.host, &flags, false, &|text| log.warn(text))?;
    if command == Command::Serve {
        let flags = serve::Flags { listen: typed.listen, read_only: typed.read_only, token_file: typed.token_file };
        return serve::run(invocation, &typed.words, &flags, &resolved.memo.remote);
    }
    let Some(dir) = &resolved.memo.dir else { return Err(Failure::error("there is no home to keep a cache in")) };
    let disk = Disk::open(dir, resolved.memo.limit).map_err(|reason| Failure::error(format!("the cache on disk: {reason}")))?;
    if let Some(salvaged) = disk.salvaged() {
        let message = format!("the cache was damaged ({}); {} answers were saved", salvaged.what, salvaged.entries);
        invocation.log.warn(message.as_bytes());
    }
    match command {
        Command::Push => sharing::push(invocation, &disk, &resolved.memo.remote, &typed.words),
        Command::Pull => sharing::pull(invocation, &disk, &resolved.memo.remote, &typed.words),
        _ => typed.run(command, invocation, &disk, &dir.display().to_string()),
    }
}

impl Typed {
    fn take_file(&mut self, command: Option<Command>, file: Vec<u8>) -> Result<(), Failure> {
        if let Some(Command::Push | Command::Pull | Command::Key | Command::Serve) = command {
            self.words.push(file);
            return Ok(());
        }
        if self.file.is_some() || !matches!(command, Some(Command::Export | Command::Import)) {
            return Err(Failure::usage("unexpected argument '", &file, "'"));
        }
        self.file = Some(file);
        Ok(())
    }

    fn run(&self, command: Command, invocation: &mut Invocation, disk: &Disk, place: &str) -> Result<(), Failure> {
        match command {
            Command::Stats => self.statistics(invocation, disk, place),
            Command::Verify => self.verify(invocation, disk),
            Command::Collect => self.collect(invocation, disk),
            Command::Clear => disk.clear().map_err(failed),
            Command::Export => self.export(invocation, disk),
            Command::Import => self.import(invocation, disk),
            Command::Push | Command::Pull | Command::Key | Command::Serve => Ok(()),
        }
    }

    fn statistics(&self, invocation: &mut Invocation, disk: &Disk, place: &str) -> Result<(), Failure> {
        let Statistics { questions, records, parts, observations, blobs, stamps, bytes, file_bytes, limit, cost } =
            disk.statistics().map_err(failed)?;
        let numbers = [
            ("questions", questions),
            ("answers", records),
            ("evaluationsInParts", parts),
            ("observationNodes", observations),
            ("results", blobs),
            ("fileStates", stamps),
            ("bytes", bytes),
            ("fileBytes", file_bytes),
            ("limit", limit),
            ("evaluationMicroseconds", cost),
        ];
        if self.json {
            let mut text = b"{\"place\":".to_vec();
            firn_text::json::write_string(&mut text, place.as_bytes()).map_err(Failure::error)?;
            for (name, number) in numbers {
                text.extend_from_slice(format!(",\"{name}\":{number}").as_bytes());
            }
            text.push(b'}');
            return invocation.output.line(&text);
        }
        let in_parts = if parts > 0 { format!(", parts of {parts} evaluations") } else { String::new() };
        let text = format!(
            "{place}\n{records} answers to {questions} questions, which took {:.1} s to find{in_parts}\n{observations} nodes of \
             observations, {blobs} results stored apart, {stamps} states of files\n{:.1} of {:.0} MB in use, {:.1} MB on disk",
            cost as f64 / 1e6,
            megabytes(bytes),
            megabytes(limit),
            megabytes(file_bytes),
        );
        invocation.output.line(text.as_bytes())
    }

    fn verify(&self, invocation: &mut Invocation, disk: &Disk) -> Result<(), Failure> {
        let audit = disk.audit(self.repair).map_err(failed)?;
        for (table, count) in &audit.broken {
            invocation.output.line(format!("{count} broken in {table}").as_bytes())?;
        }
        if audit.incomplete > 0 {
            invocation.output.line(format!("{} answers lack parts", audit.incomplete).as_bytes())?;
        }
        let end = match (audit.is_whole(), self.repair) {
            (true, _) => "all whole",
            (false, true) => "what was broken is removed",
            (false, false) => "--repair removes what is broken",
        };
        invocation.output.line(format!("{} parts looked at, {end}", audit.checked).as_bytes())?;
        if audit.is_whole() || self.repair { Ok(()) } else { Err(Failure::Exit(1)) }
    }

    fn collect(&self, invocation: &mut Invocation, disk: &Disk) -> Result<(), Failure> {
        let target = match &self.size {
            None => disk.limit(),
            Some(text) => {
                let size = std::str::from_utf8(text).ok().and_then(|text| text.parse::<u64>().ok());
                let size = size.ok_or_else(|| Failure::usage("a size is a number of megabytes, not '", text, "'"))?;
                size.saturating_mul(1 << 20)
            }
        };
        let collected = disk.collect(target, invocation.host.current_time()).map_err(failed)?;
        let text = format!(
            "removed {} answers and {} parts; {:.1} MB were in use, {:.1} MB are",
            collected.records,
            collected.parts,
            megabytes(collected.before),
            megabytes(collected.after)
        );
        invocation.output.line(text.as_bytes())
    }

    fn export(&self, invocation: &mut Invocation, disk: &Disk) -> Result<(), Failure> {
        let Some(file) = &self.file else { return Err(Failure::Usage(b"which file to write?".to_vec())) };
        let failed = |error: &dyn std::fmt::Display| Failure::error(format!("exporting the cache: {error}"));
        if file == b"-" {
            let mut stdout = std::io::stdout().lock();
            disk.export(&mut stdout).map_err(|error| failed(&error))?;
            return stdout.flush().map_err(|error| failed(&error));
        }
        let path = invocation.host.current_dir().and_then(|here| here.join(file)).map_err(host_failure)?;
        let create = std::fs::File::create(path.as_path()).map_err(|error| failed(&firn_host::Errno::from(error)))?;
        let mut out = std::io::BufWriter::new(create);
        let records = disk.export(&mut out).map_err(|error| failed(&error))?;
        out.flush().map_err(|error| failed(&error))?;
        invocation.output.line(format!("{records} answers written").as_bytes())
    }

    fn import(&self, invocation: &mut Invocation, disk: &Disk) -> Result<(), Failure> {
        let Some(file) = &self.file else { return Err(Failure::Usage(b"which file to read?".to_vec())) };
        let bytes = if file == b"-" {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut bytes);
            read.map_err(|error| Failure::error(format!("reading from standard input: {}", firn_host::Errno::from(error))))?;
            bytes
        } else {
            let path = invocation.host.current_dir().and_then(|here| here.join(file)).map_err(host_failure)?;
            let real = invocation.host.resolve_symlinks(&path, Follow::Full).map_err(host_failure)?;
            invocation.host.read_once(&real).map_err(host_failure)?.bytes().to_vec()
        };
        let records = disk.import(&bytes).map_err(|error| Failure::error(format!("importing into the cache: {error}")))?;
        invocation.output.line(format!("{records} new answers").as_bytes())
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::error(format!("the cache on disk: {error}"))
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
