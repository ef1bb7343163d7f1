//! A server on the loopback, as good or bad as a test wants it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What to answer to a request: its path, and the etag it says it has.
pub type Answer = Box<dyn Fn(&str, Option<&str>) -> Reply + Send + Sync>;

/// An answer.
#[derive(Clone)]
pub enum Reply {
    /// Status, headers and body (`$URL` is the server's address).
    Full(u16, Vec<(String, String)>, Vec<u8>),
    /// Says more bytes are coming than do, then closes.
    Truncated(Vec<u8>, usize),
    /// Sends the first half, and then nothing for so long.
    Stalled(Vec<u8>, Duration),
}

/// A running server.
pub struct Server {
    /// Its address.
    pub url: String,
    /// Paths that were asked for.
    pub asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Serves until the test ends.
    pub fn start(answer: Answer) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, answer, served) = (asked.clone(), Arc::new(answer), url.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, answer, url) = (log.clone(), answer.clone(), served.clone());
                std::thread::spawn(move || drop(serve(stream, &url, &log, &*answer)));
            }
        });
        Server { url, asked }
    }

    /// How often something was asked for.
    pub fn count(&self) -> usize {
        self.asked.lock().expect("no test panicked here").len()
    }
}

fn serve(mut stream: TcpStream, url: &str, log: &Mutex<Vec<String>>, answer: &Answer) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut lines = reader.by_ref().lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let (mut etag, mut length) = (None, 0);
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        match line.split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("if-none-match") => etag = Some(value.to_owned()),
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().unwrap_or(0),
            _ => {}
        }
    }
    // What is sent along is read, or the answer might be lost with it.
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    log.lock().expect("no test panicked here").push(path.clone());
    match answer(&path, etag.as_deref()) {
        Reply::Full(status, headers, body) => {
            let body = match String::from_utf8(body) {
                Ok(text) => text.replace("$URL", url).into_bytes(),
                Err(bytes) => bytes.into_bytes(),
            };
            let headers: String = headers.iter().map(|(name, value)| format!("{name}: {}\r\n", value.replace("$URL", url))).collect();
            write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n", body.len())?;
            stream.write_all(&body)?;
        }
        Reply::Truncated(body, claimed) => {
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {claimed}\r\nConnection: close\r\n\r\n")?;
            stream.write_all(&body)?;
        }
        Reply::Stalled(body, pause) => {
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len())?;
            stream.write_all(&body[..body.len() / 2])?;
            stream.flush()?;
            std::thread::sleep(pause);
            stream.write_all(&body[body.len() / 2..])?;
        }
    }
    stream.flush()
}
