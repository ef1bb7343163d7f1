//! Measures firn beside Nix: the same programs, alternately, the smallest user time of each. `bench/run` builds and calls
//! it. Answers are compared first: a figure for a wrong answer means nothing.
#![allow(clippy::disallowed_methods, reason = "a tool that runs other programs, no part of evaluation")]

mod arguments;
mod counters;
mod machine;
mod measure;
mod programs;
mod report;

use arguments::Arguments;
use measure::{Tool, compare};
use report::Row;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    let firn = Tool::firn(&arguments.firn);
    let nix = Tool::nix(&arguments.nix);
    let programs = programs::all(&arguments)?;
    if programs.is_empty() {
        return Err(format!("no program's name contains `{}`", arguments.only));
    }
    let mut rows = Vec::new();
    println!("{}", report::HEAD);
    for program in &programs {
        let (firn, nix) = compare(&firn, (!arguments.alone).then_some(&nix), program, arguments.times)?;
        let row = Row { name: program.name.clone(), firn, nix };
        println!("{}", row.text());
        rows.push(row);
    }
    print!("{}", report::summary(&rows));
    let counted = if arguments.counters { counters::table(&firn, &nix, &programs)? } else { String::new() };
    print!("{counted}");
    if let Some(file) = &arguments.record {
        let text = report::page(&arguments, &machine::describe(&nix), &rows, &counted);
        std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        println!("recorded in {}", file.display());
    }
    Ok(())
}
