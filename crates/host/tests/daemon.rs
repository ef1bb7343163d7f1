//! Daemons of every version that is spoken, played by a thread: greeting, additions, builds, failures half-way (E5).
//! The real daemon is met in `crates/cli/tests/hydration.rs`; this one can be newer, older, or wrong.
#![allow(clippy::disallowed_methods, reason = "a test plays the other side of a socket")]

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};

use firn_host::{AbsPath, Host, RealHost, RealWorld, Store, StoreReference, StoreSettings, open_store};
use firn_store::content_address::Method;
use firn_store::context::Built;
use firn_store::hash::sha256;
use firn_store::path::StorePath;
use firn_store::store_dir::StoreDir;

/// How the daemon behaves.
#[derive(Clone, Copy)]
struct Manner {
    minor: u64,
    refuses_additions: bool,
}

struct Side(UnixStream);

impl Side {
    fn number(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.0.read_exact(&mut bytes).map_or(0, |()| u64::from_le_bytes(bytes))
    }

    fn string(&mut self) -> Vec<u8> {
        let length = self.number() as usize;
        let mut text = vec![0; length.next_multiple_of(8)];
        self.0.read_exact(&mut text).unwrap();
        text.truncate(length);
        text
    }

    fn strings(&mut self) -> Vec<Vec<u8>> {
        (0..self.number()).map(|_| self.string()).collect()
    }

    fn frames(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let mut frame = vec![0; self.number() as usize];
            if frame.is_empty() {
                return all;
            }
            self.0.read_exact(&mut frame).unwrap();
            all.extend(frame);
        }
    }

    fn say(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.0.write_all(&number.to_le_bytes()).unwrap();
        }
    }

    fn say_text(&mut self, text: &[u8]) {
        self.say(&[text.len() as u64]);
        let mut padded = text.to_vec();
        padded.resize(text.len().next_multiple_of(8), 0);
        self.0.write_all(&padded).unwrap();
    }

    fn greet(&mut self, manner: Manner) {
        assert_eq!(self.number(), 0x6e69_7863);
        self.say(&[0x6478_696f, 1 << 8 | manner.minor]);
        let minor = (self.number() & 0xff).min(manner.minor);
        if minor >= 38 {
            assert!(self.strings().is_empty());
            self.say(&[1]);
            self.say_text(b"a-feature");
        }
        assert_eq!((self.number(), self.number()), (0, 0));
        if minor >= 33 {
            self.say_text(b"played");
        }
        if minor >= 35 {
            self.say(&[1]);
        }
        self.say(&[LAST]);
    }

    fn fail(&mut self, message: &[u8], trace: &[u8]) {
        self.say(&[0x6378_7470]);
        self.say_text(b"Error");
        self.say(&[0]);
        self.say_text(b"Error");
        self.say_text(message);
        self.say(&[0, 1, 0]);
        self.say_text(trace);
    }

    /// Every sort of message that may come before an answer.
    fn chatter(&mut self) {
        self.say(&[0x6f6c_6d67]);
        self.say_text(b"a line\n");
        self.say(&[0x5354_5254, 7, 3, 105]);
        self.say_text(b"building it");
        self.say(&[2, 0, 9, 1]);
        self.say_text(b"field");
        self.say(&[0, 0x5253_4c54, 7, 101, 1, 1]);
        self.say_text(b"from the builder");
        self.say(&[0x5354_4f50, 7]);
    }
}

const LAST: u64 = 0x616c_7473;
const OUTPUT: &str = "0c3zdl1xvpmcqk1fdhbzj2w6y9cmclhz-made";

fn serve(stream: UnixStream, manner: Manner, added: &Mutex<Vec<u8>>) {
    let mut side = Side(stream);
    side.greet(manner);
    loop {
        match side.number() {
            0 => return,
            19 => {
                for _ in 0..12 {
                    side.number();
                }
                (0..side.number()).for_each(|_| drop((side.string(), side.string())));
                side.say(&[LAST]);
            }
            31 => {
                side.strings();
                side.number();
                side.say(&[LAST, 0]);
            }
            44 => {
                assert_eq!((side.number(), side.number()), (0, 0));
                if manner.refuses_additions {
                    side.fail(b"the disk is full", b"while adding");
                    side.frames();
                    continue;
                }
                side.chatter();
                added.lock().unwrap().extend(side.frames());
                side.say(&[LAST]);
            }
            46 => build(&mut side, manner.minor),
            1 => {
                side.string();
                side.say(&[LAST, 1]);
            }
            other => panic!("unknown request {other}"),
        }
    }
}

fn build(side: &mut Side, minor: u64) {
    let wanted = side.strings();
    side.number();
    side.chatter();
    side.say(&[LAST, wanted.len() as u64]);
    for one in wanted {
        let fails = one.ends_with(b"!bad");
        side.say_text(&one);
        side.say(&[if fails { 3 } else { 0 }]);
        side.say_text(if fails { b"it broke" } else { b"" });
        side.say(&[1, 0, 2, 3]);
        if minor >= 37 {
            side.say(&[1, 5, 0]);
        }
        if fails {
            side.say(&[0]);
            continue;
        }
        side.say(&[1]);
        side.say_text(b"sha256:00!out");
        side.say_text(format!("{{\"id\":\"sha256:00!out\",\"outPath\":\"{OUTPUT}\"}}").as_bytes());
    }
}

/// What a played daemon was sent and what the user was told.
struct Played {
    store: Arc<dyn Store>,
    added: Arc<Mutex<Vec<u8>>>,
    told: Arc<Mutex<Vec<String>>>,
    _dir: tempfile::TempDir,
}

fn play(manner: Manner) -> Played {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    let added = Arc::new(Mutex::new(Vec::new()));
    let sink = added.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sink = sink.clone();
            std::thread::spawn(move || serve(stream, manner, &sink));
        }
    });
    let told = Arc::new(Mutex::new(Vec::new()));
    let log = told.clone();
    let settings =
        StoreSettings::new(Arc::new(move |line| log.lock().unwrap().push(String::from_utf8_lossy(line).into_owned())));
    let host: Arc<dyn Host> = Arc::new(RealHost::new(RealWorld));
    let name = format!("unix://{}", socket.display());
    let reference = StoreReference::parse(name.as_bytes(), &AbsPath::root()).unwrap();
    let (store, _) = open_store(&host, &reference, &StoreDir::default(), settings).unwrap();
    Played { store, added, told, _dir: dir }
}

fn add(store: &dyn Store, name: &str, text: &[u8]) -> StorePath {
    let path = StoreDir::default().make_text_path(name.as_bytes(), &sha256(text), &[]).unwrap();
    store.add_text(&path, text.to_vec().into(), Arc::from([]), Method::Text).unwrap();
    path
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn daemons_of_all_versions_take_texts_and_build() {
    for minor in [32, 34, 35, 36, 37, 38, 39] {
        let played = play(Manner { minor, refuses_additions: false });
        let path = add(&*played.store, "x.drv", b"some text");
        assert_eq!(played.store.text(&path).as_deref(), Some(&b"some text"[..]));
        played.store.finish().unwrap();
        let added = played.added.lock().unwrap().clone();
        assert!(has(&added, path.as_bytes()) && has(&added, b"some text"), "1.{minor}");
        assert!(played.store.is_valid(&path).unwrap());
        if minor < 34 {
            continue;
        }
        let built = played.store.build(&[Built::new(path.clone(), Arc::from(&b"out"[..]))]).unwrap();
        assert_eq!(built[0].as_str(), OUTPUT, "1.{minor}");
        assert!(played.store.is_made(&built[0]));
        let failed = played.store.build(&[Built::new(path, Arc::from(&b"bad"[..]))]).unwrap_err();
        assert_eq!(failed.message(), b"it broke");
        let told = played.told.lock().unwrap().clone();
        assert_eq!(told[..3], ["a line", "building it...", "from the builder"], "1.{minor}");
    }
}

#[test]
fn a_daemon_that_refuses_a_stream_fails_everyone_who_waits() {
    let played = play(Manner { minor: 34, refuses_additions: true });
    // More than a socket holds: the refusal comes while the stream is being sent.
    for index in 0..64 {
        let text = vec![b'x'; 100_000];
        let path = StoreDir::default().make_text_path(format!("t{index}").as_bytes(), &sha256(&text), &[]).unwrap();
        if played.store.add_text(&path, text.to_vec().into(), Arc::from([]), Method::Text).is_err() {
            break;
        }
    }
    let error = played.store.finish().unwrap_err();
    assert_eq!(error.message(), b"the disk is full");
    assert_eq!(error.traces(), [b"while adding".to_vec()]);
    assert!(played.store.finish().is_err(), "the failure stays");
}

#[test]
fn daemons_that_are_too_old_or_no_daemons_are_refused() {
    let played = play(Manner { minor: 31, refuses_additions: false });
    add(&*played.store, "t", b"t");
    let error = played.store.finish().unwrap_err().to_string();
    assert!(error.contains("the Nix daemon version is too old"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // It answers what it was asked and stays until the other side is done.
            let mut hello = [0; 8];
            if stream.read_exact(&mut hello).is_ok() {
                drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
                drop(stream.read_to_end(&mut Vec::new()));
            }
        }
    });
    let host: Arc<dyn Host> = Arc::new(RealHost::new(RealWorld));
    let name = format!("unix://{}", socket.display());
    let reference = StoreReference::parse(name.as_bytes(), &AbsPath::root()).unwrap();
    let settings = StoreSettings::new(Arc::new(|_| {}));
    let (store, _) = open_store(&host, &reference, &StoreDir::default(), settings).unwrap();
    add(&*store, "t", b"t");
    let error = store.finish().unwrap_err().to_string();
    assert!(error.contains("protocol mismatch"), "{error}");
}
