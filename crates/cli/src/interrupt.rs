//! Ctrl-C. The first ends what is evaluated and so the command, in good order if that takes no longer than a moment; the second
//! ends the process. A conversation goes on after the first.
//!
//! The thread that the process began with waits here for signals while the program runs on another.

use signal_hook::consts::SIGINT;
use signal_hook::iterator::{Handle, Signals};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The status that shells give to what Ctrl-C ended.
pub const STATUS: u8 = 130;

/// How long the program may take to end by itself. What blocks longer (a network, a builder) is left as it is.
const GRACE: Duration = Duration::from_secs(1);

static STAYS: AtomicBool = AtomicBool::new(false);
static TOLD: AtomicBool = AtomicBool::new(false);

/// The program goes on after an interruption: it is a conversation.
pub fn stay() {
    STAYS.store(true, Ordering::SeqCst);
}

/// Whether the program goes on after an interruption.
pub fn stays() -> bool {
    STAYS.load(Ordering::SeqCst)
}

/// Whether the user is told now; only the first who asks tells.
pub fn is_first_to_tell() -> bool {
    !TOLD.swap(true, Ordering::SeqCst)
}

/// Ends waiting for signals when it is dropped.
pub struct Listening(Option<Handle>);

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.close();
        }
    }
}

/// Signals to wait for; none if the process was started to ignore them, as in the background of a script.
pub struct Waiting(Option<Signals>);

static HANDLE: OnceLock<Handle> = OnceLock::new();

/// Makes ready to take signals, none as yet.
pub fn begin() -> (Waiting, Listening) {
    let none: [i32; 0] = [];
    let signals = if is_ignored() { None } else { Signals::new(none).ok() };
    let handle = signals.as_ref().map(Signals::handle);
    if let Some(handle) = &handle {
        let _ = HANDLE.set(handle.clone());
    }
    (Waiting(signals), Listening(handle))
}

/// Takes Ctrl-C from here on. Who edits lines takes it too while lines are edited, and puts itself in the place of whoever
/// took it before: it must have done so by now.
pub fn listen() {
    if let Some(handle) = HANDLE.get() {
        // Where signals cannot be had, Ctrl-C does what it always does.
        let _ = handle.add_signal(SIGINT);
    }
}

#[allow(clippy::disallowed_methods, reason = "asks about this process, not for evaluation")]
fn is_ignored() -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return false };
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (SIGINT - 1) & 1 == 1)
}

impl Waiting {
    /// Waits until the program has ended in another way than by ending the process.
    pub fn wait(self) {
        let Some(mut signals) = self.0 else { return };
        while signals.forever().next().is_some() {
            if firn_eval::is_interrupted() {
                std::process::exit(STATUS.into());
            }
            firn_eval::interrupt();
            if !stays() {
                expect_end(&mut signals);
            }
        }
    }
}

fn expect_end(signals: &mut Signals) {
    let began = Instant::now();
    while began.elapsed() < GRACE {
        if signals.pending().next().is_some() {
            std::process::exit(STATUS.into());
        }
        if signals.handle().is_closed() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    if is_first_to_tell() {
        let _ = std::io::stderr().write_all(b"error: interrupted by the user\n");
    }
    std::process::exit(STATUS.into());
}
