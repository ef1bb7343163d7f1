//! Tables: one row per program, and the page that is kept of a run.

use crate::arguments::Arguments;
use crate::measure::Cost;

/// The head of the table.
pub const HEAD: &str = "\
| program | Nix s | firn s | Nix / firn | Nix MB | firn MB | Nix / firn |
|---|--:|--:|--:|--:|--:|--:|";

/// What one program cost.
#[derive(Debug)]
pub struct Row {
    /// The program.
    pub name: String,
    /// With firn.
    pub firn: Cost,
    /// With Nix.
    pub nix: Cost,
}

impl Row {
    fn faster(&self) -> f64 {
        // User time has a grain; a run below it counts as one grain.
        self.nix.time.as_secs_f64() / self.firn.time.as_secs_f64().max(0.000_5)
    }

    fn smaller(&self) -> f64 {
        self.nix.memory as f64 / self.firn.memory.max(1) as f64
    }

    /// The row as it is printed.
    pub fn text(&self) -> String {
        let seconds = |cost: &Cost| format!("{:.3}", cost.time.as_secs_f64());
        let megabytes = |cost: &Cost| format!("{:.1}", cost.memory as f64 / 1e6);
        format!(
            "| {} | {} | {} | {:.2} | {} | {} | {:.2} |",
            self.name,
            seconds(&self.nix),
            seconds(&self.firn),
            self.faster(),
            megabytes(&self.nix),
            megabytes(&self.firn),
            self.smaller(),
        )
    }
}

/// Geometric means of the ratios, and the slowest program.
pub fn summary(rows: &[Row]) -> String {
    let mean = |ratio: fn(&Row) -> f64| (rows.iter().map(|row| ratio(row).ln()).sum::<f64>() / rows.len() as f64).exp();
    let least = rows.iter().min_by(|a, b| a.faster().total_cmp(&b.faster()));
    let least = least.map_or(String::new(), |row| format!("; least: {} ({:.2})", row.name, row.faster()));
    format!("\ngeometric mean of Nix / firn: time {:.2}, memory {:.2}{least}", mean(Row::faster), mean(Row::smaller))
}

/// The page kept of a run.
pub fn page(arguments: &Arguments, machine: &str, rows: &[Row], counted: &str) -> String {
    let lines: Vec<String> = rows.iter().map(Row::text).collect();
    format!(
        "# {}\n\n{machine}\n\nSmallest user time of {} alternate runs (start-up: wall clock).\n\n{HEAD}\n{}\n{}\n{counted}",
        arguments.title,
        arguments.times,
        lines.join("\n"),
        summary(rows),
    )
}
