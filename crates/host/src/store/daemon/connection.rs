//! One conversation with a daemon: greeting, options, questions, and the messages that come before each answer.
//!
//! A failure that the daemon reports leaves the conversation in step; any other breaks it, and it is not used again.
#![allow(clippy::disallowed_methods)]

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use firn_store::{Error, ErrorKind, Result};
use unix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::wire::{Incoming, Message, Outgoing};
use crate::store::{Log, StoreSettings};

const CLIENT: u64 = 0x6e69_7863;
const DAEMON: u64 = 0x6478_696f;
/// The newest version spoken here: 1.38.
const NEWEST: u64 = 1 << 8 | 38;
/// The oldest: texts and trees are added as framed streams since 1.25, many at once since 1.32.
const OLDEST: u64 = 1 << 8 | 32;

mod said {
    pub const NEXT: u64 = 0x6f6c_6d67;
    pub const READ: u64 = 0x6461_7461;
    pub const WRITE: u64 = 0x6461_7416;
    pub const LAST: u64 = 0x616c_7473;
    pub const ERROR: u64 = 0x6378_7470;
    pub const START_ACTIVITY: u64 = 0x5354_5254;
    pub const STOP_ACTIVITY: u64 = 0x5354_4f50;
    pub const RESULT: u64 = 0x5253_4c54;
}

/// Kinds of results of an activity that are lines for the user: of a build, of the hook after it.
const BUILD_LINE: u64 = 101;
const HOOK_LINE: u64 = 107;
/// Nix's level of information.
const INFORMATION: i32 = 3;
/// Bytes of a stream between looks at what the daemon says.
const FRAME: usize = 32 * 1024;

/// A field of a message about an activity.
enum Field {
    Number,
    Text(Vec<u8>),
}

/// A conversation over some pair of streams.
pub(super) struct Connection {
    from: Incoming<Box<dyn Read + Send>>,
    to: Outgoing<Box<dyn Write + Send>>,
    /// What to ask whether the daemon has said something.
    ready: OwnedFd,
    version: u64,
    log: Log,
    verbosity: i32,
    broken: bool,
}

impl Connection {
    /// Greets the daemon and sets its options.
    pub fn begin(
        from: Box<dyn Read + Send>,
        to: Box<dyn Write + Send>,
        ready: OwnedFd,
        settings: &StoreSettings,
    ) -> Result<Connection> {
        let (log, verbosity) = (settings.log.clone(), settings.verbosity);
        let (from, to) = (Incoming::new(from), Outgoing::new(to));
        let mut connection = Connection { from, to, ready, version: 0, log, verbosity, broken: false };
        connection.greet()?;
        connection.set_options(settings)?;
        Ok(connection)
    }

    fn greet(&mut self) -> Result<()> {
        let mut hello = Message::default();
        self.to.send(hello.number(CLIENT).number(NEWEST))?;
        if self.from.number()? != DAEMON {
            return Err(Error::new(ErrorKind::Other, &[b"nix-daemon protocol mismatch from"]));
        }
        let theirs = self.from.number()?;
        if theirs >> 8 != NEWEST >> 8 {
            return Err(Error::new(ErrorKind::Other, &[b"Nix daemon protocol version not supported"]));
        }
        if theirs < OLDEST {
            return Err(Error::new(ErrorKind::Other, &[b"the Nix daemon version is too old"]));
        }
        self.version = theirs.min(NEWEST);
        if self.has(38) {
            let mut features = Message::default();
            self.to.send(features.strings(std::iter::empty()))?;
            self.from.strings()?;
        }
        // Places of options that are no more: processor affinity, reserved space.
        let mut old = Message::default();
        self.to.send(old.number(0).flag(false))?;
        if self.has(33) {
            self.from.string()?;
        }
        if self.has(35) {
            self.from.number()?;
        }
        self.listen()
    }

    fn set_options(&mut self, settings: &StoreSettings) -> Result<()> {
        let number = |name: &str, default: u64| settings.number(name).unwrap_or(default);
        let mut message = Message::default();
        message
            .number(19)
            .flag(settings.flag("keep-failed"))
            .flag(settings.flag("keep-going"))
            .flag(settings.flag("fallback"))
            .number(u64::try_from(self.verbosity).unwrap_or(0))
            .number(number("max-jobs", 1))
            .number(number("max-silent-time", 0))
            .flag(true)
            // The level from which build output is shown: errors, so all of it is.
            .number(0)
            .number(0)
            .number(0)
            .number(number("cores", 0))
            .flag(settings.overrides.get("substitute").is_none_or(|value| value == b"true"));
        let own = ["keep-failed", "keep-going", "fallback", "max-jobs", "max-silent-time", "cores", "substitute"];
        let others: Vec<_> = settings.overrides.iter().filter(|(name, _)| !own.contains(&name.as_str())).collect();
        message.number(others.len() as u64);
        for (name, value) in others {
            message.string(name.as_bytes()).string(value);
        }
        self.to.send(&message)?;
        self.listen()
    }

    /// Whether the agreed version is at least 1.`minor`.
    pub fn has(&self, minor: u64) -> bool {
        self.version >= (1 << 8 | minor)
    }

    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Asks, waits until the daemon is done, and reads the answer.
    pub fn ask<T>(&mut self, question: &Message, answer: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        self.unless_broken(|own| own.to.send(question))?;
        self.listen()?;
        self.unless_broken(answer)
    }

    /// As [`Connection::ask`], with a stream after the question.
    pub fn ask_with_stream<T>(
        &mut self,
        question: &Message,
        stream: impl FnOnce(&mut dyn Write) -> Result<()>,
        answer: impl FnOnce(&mut Connection) -> Result<T>,
    ) -> Result<T> {
        self.unless_broken(|own| own.to.send(question))?;
        let mut frames = Frames { connection: self, buffer: Vec::with_capacity(FRAME), said: None };
        let sent = stream(&mut frames);
        let (said, ended) = frames.end();
        if let Some(error) = said {
            // The daemon has reported its failure and reads on to the end of the stream: still in step.
            return Err(error);
        }
        ended.inspect_err(|_| self.broken = true)?;
        if let Err(error) = sent {
            // The daemon took half a stream for a whole one; what it says of that is not our error.
            self.broken = true;
            return Err(error);
        }
        self.listen()?;
        self.unless_broken(answer)
    }

    fn unless_broken<T>(&mut self, action: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        let result = action(self);
        self.broken |= result.is_err();
        result
    }

    /// Hears the daemon out: messages for the user, then its success or failure.
    fn listen(&mut self) -> Result<()> {
        loop {
            let heard = self.unless_broken(Connection::hear)?;
            match heard {
                Heard::More => {}
                Heard::Done => return Ok(()),
                Heard::Failure(error) => return Err(error),
            }
        }
    }

    fn hear(&mut self) -> Result<Heard> {
        match self.from.number()? {
            said::LAST => return Ok(Heard::Done),
            said::ERROR => return Ok(Heard::Failure(self.error()?)),
            said::NEXT => {
                let text = self.from.string()?;
                self.tell(0, text.trim_ascii_end());
            }
            said::START_ACTIVITY => {
                let _id = self.from.number()?;
                let level = self.from.number()?;
                let _kind = self.from.number()?;
                let text = self.from.string()?;
                self.fields()?;
                let _parent = self.from.number()?;
                if !text.is_empty() {
                    self.tell(i32::try_from(level).unwrap_or(i32::MAX), &[&text[..], b"..."].concat());
                }
            }
            said::STOP_ACTIVITY => {
                self.from.number()?;
            }
            said::RESULT => {
                let _id = self.from.number()?;
                let kind = self.from.number()?;
                let fields = self.fields()?;
                let prefix: &[u8] = if kind == HOOK_LINE { b"post-build-hook: " } else { b"" };
                if let (BUILD_LINE | HOOK_LINE, Some(Field::Text(line))) = (kind, fields.first()) {
                    self.tell(INFORMATION, &[prefix, line].concat());
                }
            }
            said::READ => return Err(Error::new(ErrorKind::Other, &[b"no source"])),
            said::WRITE => {
                self.from.string()?;
                return Err(Error::new(ErrorKind::Other, &[b"no sink"]));
            }
            other => {
                let message = format!("got unknown message type {other:x} from Nix daemon");
                return Err(Error::new(ErrorKind::Other, &[message.as_bytes()]));
            }
        }
        Ok(Heard::More)
    }

    fn fields(&mut self) -> Result<Vec<Field>> {
        let mut all = Vec::new();
        for _ in 0..self.from.length()? {
            all.push(match self.from.number()? {
                0 => {
                    self.from.number()?;
                    Field::Number
                }
                1 => Field::Text(self.from.string()?),
                other => {
                    let message = format!("got unsupported field type {other:x} from Nix daemon");
                    return Err(Error::new(ErrorKind::Other, &[message.as_bytes()]));
                }
            });
        }
        Ok(all)
    }

    fn error(&mut self) -> Result<Error> {
        let kind = self.from.string()?;
        if kind != b"Error" {
            return Err(Error::new(ErrorKind::Serialisation, &[b"unexpected error type '", &kind, b"'"]));
        }
        let _level = self.from.number()?;
        let _name = self.from.string()?;
        let text = self.from.string()?;
        self.no_position()?;
        let mut traces = Vec::new();
        for _ in 0..self.from.length()? {
            self.no_position()?;
            traces.push(self.from.string()?);
        }
        traces.reverse();
        Ok(Error::new(ErrorKind::Other, &[&text]).with_traces(traces))
    }

    fn no_position(&mut self) -> Result<()> {
        if self.from.flag()? {
            return Err(Error::new(ErrorKind::Serialisation, &[b"deserializing error positions is not supported"]));
        }
        Ok(())
    }

    fn tell(&self, level: i32, text: &[u8]) {
        if level <= self.verbosity {
            (self.log)(text);
        }
    }

    /// Where the answer is read from.
    pub fn answer(&mut self) -> &mut Incoming<Box<dyn Read + Send>> {
        &mut self.from
    }

    fn has_said_something(&self) -> bool {
        if self.from.is_buffered() {
            return true;
        }
        let mut waiting = [PollFd::new(self.ready.as_fd(), PollFlags::POLLIN)];
        poll(&mut waiting, PollTimeout::ZERO).is_ok_and(|count| count > 0)
    }
}

enum Heard {
    More,
    Done,
    Failure(Error),
}

/// A stream in frames. Between frames the daemon is heard, so that neither side waits for the other for ever.
struct Frames<'a> {
    connection: &'a mut Connection,
    buffer: Vec<u8>,
    said: Option<Error>,
}

impl Frames<'_> {
    fn send(&mut self) -> std::io::Result<()> {
        let io = |error: Error| std::io::Error::other(error.to_string());
        while self.said.is_none() && self.connection.has_said_something() {
            match self.connection.hear().map_err(io)? {
                Heard::More => {}
                Heard::Done => {
                    return Err(std::io::Error::other("the Nix daemon ended a stream that was not sent yet"));
                }
                Heard::Failure(error) => self.said = Some(error),
            }
        }
        if self.said.is_none() {
            self.connection.to.frame(&self.buffer).map_err(io)?;
        }
        self.buffer.clear();
        Ok(())
    }

    /// Ends the stream: what the daemon said against it, and whether it could be ended.
    fn end(mut self) -> (Option<Error>, Result<()>) {
        let sent = if self.buffer.is_empty() { Ok(()) } else { self.send() };
        let ended = sent.map_err(Error::from).and_then(|()| self.connection.to.frame(b""));
        (self.said, ended)
    }
}

impl Write for Frames<'_> {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        self.buffer.extend_from_slice(data);
        if self.buffer.len() >= FRAME {
            self.send()?;
        }
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
