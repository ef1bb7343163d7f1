//! How far a run is: a line that changes on a terminal, a line now and then elsewhere.

use crate::log::Log;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the terminal's line changes, and how often lines are printed elsewhere.
const REFRESH: Duration = Duration::from_millis(200);
const REPEAT: Duration = Duration::from_secs(10);
/// Information is told from this verbosity on.
const INFORMATION: i32 = 3;

/// What has been done.
pub(super) struct Progress {
    log: Arc<Log>,
    /// None if nothing is told.
    every: Option<Duration>,
    terminal: bool,
    start: Instant,
    told: Instant,
    /// Lines so far, and those of them that are errors.
    pub done: usize,
    pub failed: usize,
    /// Those that were known from earlier runs.
    pub known: usize,
}

impl Progress {
    /// `quiet` tells nothing; `before` is the time that earlier processes of this run took.
    pub fn new(log: &Arc<Log>, quiet: bool, before: Duration) -> Progress {
        let terminal = std::io::stderr().is_terminal() && !log.is_plain();
        let every = if terminal { REFRESH } else { REPEAT };
        let quiet = quiet || log.verbosity() < INFORMATION;
        let now = Instant::now();
        let start = now.checked_sub(before).unwrap_or(now);
        Progress { log: log.clone(), every: (!quiet).then_some(every), terminal, start, told: now, done: 0, failed: 0, known: 0 }
    }

    /// Time since the run began.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// How long the next line may be waited for before it is time to tell again.
    pub fn patience(&self) -> Duration {
        self.every.map_or(REPEAT, |every| every.saturating_sub(self.told.elapsed()).max(Duration::from_millis(1)))
    }

    /// Tells how far the run is, if it is time to. `left` is how many paths are known and not done.
    pub fn tell(&mut self, left: usize) {
        if self.every.is_none_or(|every| self.told.elapsed() < every) {
            return;
        }
        self.told = Instant::now();
        let line = describe(self.done, self.failed, self.known, left, self.elapsed());
        if self.terminal { self.log.show_status(&line) } else { self.log.line(line.as_bytes()) }
    }

    /// Ends the terminal's line, for good or before another process goes on.
    pub fn pause(&self) {
        if self.terminal && self.every.is_some() {
            self.log.show_status("");
        }
    }

    /// Tells the result.
    pub fn finish(&self) {
        self.pause();
        if self.every.is_some() {
            let jobs = if self.done == 1 { "job" } else { "jobs" };
            let mut line = format!("{} {jobs}, {} failed{}", self.done, self.failed, remembered(self.known));
            if self.terminal {
                line += &format!(", {}", clock(self.elapsed()));
            }
            self.log.line(line.as_bytes());
        }
    }
}

fn remembered(known: usize) -> String {
    if known == 0 { String::new() } else { format!(", {known} remembered") }
}

fn describe(done: usize, failed: usize, known: usize, left: usize, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64().max(0.001);
    let mut line = format!("{done} done, {failed} failed{}, {rate:.1}/s", remembered(known));
    if rate > 0.0 && left > 0 {
        line += &format!(", {left} to do, {} left", clock(Duration::from_secs_f64(left as f64 / rate)));
    }
    line
}

/// Minutes and seconds, hours where there are some.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_how_far_it_is() {
        let time = Duration::from_secs(5);
        assert_eq!(describe(50, 2, 0, 100, time), "50 done, 2 failed, 10.0/s, 100 to do, 0:10 left");
        assert_eq!(describe(50, 2, 40, 0, time), "50 done, 2 failed, 40 remembered, 10.0/s");
        assert_eq!(describe(0, 0, 0, 7, time), "0 done, 0 failed, 0.0/s");
        assert_eq!(clock(Duration::from_secs(3725)), "1:02:05");
    }
}
