//! `firn repl` on a real terminal (a pty): editing, history, completion, lines that go on, reloading.
#![allow(
    clippy::disallowed_methods,
    reason = "a test looks at files and the environment itself; the door is for the evaluator"
)]

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(60);

/// A terminal with a program on it.
struct Terminal {
    keyboard: File,
    screen: mpsc::Receiver<Vec<u8>>,
    child: Child,
    seen: String,
}

impl Terminal {
    fn start(home: &Path) -> Terminal {
        Terminal::start_with(home, &[])
    }

    fn start_with(home: &Path, environment: &[(&str, &str)]) -> Terminal {
        let pty = unix::pty::openpty(None, None).expect("a pty");
        let master = File::from(pty.master);
        let copy = || Stdio::from(pty.slave.try_clone().expect("another end of the pty"));
        // Ctrl-C is ignored by what a script starts in the background, and by all that it starts.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_firn"), "repl"]).current_dir(home).env_clear().env("HOME", home).env("TERM", "xterm").env("NO_COLOR", "1");
        command.env("NIX_CONF_DIR", "/nonexistent").env("NIX_REMOTE", "dummy://");
        command.envs(environment.iter().copied());
        command.stdin(copy()).stdout(copy()).stderr(copy());
        let child = command.spawn().expect("firn starts");
        drop(pty.slave);
        let mut from = master.try_clone().expect("a reader");
        let (send, screen) = mpsc::channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The pty fails to read when its other end is gone.
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                if send.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal { keyboard: master, screen, child, seen: String::new() }
    }

    fn keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Waits until the text appears after everything that was waited for before.
    fn expect(&mut self, text: &str) {
        let end = Instant::now() + DEADLINE;
        loop {
            let plain = without_controls(&self.seen);
            if let Some(at) = plain.find(text) {
                self.seen = plain[at + text.len()..].to_owned();
                return;
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.screen.recv_timeout(left) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("no '{text}' in: {plain:?}"),
            }
        }
    }

    fn ask(&mut self, line: &str, answer: &str) {
        self.keys(line);
        self.keys("\r");
        self.expect("\n");
        self.expect(answer);
        self.expect("firn> ");
    }
}

/// The text without what moves the cursor.
fn without_controls(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\x1b' {
            out.push(c);
            continue;
        }
        if chars.peek() == Some(&'[') {
            chars.next();
            while chars.next().is_some_and(|c| !c.is_ascii_alphabetic()) {}
        }
    }
    out
}

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_conversation() {
    let scratch = Scratch(std::env::temp_dir().join(format!("firn-repl-{}", std::process::id())));
    std::fs::create_dir_all(&scratch.0).expect("a scratch directory");
    let file = scratch.0.join("set.nix");
    std::fs::write(&file, "{ one = 1; /** Adds one. */ next = n: n + 1; }").expect("written");
    let mut terminal = Terminal::start(&scratch.0);
    terminal.expect("Type :? for help.");
    terminal.expect("firn> ");
    terminal.ask("x = 20", "");
    terminal.ask("x + 22", "42");
    terminal.ask("x = x + 1; y = 2", "");
    terminal.ask("[ x y ]", "21");
    // A set over two lines.
    terminal.keys("{ a = x;\r");
    terminal.expect("      ");
    terminal.ask("  b = 2; }", "a = 21;");
    // Completion of an attribute, then of a variable.
    terminal.keys("builtins.attrNa\t");
    terminal.expect("attrNames");
    terminal.ask(" { quite = 1; }", "\"quite\"");
    terminal.ask(":l ./set.nix", "Added 2 variables.");
    terminal.keys("nex\t");
    terminal.expect("next");
    terminal.ask(" 41", "42");
    terminal.ask(":doc next", "Adds one.");
    terminal.ask(":t next", "a function");
    terminal.ask(":doc builtins.map", "builtins.map f list");
    // The line before, by the arrow.
    terminal.ask("\x1b[A", "builtins.map f list");
    std::fs::write(&file, "{ one = 11; }").expect("written");
    terminal.ask(":r", "Added 1 variables.");
    terminal.ask("one", "11");
    terminal.ask(":why one", "set.nix  code");
    terminal.ask("one + 1", "12");
    terminal.ask("x", "undefined variable 'x'");
    terminal.ask(":p { s = { t = [ 1 ]; }; }", "t = [ 1 ];");
    terminal.ask(":nonsense", "unknown command ':nonsense'");
    // An unfinished line is given up.
    terminal.keys("[ 1\r");
    terminal.expect("      ");
    terminal.keys("\x03");
    terminal.expect("firn> ");
    terminal.ask("\"still here\"", "still here");
    terminal.keys("\x04");
    assert!(terminal.child.wait().expect("firn ends").success());
    let kept = std::fs::read_to_string(scratch.0.join(".local/share/firn/repl-history")).expect("a history");
    assert!(kept.contains("x + 22") && kept.contains("still here"), "{kept}");
}

#[test]
fn an_interruption_leads_back_to_the_prompt() {
    let scratch = Scratch(std::env::temp_dir().join(format!("firn-repl-interrupt-{}", std::process::id())));
    std::fs::create_dir_all(&scratch.0).expect("a scratch directory");
    let mut terminal = Terminal::start(&scratch.0);
    terminal.expect("firn> ");
    terminal.ask("slow = n: builtins.foldl' (a: b: a + builtins.length (builtins.filter (x: x) (builtins.genList (x: true) 1000))) 0 (builtins.genList (x: x) n)", "");
    terminal.ask("kept = { a = slow 1000000; }", "");
    for _ in 0..2 {
        terminal.keys("kept.a\r");
        terminal.expect("\n");
        std::thread::sleep(Duration::from_millis(500));
        let id = terminal.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill runs").success());
        terminal.expect("error: interrupted by the user");
        terminal.expect("firn> ");
        terminal.ask("slow 4", "4000");
    }
    terminal.keys("\x04");
    assert_eq!(terminal.child.wait().expect("it ends").code(), Some(0));
}

/// Files that import each other: `top` takes a function and a set, and `far` is not looked at before it is asked for.
fn write_files(dir: &Path) {
    let files = [
        ("top.nix", "let f = import ./f.nix; in { sum = f (import ./data.nix).n; far = import ./far.nix; names = builtins.attrNames (builtins.readDir ./more); }"),
        ("f.nix", "n: n + (import ./far.nix)"),
        ("data.nix", "{ n = 1; }"),
        ("far.nix", "100"),
    ];
    std::fs::create_dir_all(dir.join("more")).expect("a directory");
    for (name, text) in files {
        std::fs::write(dir.join(name), text).expect("written");
    }
    // Files that were written a moment ago may have been written again since: nobody could tell by their times.
    std::thread::sleep(Duration::from_millis(3100));
}

/// Runs a conversation to its end; how many texts the last session parsed and how many files it evaluated.
fn counted(dir: &Path, talk: impl FnOnce(&mut Terminal)) -> (u64, u64) {
    let statistics = dir.join("statistics");
    let shown = statistics.to_str().expect("a name");
    let mut terminal = Terminal::start_with(dir, &[("NIX_SHOW_STATS", "1"), ("NIX_SHOW_STATS_PATH", shown)]);
    terminal.expect("firn> ");
    talk(&mut terminal);
    terminal.keys("\x04");
    assert!(terminal.child.wait().expect("firn ends").success());
    let text = std::fs::read_to_string(&statistics).expect("statistics");
    let number = |name: &str| {
        let rest = text.split(&format!("\"{name}\": ")).nth(1).unwrap_or_else(|| panic!("no {name} in {text}"));
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().expect("a number")
    };
    (number("parsed"), number("nrFiles"))
}

#[test]
fn loading_again_does_not_repeat_what_has_not_changed() {
    let scratch = Scratch(std::env::temp_dir().join(format!("firn-repl-reload-{}", std::process::id())));
    let dir = &scratch.0;
    std::fs::create_dir_all(dir).expect("a scratch directory");
    write_files(dir);
    let load = |terminal: &mut Terminal| {
        terminal.ask(":l ./top.nix", "Added 3 variables.");
        terminal.ask("sum", "101");
    };
    // Three files are imported by the one that is loaded.
    assert_eq!(counted(dir, load), (4, 3));
    // Nothing changes: nothing is parsed or evaluated again, however it is loaded, and variables are forgotten as ever.
    let nothing = counted(dir, |terminal| {
        load(terminal);
        terminal.ask("own = sum", "");
        terminal.ask(":r", "Added 3 variables.");
        terminal.ask("own", "undefined variable 'own'");
    });
    assert_eq!(nothing, (4, 3));
    let again = counted(dir, |terminal| {
        for _ in 0..3 {
            load(terminal);
            terminal.ask(":r", "Added 3 variables.");
            terminal.ask("sum", "101");
        }
    });
    assert_eq!(again, (4, 3));
    // One file changes: it is parsed, all are evaluated.
    let edited = counted(dir, |terminal| {
        load(terminal);
        std::fs::write(dir.join("far.nix"), "200").expect("written");
        terminal.ask(":r", "Added 3 variables.");
        terminal.ask("sum", "201");
        terminal.ask("far", "200");
    });
    assert_eq!(edited, (1, 3));
    // So do a listing, and a file that is written with the same text again.
    let listed = counted(dir, |terminal| {
        terminal.ask(":l ./top.nix", "Added 3 variables.");
        terminal.ask("sum", "201");
        terminal.ask("names", "[ ]");
        std::fs::write(dir.join("more/one"), "").expect("written");
        std::fs::write(dir.join("data.nix"), "{ n = 1; }").expect("written");
        terminal.ask(":r", "Added 3 variables.");
        terminal.ask("names", "\"one\"");
        terminal.ask("sum", "201");
    });
    assert_eq!(listed, (0, 3));
}

#[test]
fn what_was_said_and_what_failed_is_said_again() {
    let scratch = Scratch(std::env::temp_dir().join(format!("firn-repl-said-{}", std::process::id())));
    let dir = &scratch.0;
    std::fs::create_dir_all(dir).expect("a scratch directory");
    write_files(dir);
    std::fs::write(dir.join("top.nix"), "{ loud = builtins.trace \"it speaks\" 1; bad = throw \"it fails\"; quiet = 2; here = import ./later.nix; }").expect("written");
    std::thread::sleep(Duration::from_millis(3100));
    let mut terminal = Terminal::start(dir);
    terminal.expect("firn> ");
    terminal.ask(":l ./top.nix", "Added 4 variables.");
    for _ in 0..2 {
        terminal.ask("loud", "trace: it speaks");
        terminal.ask(":r", "Added 4 variables.");
    }
    for _ in 0..2 {
        terminal.ask("bad", "it fails");
        terminal.ask(":r", "Added 4 variables.");
    }
    terminal.ask("here", "later.nix");
    std::fs::write(dir.join("later.nix"), "\"there now\"").expect("written");
    terminal.ask(":r", "Added 4 variables.");
    terminal.ask("here", "there now");
    terminal.keys("\x04");
    assert!(terminal.child.wait().expect("firn ends").success());
}
