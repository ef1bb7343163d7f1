//! `firn completions SHELL`: what bash, zsh or fish need to complete firn's command line, made of the help texts.

use super::help;
use super::help::page::{Flag, flags, summary};
use crate::arguments::{Word, Words};
use crate::failure::Failure;
use crate::program::Invocation;
use std::fmt::Write;

/// Runs the command.
pub fn run(invocation: &mut Invocation, mut words: Words) -> Result<(), Failure> {
    let mut shell = None;
    while let Some(word) = words.next_word() {
        match word {
            Word::Argument(name) if shell.is_none() => shell = Some(name),
            Word::Flag(flag) if flag == b"--help" => return help::show(invocation, "completions"),
            Word::Argument(word) => return Err(Failure::usage("unexpected argument '", &word, "'")),
            Word::Flag(flag) => return Err(Failure::usage("unrecognised flag '", &flag, "'")),
        }
    }
    let script = match shell.as_deref() {
        Some(b"bash") => bash(),
        Some(b"zsh") => zsh(),
        Some(b"fish") => fish(),
        Some(other) => return Err(Failure::usage("completions are made for bash, zsh and fish, not for '", other, "'")),
        None => return Err(Failure::Usage(b"which shell: bash, zsh or fish?".to_vec())),
    };
    invocation.output.write(script.as_bytes())
}

fn common() -> Vec<Flag> {
    flags(help::OVERVIEW)
}

/// The words that follow a command and are no flags.
fn second_words(command: &str) -> &'static str {
    match command {
        "flake" => "metadata show lock update",
        "cache" => "stats verify gc clear export import push pull key serve",
        "completions" => "bash zsh fish",
        "profile" => "eval instantiate",
        _ => "",
    }
}

fn bash() -> String {
    let names: Vec<&str> = help::TOPICS.iter().map(|(name, _)| *name).collect();
    let list = |flags: &[Flag]| flags.iter().map(|flag| flag.name.clone()).collect::<Vec<_>>().join(" ");
    let mut script = format!(
        "# Completion of firn for bash. Put it where bash-completion looks, or: source <(firn completions bash)\n\
         _firn() {{\n    local word command=\"\" current=\"${{COMP_WORDS[COMP_CWORD]}}\" before=\"${{COMP_WORDS[COMP_CWORD-1]}}\"\n    \
         local commands=\"{} help\" flags=\"{}\" words=\"\" files=\"\"\n    \
         for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n        \
         case \" $commands \" in *\" $word \"*) command=\"$word\"; break;; esac\n    done\n    case \"$command\" in\n        \
         \"\") words=\"$commands\";;\n        help) words=\"$commands\" flags=\"\";;\n",
        names.join(" "),
        list(&common()),
    );
    let mut with_files: Vec<String> = Vec::new();
    for (name, text) in help::TOPICS {
        let own = flags(text);
        with_files.extend(own.iter().filter(|flag| takes_file(flag)).map(|flag| flag.name.clone()));
        let _ = writeln!(
            script,
            "        {name}) flags=\"$flags {}\" words=\"{}\";;",
            list(&own),
            second_words(name)
        );
    }
    with_files.sort();
    with_files.dedup();
    let _ = write!(
        script,
        "    esac\n    case \"$before\" in {}) flags=\"\" words=\"\";; esac\n    case \"$current\" in\n        \
         -*) mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$current\");;\n        \
         *) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\"; compgen -f -- \"$current\");;\n    esac\n}}\n\
         complete -o filenames -F _firn firn\n",
        with_files.join("|"),
    );
    script
}

fn takes_file(flag: &Flag) -> bool {
    flag.arguments.len() == 1 && matches!(flag.arguments[0].as_str(), "FILE" | "DIR" | "PATH" | "LIST")
}

fn zsh() -> String {
    let quote = |text: &str| text.replace('\'', "'\\''").replace(':', "\\:").replace('[', "\\[").replace(']', "\\]");
    let spec = |flag: &Flag| {
        let arguments: String = flag
            .arguments
            .iter()
            .map(|name| {
                let action = if takes_file(flag) { "_files" } else { " " };
                format!(":{}:{action}", name.to_lowercase())
            })
            .collect();
        format!("        '*{}[{}]{arguments}' \\\n", flag.name, quote(&flag.description))
    };
    let mut script = "#compdef firn\n# Completion of firn for zsh. Put it as _firn into a directory of $fpath.\n\
                      _firn() {\n    local -a commands\n    commands=(\n"
        .to_owned();
    for (name, text) in help::TOPICS {
        let _ = writeln!(script, "        '{name}:{}'", quote(summary(name, text)));
    }
    script.push_str("        'help:show a help text'\n    )\n    local -a common\n    common=(\n");
    common().iter().for_each(|flag| script.push_str(&spec(flag).replace(" \\\n", "\n")));
    script.push_str(
        "    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n        _arguments $common\n        return\n    \
         fi\n    local command=$words[2]\n    shift words; (( CURRENT-- ))\n    case $command in\n        \
         help) _describe command commands;;\n",
    );
    for (name, text) in help::TOPICS {
        let _ = writeln!(script, "        {name}) _arguments $common \\");
        flags(text).iter().for_each(|flag| script.push_str(&spec(flag)));
        let rest = match second_words(name) {
            "" => "*: :_files".to_owned(),
            words => format!("1: :({words})' '*: :_files"),
        };
        let _ = writeln!(script, "        '{rest}';;");
    }
    script.push_str("    esac\n}\n_firn \"$@\"\n");
    script
}

fn fish() -> String {
    let quote = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
    let mut script = "# Completion of firn for fish. Put it as firn.fish into ~/.config/fish/completions.\n".to_owned();
    let names: Vec<&str> = help::TOPICS.iter().map(|(name, _)| *name).chain(["help"]).collect();
    let none = format!("not __fish_seen_subcommand_from {}", names.join(" "));
    let flag_line = |condition: &str, flag: &Flag| {
        let name = match flag.name.strip_prefix("--") {
            Some(long) => format!("-l {long}"),
            None => format!("-s {}", flag.name.trim_start_matches('-')),
        };
        let argument = match (flag.arguments.is_empty(), takes_file(flag)) {
            (true, _) => "",
            (false, true) => " -r -F",
            (false, false) => " -x",
        };
        format!("complete -c firn -n '{condition}' {name}{argument} -d '{}'\n", quote(&flag.description))
    };
    for (name, text) in help::TOPICS {
        let _ = writeln!(script, "complete -c firn -f -n '{none}' -a {name} -d '{}'", quote(summary(name, text)));
    }
    let _ = writeln!(script, "complete -c firn -f -n '{none}' -a help -d 'show a help text'");
    let _ = writeln!(script, "complete -c firn -f -n '__fish_seen_subcommand_from help' -a '{}'", names.join(" "));
    common().iter().for_each(|flag| script.push_str(&flag_line("true", flag)));
    for (name, text) in help::TOPICS {
        let seen = format!("__fish_seen_subcommand_from {name}");
        if !second_words(name).is_empty() {
            let _ = writeln!(script, "complete -c firn -n '{seen}' -a '{}'", second_words(name));
        }
        flags(text).iter().for_each(|flag| script.push_str(&flag_line(&seen, flag)));
    }
    script
}
