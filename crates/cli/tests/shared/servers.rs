//! Real servers on this machine, each with a port and a directory of its own; ended when the test lets go of them.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that runs.
pub struct Server {
    /// The URL of a remote in it.
    pub url: String,
    process: Child,
    _dir: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port that nobody listens on.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn is_missing(program: &str) -> bool {
    let found = std::env::var_os("PATH").is_some_and(|path| {
        let places = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
        places.into_iter().any(|dir| dir.join(program).exists())
    });
    if !found {
        eprintln!("\n**** NOT TESTED: there is no {program} on PATH ****\n");
    }
    !found
}

fn start(mut command: Command, port: u16, url: String, dir: tempfile::TempDir) -> Server {
    let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let server = Server { url, process, _dir: dir };
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(began.elapsed() < Duration::from_secs(30), "the server does not start: {command:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    server
}

/// Redis.
pub fn redis() -> Option<Server> {
    if is_missing("redis-server") {
        return None;
    }
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"]).arg(dir.path());
    Some(start(command, port, format!("redis://127.0.0.1:{port}/0"), dir))
}

/// nginx with WebDAV.
pub fn nginx() -> Option<Server> {
    if is_missing("nginx") {
        return None;
    }
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let root = dir.path().display();
    std::fs::create_dir(dir.path().join("dav")).unwrap();
    let temporary: String =
        ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|name| format!("{name}_temp_path {root}/{name};\n")).concat();
    let user = if is_root(dir.path()) { "user root;" } else { "" };
    let config = format!(
        "{user} master_process off; daemon off; pid {root}/pid; error_log {root}/errors;\nevents {{ worker_connections 512; }}\n\
         http {{ access_log off; {temporary} server {{ listen 127.0.0.1:{port}; root {root}/dav; client_max_body_size 32m;\n\
         location / {{ dav_methods PUT DELETE; create_full_put_path on; }} }} }}\n"
    );
    std::fs::write(dir.path().join("nginx.conf"), config).unwrap();
    let program = if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" };
    let mut command = Command::new(program);
    command.arg("-e").arg(dir.path().join("errors")).arg("-c").arg(dir.path().join("nginx.conf"));
    Some(start(command, port, format!("http://127.0.0.1:{port}/firn"), dir))
}

fn is_root(dir: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(dir).is_ok_and(|about| about.uid() == 0)
}

/// A server that speaks like S3, with a bucket.
pub fn s3() -> Option<Server> {
    if is_missing("moto_server") {
        return None;
    }
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let mut command = Command::new("moto_server");
    command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
    let url = format!("s3://bucket/firn?endpoint=http://127.0.0.1:{port}");
    let server = start(command, port, url, dir);
    let request = format!("PUT /bucket HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    Some(server)
}
