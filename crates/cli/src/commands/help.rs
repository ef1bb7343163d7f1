//! Help and versions. The texts are the one source of what commands and flags there are: completions and manual pages are
//! made of them ([`page`]).

pub(crate) mod page;

use crate::arguments::{Word, Words};
use crate::failure::Failure;
use crate::program::Invocation;

/// The version of Nix whose language and tools firn gives.
pub(crate) const NIX_VERSION: &str = "2.35.2";

pub(crate) const OVERVIEW: &str = "\
firn evaluates the Nix language.

Usage: firn COMMAND [FLAG…] [ARGUMENT…]

Commands:
  instantiate   print values, syntax trees or derivations, as nix-instantiate does
  eval          print the value of an expression or file, as nix eval does
  jobs          print a line of JSON for every derivation in a set, as nix-eval-jobs does
  repl          evaluate expressions as you type them, as nix repl does
  profile       run eval or instantiate and tell where its time went
  why           tell what an answer rests on, and what changed since earlier answers
  watch         print a value, and again whenever something it rests on has changed
  affected      list the questions whose answers a change of files may have changed
  graph         draw what a result depends on: files, variables, derivations
  compare       show where derivations differ from those that a list names
  flake         tell about a flake: metadata, show, lock, update
  cache         look after what is remembered between runs: stats, verify, gc, clear, export, import
  doctor        tell versions, settings and where they come from, and whether the store answers
  completions   print what a shell needs to complete firn's command line
  man           print manual pages
  help          show this text, or that of a command

Through a link named nix-instantiate, nix or nix-eval-jobs, firn takes the command line of that tool.

Flags of every command:
  -I ENTRY                    add to the search path: DIRECTORY or NAME=DIRECTORY
  --arg NAME EXPR             pass a value to functions that are called automatically
  --argstr NAME TEXT          the same for a string (also --arg-from-file, --arg-from-stdin)
  --option NAME VALUE         set a setting, as nix.conf would
  --NAME VALUE, --NAME        the same: every setting is a flag, with --no-NAME for
  --no-NAME, --extra-NAME       switches and --extra-NAME for lists
  --cores N                   evaluate on N threads (eval, instantiate); 0 is as many as there are processors
  --impure                    allow what pure evaluation refuses
  --memo MODE                 what to remember: off (nothing), run (this run), disk (that and earlier runs; the
                                default of eval, instantiate and jobs), shared (that and other machines)
                                or shadow (evaluate beside what is remembered and compare); also FIRN_MEMO
  --remote URL                share what is remembered with this remote (file:, http:, s3:, redis:); may be repeated;
                                also FIRN_REMOTE, and remotes in firn.conf (firn help cache)
  --show-trace                show the whole trace of an error
  -v, --quiet                 say more, say less
  --help, --version

Settings are read from nix.conf, the user's nix.conf and NIX_CONFIG; NIX_PATH gives the search path;
NIX_SHOW_STATS=1 prints what evaluation cost.

Examples:
  firn eval --expr '1 + 1'
  firn eval -f ./default.nix packages.hello.name
  firn instantiate --eval --strict --json -E '{ a = [ 1 2 ]; }'
  firn instantiate '<nixpkgs>' -A hello
";

const INSTANTIATE: &str = "\
firn instantiate prints values, syntax trees or derivations, as nix-instantiate does.

Usage: firn instantiate [FLAG…] [FILE…]

Without a file it reads ./default.nix; `-` is standard input; `<name>` is looked up in the search path.

What to do:
  (nothing)              print the store paths of the derivations found
  --eval                 print the value
  --parse                print the syntax tree
  --find-file            print where the search path has each name

Flags:
  -E, --expr             the arguments are expressions, not files
  -A, --attr PATH        take this attribute (a.b, or a.0 into a list); may be repeated
  --strict               evaluate everything in the value, not only its outside
  --json, --xml, --raw   print in that form
  --no-location          leave positions out of XML
  --dry-run              write nothing to the store
  --read-write-mode      write to the store even with --eval
  --add-root PATH        make a garbage collector root (--indirect is accepted)
  --store URL, --eval-store URL

Flags of every command are listed by firn --help.

Examples:
  firn instantiate --eval -E '{ x, y ? 2 }: x + y' --arg x 40
  firn instantiate --eval --strict ./release.nix -A versions
  firn instantiate --parse -E 'a: a.b or 1'
  firn instantiate --find-file nixpkgs
";

const EVAL: &str = "\
firn eval prints the value of an expression or file, as nix eval does.

Usage: firn eval [FLAG…] [FLAKE#PATH]
       firn eval (--expr EXPR | --file FILE) [FLAG…] [PATH]

PATH is an attribute path (a.b, or a.0 into a list). In a flake it is looked for in packages.SYSTEM, legacyPackages.SYSTEM
and the outputs themselves; without one, packages.SYSTEM.default is meant. Expressions and flakes are evaluated purely
unless --impure is given, a file never.

Flags:
  --expr EXPR            the expression
  -f, --file FILE        the file; `-` is standard input, `<name>` is looked up in the search path
  --apply FUNCTION       print FUNCTION applied to the value
  --json                 print JSON (--pretty lays it out, as on a terminal; --no-pretty does not)
  --raw                  print a string without quotes and newline
  --write-to PATH        write a string as a file, a set of them as a directory
  --read-only            write nothing to the store

Flags for flakes are listed by firn help flake, those of every command by firn --help.

Examples:
  firn eval .#packages.x86_64-linux.default.name
  firn eval --expr 'builtins.map (x: x * x) [ 1 2 3 ]'
  firn eval -f '<nixpkgs>' --raw hello.name
  firn eval --json -f ./default.nix meta --apply builtins.attrNames
";

const FLAKE: &str = "\
firn flake tells about a flake, as nix flake does.

Usage: firn flake metadata [--json] [FLAG…] [FLAKE]
       firn flake show [--json] [--legacy] [--all-systems] [FLAG…] [FLAKE]
       firn flake lock [FLAG…] [FLAKE]
       firn flake update [--flake FLAKE] [FLAG…] [INPUT…]

FLAKE is a directory, a URL (path:, git+file:, git+https:, github:, a tarball) or a registry's name; without one, the
directory here. In a Git repository, tracked files are what counts.

  metadata               where the flake comes from and what it is locked to
  show                   its outputs
  lock                   make flake.lock name every input
  update                 lock all inputs, or those named, anew

Flags:
  --override-input PATH FLAKE   use another flake for an input (nothing is written)
  --no-update-lock-file         fail if flake.lock would change
  --no-write-lock-file          lock inputs, but write nothing
  --commit-lock-file            commit flake.lock if it changes
  --reference-lock-file FILE    read this lock file instead
  --output-lock-file FILE       write this lock file instead
  --no-use-registries           take no name for what a registry says it is
  --offline, --refresh          ask nothing, or everything, of the network
  --accept-flake-config         let the flake's nixConfig take effect

Flags of every command are listed by firn --help.
";

const JOBS: &str = "\
firn jobs prints a line of JSON for every derivation in a set, as nix-eval-jobs does.

Usage: firn jobs [FLAG…] (FILE | --expr EXPR | --flake FLAKE#PATH)

Sets are looked into where recurseForDerivations says so, the outermost always. What fails to evaluate gets a line with its
error and does not end the run. Workers are threads that share what they evaluated.

What a line tells:
  (always)               attr, attrPath, name, system, drvPath, outputs, requiredSystemFeatures; or error
  --meta                 meta
  --show-input-drvs      inputDrvs
  --check-cache-status   cacheStatus, isCached, neededBuilds, neededSubstitutes
  --constituents         constituents of Hydra's aggregate jobs, which get them as inputs
  --apply FUNCTION       extraValue: FUNCTION applied to the derivation, a set

Flags:
  -E, --expr             the argument is an expression
  --flake                the argument is a flake; evaluated purely unless --impure is given
  --select FUNCTION      look into what FUNCTION gives for the set (or flake)
  --force-recurse        look into every set
  --no-instantiate       write nothing to the store
  --gc-roots-dir DIR     make a garbage collector root for each derivation there
  --workers N            evaluate on N threads; as many as there are processors if not given
  --max-memory-size MB   memory per worker (4096); beyond it the run goes on in a new process
  --shard I/N            do one of N parts of the jobs; the parts are the same on every machine
  --sorted               print lines in the order of their paths
  --override-input, --reference-lock-file and the like as listed by firn help flake

Flags of every command are listed by firn --help.

Examples:
  firn jobs --no-instantiate ./release.nix
  firn jobs --flake .#hydraJobs --gc-roots-dir ./gcroots --workers 4
  firn jobs --force-recurse --meta --shard 2/8 -E 'import <nixpkgs> { }'
";

const REPL: &str = "\
firn repl evaluates expressions as you type them, as nix repl does.

Usage: firn repl [FLAG…] [FLAKE…]
       firn repl (--file FILE | --expr EXPR) [FLAG…] [PATH…]

The attributes of what is named are variables from the start. `name = expression` defines more. Lines that are not complete
go on in the next. Tab completes variables, attributes and files; earlier lines are kept from one conversation to the
next. :? lists the commands.

Flags:
  -f, --file FILE        a file; `<name>` is looked up in the search path
  --expr EXPR            an expression

Flags of every command are listed by firn --help.

Examples:
  firn repl
  firn repl --file '<nixpkgs>'
  firn repl .
  echo 'builtins.attrNames { a = 1; }' | firn repl
";

const PROFILE: &str = "\
firn profile runs another command and tells where its evaluation spent the time, by function and by file.

Usage: firn profile [FLAG…] (eval | instantiate) [ARGUMENT…]

The command does what it always does; the tables follow on standard error. A sampled profile looks where evaluation is
every millisecond and costs little. An exact one reads the clock at every call: it counts all calls, and makes short
functions look longer than they are. With --memo disk (shared, run) before the command, more tables tell what memory saved:
within the run by function; between runs by question, where everything is evaluated nevertheless, so that there is something
to measure.

Flags:
  --sampled              look now and then (the default)
  --frequency N          how often a second (999)
  --exact                measure every call
  --svg FILE             draw a flame graph, which a browser shows
  --collapsed FILE       write one line per stack, as flame graph tools read it
  --rows N               length of the tables (25)

NIX_COUNT_CALLS=1 with NIX_SHOW_STATS=1 adds counts of calls to the statistics of any command, --trace-function-calls
prints each call as it begins and ends, --eval-profiler flamegraph leaves stacks in a file; all as in Nix.

Examples:
  firn profile --svg flame.svg instantiate --dry-run '<nixpkgs>' -A firefox
  firn profile --exact --rows 10 eval -f ./default.nix
  firn profile --memo disk eval -f ./default.nix hello.drvPath
";

const COMPARE: &str = "\
firn compare evaluates the attributes of a list in one process and shows where they differ from the list.

Usage: firn compare --list LIST [--other DIR] [FLAG…] (FILE | --expr EXPR)
       firn compare --print [--list LIST] [FLAG…] (FILE | --expr EXPR)

A list has one attribute per line: its path (or name), its drvPath and its outPath, separated by tabs. Instead of a
drvPath or outPath stands `-` for what is not a derivation, `!` for an error that tryEval catches, ERROR for any other.
In a list of two columns the value may also be a string, which is compared itself. The exit status is 1 if anything
differs.

Flags:
  --list LIST            the attributes, and what is expected of them
  --other DIR            the .drv files that the list names (/nix/store, say): differences are followed down to their
                           reasons
  --print                print a list instead: of the attributes in LIST, or of all attributes
  -E, --expr EXPR        the expression whose attributes are meant
  -f, --file FILE        the same for a file
  --threads N            evaluate on N threads; as many as there are processors if not given

Flags of every command are listed by firn --help.

Examples:
  firn compare --print '<nixpkgs>' > before.tsv
  firn compare --list before.tsv '<nixpkgs>'
  firn compare --list nix.tsv --other /nix/store -E 'import ./. { system = \"x86_64-linux\"; }'
";

const GRAPH: &str = "\
firn graph draws what a result depends on: files, directories, variables, names in the search path, and derivations.

Usage: firn graph [FLAG…] [FLAKE#PATH]
       firn graph (--file FILE | --expr EXPR) [FLAG…] [PATH]

The value is evaluated as firn eval would print it, and what was asked of the outside meanwhile is drawn. An arrow from
file to file says that the one names the other.

Flags:
  --dot                  print text for Graphviz (the default)
  --svg                  print a picture
  --all                  show all derivations below a derivation, not only its inputs
  -f, --file FILE        the file; `<name>` is looked up in the search path
  --expr EXPR            the expression

Flags of every command are listed by firn --help.

Examples:
  firn graph --svg -f ./default.nix hello > hello.svg
  firn graph .#packages.x86_64-linux.default | dot -Tpdf > default.pdf
";

const DOCTOR: &str = "\
firn doctor tells what a run would find: versions, settings and where they come from, the search path, the store.

Usage: firn doctor [FLAG…]

A line that begins with `!` is a problem, and the next says what to do about it. The exit status is 1 if there is one.

Flags of every command are listed by firn --help; those that are given count as settings.

Examples:
  firn doctor
  firn doctor --store /tmp/store -I nixpkgs=./nixpkgs
";

const COMPLETIONS: &str = "\
firn completions prints what a shell needs to complete firn's command line.

Usage: firn completions (bash | zsh | fish)

Examples:
  firn completions bash > ~/.local/share/bash-completion/completions/firn
  firn completions fish > ~/.config/fish/completions/firn.fish
";

const MAN: &str = "\
firn man prints manual pages: of the program, or of a command.

Usage: firn man [COMMAND]
       firn man --output DIR

Flags:
  --output DIR           write all pages into a directory

Examples:
  firn man eval | man -l -
  firn man --output ~/.local/share/man/man1
";

/// The commands, in the order of the overview, and their texts.
pub(crate) const TOPICS: &[(&str, &str)] = &[
    ("instantiate", INSTANTIATE),
    ("eval", EVAL),
    ("jobs", JOBS),
    ("repl", REPL),
    ("profile", PROFILE),
    ("why", super::why::HELP),
    ("watch", super::watch::HELP),
    ("affected", super::affected::HELP),
    ("graph", GRAPH),
    ("compare", COMPARE),
    ("flake", FLAKE),
    ("cache", super::cache::HELP),
    ("doctor", DOCTOR),
    ("completions", COMPLETIONS),
    ("man", MAN),
];

fn print(invocation: &mut Invocation, text: &str) -> Result<(), Failure> {
    invocation.output.write(text.as_bytes())
}

/// What the program does.
pub fn overview(invocation: &mut Invocation) -> Result<(), Failure> {
    print(invocation, OVERVIEW)
}

/// What a command does.
pub fn show(invocation: &mut Invocation, command: &str) -> Result<(), Failure> {
    match TOPICS.iter().find(|(name, _)| *name == command) {
        Some((_, text)) => print(invocation, text),
        None => Err(Failure::usage("'", command.as_bytes(), "' is not a recognised command")),
    }
}

/// `firn help [COMMAND]`.
pub fn topic(invocation: &mut Invocation, mut words: Words) -> Result<(), Failure> {
    match words.next_word() {
        None => overview(invocation),
        Some(Word::Argument(name) | Word::Flag(name)) => show(invocation, &String::from_utf8_lossy(&name)),
    }
}

/// The version, in the form of the tool that firn is called as.
pub fn version(invocation: &mut Invocation) -> Result<(), Failure> {
    let text = match invocation.tool {
        Some(tool) => format!("{tool} (Nix) {NIX_VERSION}\n"),
        None => format!("firn {} (language of Nix {NIX_VERSION})\n", env!("CARGO_PKG_VERSION")),
    };
    print(invocation, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overview_lists_every_command() {
        for (name, text) in TOPICS {
            assert!(OVERVIEW.contains(&format!("\n  {name} ")), "{name}");
            assert!(text.starts_with(&format!("firn {name} ")) && text.contains(&format!("Usage: firn {name}")), "{name}");
            assert!(text.contains("Examples:\n") || matches!(*name, "flake" | "cache"), "{name}");
        }
    }
}
