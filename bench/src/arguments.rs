//! The command line of the runner.

use std::path::PathBuf;

/// What to measure and with what.
#[derive(Debug)]
pub struct Arguments {
    /// firn's binary.
    pub firn: PathBuf,
    /// The real `nix-instantiate`.
    pub nix: PathBuf,
    /// Folder of the programs.
    pub programs: PathBuf,
    /// A nixpkgs tree: the programs are functions of it.
    pub tree: Option<PathBuf>,
    /// Nix cannot evaluate these programs: firn is measured alone.
    pub alone: bool,
    /// Only programs whose name contains this.
    pub only: String,
    /// Runs of each program with each tool.
    pub times: usize,
    /// Count instructions and allocations too.
    pub counters: bool,
    /// Title of the page.
    pub title: String,
    /// Where the page goes.
    pub record: Option<PathBuf>,
}

impl Arguments {
    /// Reads the words after the program's name.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
        let mut arguments = Arguments {
            firn: "target/release/firn".into(),
            nix: "nix-instantiate".into(),
            programs: "bench/micro".into(),
            tree: None,
            alone: false,
            only: String::new(),
            times: 5,
            counters: false,
            title: "run".to_owned(),
            record: None,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("flag `{word}` needs a value"));
            match word.as_str() {
                "--firn" => arguments.firn = value()?.into(),
                "--nix" => arguments.nix = value()?.into(),
                "--programs" => arguments.programs = value()?.into(),
                "--tree" => arguments.tree = Some(value()?.into()),
                "--alone" => arguments.alone = true,
                "--only" => arguments.only = value()?,
                "--title" => arguments.title = value()?,
                "--record" => arguments.record = Some(value()?.into()),
                "--counters" => arguments.counters = true,
                "--times" => {
                    let text = value()?;
                    arguments.times =
                        text.parse().ok().filter(|&n| n > 0).ok_or_else(|| format!("`{text}` is no number of runs"))?;
                }
                _ => return Err(format!("there is no flag `{word}`")),
            }
        }
        Ok(arguments)
    }
}
