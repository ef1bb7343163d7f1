//! Tables: one row per program, and the page that is kept of a run.

use crate::arguments::Arguments;
use crate::measure::Cost;

/// The head of the table.
pub const HEAD: &str = "\
| program | Nix s | firn s | Nix / firn | Nix wall s | firn wall s | Nix / firn | Nix MB | firn MB | Nix / firn |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|";

/// What one program cost.
#[derive(Debug)]
pub struct Row {
    /// The program.
    pub name: String,
    /// With firn.
    pub firn: Cost,
    /// With Nix, if it ran.
    pub nix: Option<Cost>,
}

/// One of the figures of a run.
type Figure = fn(&Cost) -> f64;

/// User seconds, seconds by the wall clock, megabytes.
const FIGURES: [Figure; 3] =
    [|cost| cost.time.as_secs_f64(), |cost| cost.wall.as_secs_f64(), |cost| cost.memory as f64 / 1e6];
const TIME: Figure = FIGURES[0];
const WALL: Figure = FIGURES[1];
const MEMORY: Figure = FIGURES[2];

impl Row {
    fn ratio(&self, figure: Figure) -> Option<f64> {
        // User time has a grain; a run below it counts as one grain.
        Some(figure(self.nix.as_ref()?) / figure(&self.firn).max(0.000_5))
    }

    /// The row as it is printed.
    pub fn text(&self) -> String {
        let mut text = format!("| {} |", self.name);
        for (figure, digits) in FIGURES.into_iter().zip([3, 3, 1]) {
            let nix = self.nix.as_ref().map_or("–".to_owned(), |cost| format!("{:.digits$}", figure(cost)));
            let ratio = self.ratio(figure).map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
            text += &format!(" {nix} | {:.digits$} | {ratio} |", figure(&self.firn));
        }
        text
    }
}

/// Geometric means of the ratios, and the slowest program; nothing where firn ran alone.
pub fn summary(rows: &[Row]) -> String {
    let compared: Vec<&Row> = rows.iter().filter(|row| row.nix.is_some()).collect();
    let faster = |row: &Row| row.ratio(TIME).unwrap_or(1.0);
    let Some(least) = compared.iter().min_by(|a, b| faster(a).total_cmp(&faster(b))) else {
        return String::new();
    };
    let mean = |figure: Figure| {
        let logarithms = compared.iter().filter_map(|row| row.ratio(figure)).map(f64::ln);
        (logarithms.sum::<f64>() / compared.len() as f64).exp()
    };
    format!(
        "\ngeometric mean of Nix / firn: time {:.2}, wall {:.2}, memory {:.2}; least: {} ({:.2})\n",
        mean(TIME),
        mean(WALL),
        mean(MEMORY),
        least.name,
        faster(least)
    )
}

/// The page kept of a run.
pub fn page(arguments: &Arguments, machine: &str, rows: &[Row], counted: &str) -> String {
    let lines: Vec<String> = rows.iter().map(Row::text).collect();
    format!(
        "# {}\n\n{machine}\n\nSmallest figures of {} alternate runs; `s` is user time (start-up: wall clock).\n\n{HEAD}\n{}\n{}{counted}",
        arguments.title,
        arguments.times,
        lines.join("\n"),
        summary(rows),
    )
}
