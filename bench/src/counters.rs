//! Counts that do not depend on the machine's mood: instructions (callgrind), and what firn's machine counted itself.

use crate::measure::Tool;
use crate::programs::Program;

/// The counters of `NIX_SHOW_STATS` that are shown.
const SHOWN: [&str; 5] = ["nrFunctionCalls", "nrThunks", "nrForces", "nrLookups", "totalBytes"];

/// A table of counts per program.
pub fn table(firn: &Tool, nix: &Tool, programs: &[Program]) -> Result<String, String> {
    let mut out = format!(
        "\n| program | Nix Mi | firn Mi | Nix / firn | {} |\n|---|--:|--:|--:|{}\n",
        SHOWN.join(" | "),
        "--:|".repeat(SHOWN.len()),
    );
    for program in programs.iter().filter(|program| !program.words.iter().any(|word| word == "--parse")) {
        let (a, b) = (instructions(firn, program)?, instructions(nix, program)?);
        let counted = statistics(firn, program)?;
        let row = format!(
            "| {} | {:.1} | {:.1} | {:.2} | {} |\n",
            program.name,
            b as f64 / 1e6,
            a as f64 / 1e6,
            b as f64 / a as f64,
            counted.map(|n| n.to_string()).join(" | ")
        );
        eprint!("{row}");
        out.push_str(&row);
    }
    Ok(out)
}

/// Instructions that callgrind collected.
fn instructions(tool: &Tool, program: &Program) -> Result<u64, String> {
    let below = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
    let output = tool.command(&below, &program.words).output().map_err(|error| format!("valgrind: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().filter_map(|line| line.split_once("Collected :")).next_back();
    let number = collected.and_then(|(_, number)| number.trim().parse().ok());
    number.ok_or_else(|| format!("valgrind does not say what {} takes on {}", tool.program.display(), program.name))
}

/// What firn counted, in the order of [`SHOWN`].
fn statistics(firn: &Tool, program: &Program) -> Result<[u64; 5], String> {
    let output =
        firn.command(&[], &program.words).env("NIX_SHOW_STATS", "1").output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stderr);
    let number = |name: &str| {
        let (_, rest) = text.split_once(&format!("\"{name}\": "))?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    let mut all = [0; 5];
    for (slot, name) in all.iter_mut().zip(SHOWN) {
        *slot = number(name).ok_or_else(|| format!("NIX_SHOW_STATS does not give `{name}`"))?;
    }
    Ok(all)
}
