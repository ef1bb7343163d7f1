//! Archives: forms of compression, the single directory, links, what is refused.

use std::io::Write;

use crate::server::{Reply, Server};
use crate::{Bench, listing};
use firn_host::fetch::Attr;

fn tar(entries: &[(&str, &str, tar::EntryType, u32)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content, kind, mode) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(*mode);
        header.set_mtime(1_600_000_000);
        // Names are written as they are: the builder refuses what a test wants to see refused.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        let data = match kind {
            tar::EntryType::Regular => content.as_bytes(),
            _ => {
                let link = header.as_gnu_mut().expect("a GNU header");
                link.linkname[..content.len()].copy_from_slice(content.as_bytes());
                b""
            }
        };
        header.set_size(data.len() as u64);
        header.set_cksum();
        builder.append(&header, data).expect("appends");
    }
    builder.into_inner().expect("finishes")
}

fn sample() -> Vec<u8> {
    use tar::EntryType::{Directory, Link, Regular, Symlink};
    tar(&[
        ("top/", "", Directory, 0o755),
        ("top/a.txt", "hello", Regular, 0o644),
        ("top/run", "#!", Regular, 0o755),
        ("top/link", "a.txt", Symlink, 0o777),
        ("./top/sub/b", "deep", Regular, 0o600),
        ("top/hard", "top/a.txt", Link, 0o644),
    ])
}

#[test]
fn every_compression_gives_the_same_tree() {
    let plain = sample();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).expect("compresses");
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(&plain).expect("compresses");
    let mut xz = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::default()).expect("starts");
    xz.write_all(&plain).expect("compresses");
    let zstd = [zstd::bulk::compress(&plain[..700], 1), zstd::bulk::compress(&plain[700..], 1)].map(|frame| frame.expect("compresses")).concat();
    let forms = [plain, gzip.finish().expect("ends"), bzip2.finish().expect("ends"), xz.finish().expect("ends"), zstd];
    let server = Server::start(Box::new(move |path, _| {
        let index: usize = path.trim_start_matches('/').trim_end_matches(".tar").parse().unwrap_or(0);
        Reply::Full(200, Vec::new(), forms[index].clone())
    }));
    let cache = tempfile::tempdir().expect("a directory");
    let bench = Bench::new(cache.path(), |_| {});
    let trees: Vec<_> = (0..5).map(|form| bench.url(&format!("{}/{form}.tar", server.url)).expect("unpacks")).collect();
    assert_eq!(listing(&trees[0]), ["a.txt: hello", "hard: hello", "link -> a.txt", "run: #!", "sub/b: deep"]);
    for tree in &trees {
        assert_eq!(tree.input.text("narHash"), trees[0].input.text("narHash"));
        assert_eq!(tree.input.last_modified().expect("a number"), Some(1_600_000_000));
        assert_eq!(tree.store_path, trees[0].store_path);
    }
}

#[test]
fn nothing_is_written_outside() {
    use tar::EntryType::{Regular, Symlink};
    let dir = tempfile::tempdir().expect("a directory");
    let outside = dir.path().join("outside");
    std::fs::create_dir(&outside).expect("makes a directory");
    let through = tar(&[
        ("top/link", outside.to_str().expect("UTF-8"), Symlink, 0o777),
        ("top/link/evil", "x", Regular, 0o644),
    ]);
    let above = tar(&[("top/a", "1", Regular, 0o644), ("../../../evil", "x", Regular, 0o644)]);
    let server = Server::start(Box::new(move |path, _| {
        Reply::Full(200, Vec::new(), if path == "/through.tar" { through.clone() } else { above.clone() })
    }));
    let bench = Bench::new(&dir.path().join("cache"), |_| {});
    let error = bench.url(&format!("{}/through.tar", server.url)).expect_err("writes through a link");
    assert!(error.to_string().contains("in the way of a directory"), "{error}");
    let tree = bench.url(&format!("{}/above.tar", server.url)).expect("stays inside");
    assert_eq!(listing(&tree), ["evil: x", "top/a: 1"]);
    assert_eq!(std::fs::read_dir(&outside).expect("lists").count(), 0);
}

#[test]
fn garbage_and_wrong_hashes_are_told() {
    let good = sample();
    let server = Server::start(Box::new(move |path, _| match path {
        "/good.tar" => Reply::Full(200, Vec::new(), good.clone()),
        "/zip.tar" => Reply::Full(200, Vec::new(), b"PK\x03\x04rest of nothing".to_vec()),
        _ => Reply::Full(200, Vec::new(), b"this is no archive at all".to_vec()),
    }));
    let cache = tempfile::tempdir().expect("a directory");
    let bench = Bench::new(cache.path(), |_| {});
    for name in ["bad", "zip"] {
        let error = bench.url(&format!("{}/{name}.tar", server.url)).expect_err("no archive");
        assert!(error.to_string().contains("failed to extract archive"), "{error}");
    }
    let zero = format!("sha256-{}=", "A".repeat(43));
    let url = format!("{}/good.tar", server.url);
    let attrs = [("type", Attr::from("tarball")), ("url", url.into()), ("narHash", Attr::from(zero.as_str()))];
    let error = bench.attrs(attrs).expect_err("another hash");
    assert!(error.to_string().starts_with("NAR hash mismatch in input"), "{error}");
    assert_eq!(error.kind(), firn_host::fetch::FetchErrorKind::Mismatch);
}

#[test]
fn an_immutable_address_is_what_gets_locked() {
    let good = sample();
    let server = Server::start(Box::new(move |path, _| {
        let link = "<$URL/fixed.tar>; rel=\"immutable\"".to_owned();
        let headers = if path == "/moving.tar" { vec![("Link".to_owned(), link)] } else { Vec::new() };
        Reply::Full(200, headers, good.clone())
    }));
    let cache = tempfile::tempdir().expect("a directory");
    let bench = Bench::new(cache.path(), |_| {});
    let tree = bench.url(&format!("{}/moving.tar", server.url)).expect("unpacks");
    assert_eq!(tree.input.text("url"), Some(format!("{}/fixed.tar", server.url).as_str()));
}
