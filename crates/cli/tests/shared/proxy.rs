//! A proxy that lies: it flips and cuts what comes back, sends what another request got, says other lengths, waits, and
//! breaks off. It takes one request for each connection.

use crate::Random;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A proxy that runs until the test ends.
pub struct Proxy {
    /// The URL of the remote as seen through it.
    pub url: String,
    tampered: Arc<AtomicUsize>,
}

impl Proxy {
    /// Stands between a reader and the server of a URL.
    pub fn start(url: &str) -> Proxy {
        let (host, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = format!("http://{}/{path}", listener.local_addr().unwrap());
        let tampered = Arc::new(AtomicUsize::new(0));
        let (host, count) = (host.to_owned(), tampered.clone());
        let earlier: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                let (host, count, earlier) = (host.clone(), count.clone(), earlier.clone());
                std::thread::spawn(move || {
                    let random = Random::new(number as u64 + 1);
                    // A reader that has gone away is no matter.
                    let _ = pass(stream, &host, random, &count, &earlier);
                });
            }
        });
        Proxy { url: own, tampered }
    }

    /// How many answers were tampered with.
    pub fn tampered(&self) -> usize {
        self.tampered.load(Ordering::Relaxed)
    }
}

/// Reads a message: head, and as much body as it says.
fn read_message(stream: &mut TcpStream) -> std::io::Result<(Vec<u8>, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(at) = bytes.windows(4).position(|end| end == b"\r\n\r\n") {
            let head = bytes[..at + 4].to_vec();
            let text = String::from_utf8_lossy(&head).to_lowercase();
            let length = text.split("content-length:").nth(1).and_then(|rest| rest.split("\r\n").next()?.trim().parse().ok());
            let mut body = bytes[at + 4..].to_vec();
            while body.len() < length.unwrap_or(0) {
                let read = stream.read(&mut buffer)?;
                if read == 0 {
                    break;
                }
                body.extend_from_slice(&buffer[..read]);
            }
            return Ok((head, body));
        }
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&buffer[..read]);
    }
}

fn pass(
    mut reader: TcpStream,
    host: &str,
    mut random: Random,
    count: &AtomicUsize,
    earlier: &Mutex<Vec<Vec<u8>>>,
) -> std::io::Result<()> {
    let (head, body) = read_message(&mut reader)?;
    let mut server = TcpStream::connect(host)?;
    server.write_all(&head)?;
    server.write_all(&body)?;
    let (head, mut body) = read_message(&mut server)?;
    let original = body.clone();
    let mut length = None;
    count.fetch_add(1, Ordering::Relaxed);
    match random.below(9) {
        0 | 1 if !body.is_empty() => {
            for _ in 0..=random.below(3) {
                let at = random.below(body.len());
                body[at] ^= 1 << random.below(8);
            }
        }
        2 if !body.is_empty() => body.truncate(random.below(body.len())),
        3 => length = Some(body.len() + 1 + random.below(1000)),
        4 => std::thread::sleep(Duration::from_millis(50 + random.below(600) as u64)),
        5 | 6 => {
            // What was sent before, to another question or at another time.
            let earlier = earlier.lock().unwrap();
            if !earlier.is_empty() {
                body.clone_from(&earlier[random.below(earlier.len())]);
            }
        }
        7 => return Ok(()),
        _ => {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
    earlier.lock().unwrap().push(original);
    let status = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
    let length = length.unwrap_or(body.len());
    write!(reader, "{status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
    reader.write_all(&body)?;
    reader.flush()
}
