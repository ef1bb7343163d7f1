//! Zip archives: methods, modes, links, times; what is refused.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use crate::server::{Reply, Server};
use crate::{Bench, listing};
use firn_host::fetch::Placed;

/// An entry to be written: name, content, mode, method.
type Written<'a> = (&'a str, &'a [u8], u32, u16);

const FILE: u32 = 0o100_644;

fn packed(content: &[u8], method: u16) -> Vec<u8> {
    match method {
        8 => {
            let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
            deflate.write_all(content).expect("compresses");
            deflate.finish().expect("ends")
        }
        93 => zstd::bulk::compress(content, 1).expect("compresses"),
        _ => content.to_vec(),
    }
}

/// An archive as the tools of this name write it; `edit` may spoil an entry's line of the directory.
fn zip(entries: &[Written<'_>], edit: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (name, content, mode, method) in entries {
        let start = archive.len() as u32;
        let packed = packed(content, *method);
        let mut crc = flate2::Crc::new();
        crc.update(content);
        // 2020-09-13, in the two forms of time that there are.
        let time = [1, 0x40, 0x20, 0x5e, 0x5f];
        let mut common = Vec::new();
        common.extend([20_u16, 0, *method, 12 << 11, 40 << 9 | 9 << 5 | 13].iter().flat_map(|field| field.to_le_bytes()));
        common.extend([crc.sum(), packed.len() as u32, content.len() as u32].iter().flat_map(|field| field.to_le_bytes()));
        common.extend((name.len() as u16).to_le_bytes());
        archive.extend([b"PK\x03\x04", &common[..], &0_u16.to_le_bytes(), name.as_bytes(), &packed].concat());
        let mut line = [b"PK\x01\x02\x1e\x03", &common[..]].concat();
        line.extend([9_u16, 0, 0, 0].iter().flat_map(|field| field.to_le_bytes()));
        line.extend((mode << 16).to_le_bytes());
        line.extend(start.to_le_bytes());
        line.extend([name.as_bytes(), b"UT\x05\x00", &time].concat());
        edit(&mut line);
        directory.extend(line);
    }
    let (start, size, count) = (archive.len() as u32, directory.len() as u32, entries.len() as u16);
    archive.extend(directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend([count, count].iter().flat_map(|field| field.to_le_bytes()));
    archive.extend([size, start].iter().flat_map(|field| field.to_le_bytes()));
    archive.extend(b"\x07\x00comment");
    archive
}

fn sample() -> Vec<Written<'static>> {
    vec![
        ("top/", b"", 0o040_755, 0),
        ("top/a.txt", b"hello hello hello hello", FILE, 8),
        ("top/run", b"#!", 0o100_755, 0),
        ("top/link", b"a.txt", 0o120_777, 0),
        ("top/sub/b", b"deep", FILE, 93),
    ]
}

fn server(archives: Vec<Vec<u8>>) -> Server {
    Server::start(Box::new(move |path, _| {
        let index: usize = path.trim_start_matches('/').trim_end_matches(".zip").parse().unwrap_or(0);
        Reply::Full(200, Vec::new(), archives[index].clone())
    }))
}

#[test]
fn files_modes_links_and_times_come_out() {
    let server = server(vec![zip(&sample(), |_| {}), zip(&sample()[..2], |_| {})]);
    let cache = tempfile::tempdir().expect("a directory");
    let bench = Bench::new(cache.path(), |_| {});
    let tree = bench.url(&format!("{}/0.zip", server.url)).expect("unpacks");
    assert_eq!(listing(&tree), ["a.txt: hello hello hello hello", "link -> a.txt", "run: #!", "sub/b: deep"]);
    assert_eq!(tree.input.last_modified().expect("a number"), Some(1_600_004_160));
    let other = bench.url(&format!("{}/1.zip", server.url)).expect("unpacks");
    assert_eq!(listing(&other), ["a.txt: hello hello hello hello"]);
    let Placed::Elsewhere(mount) = &tree.placed else { panic!("in store") };
    let mode = |name: &str| mount.root.as_path().join(name).metadata().expect("a file").permissions().mode() & 0o111;
    assert_eq!((mode("run") != 0, mode("a.txt")), (true, 0));
}

#[test]
fn nothing_is_written_outside() {
    let dir = tempfile::tempdir().expect("a directory");
    let outside = dir.path().join("outside");
    std::fs::create_dir(&outside).expect("makes a directory");
    let target = outside.display().to_string().into_bytes();
    let through = zip(&[("top/link", &target, 0o120_777, 0), ("top/link/evil", b"x", FILE, 0)], |_| {});
    let above = zip(&[("top/a", b"1", FILE, 0), ("../../../evil", b"x", FILE, 0)], |_| {});
    let server = server(vec![through, above]);
    let bench = Bench::new(&dir.path().join("cache"), |_| {});
    let error = bench.url(&format!("{}/0.zip", server.url)).expect_err("writes through a link");
    assert!(error.to_string().contains("in the way of a directory"), "{error}");
    let tree = bench.url(&format!("{}/1.zip", server.url)).expect("stays inside");
    assert_eq!(listing(&tree), ["evil: x", "top/a: 1"]);
    assert_eq!(std::fs::read_dir(&outside).expect("lists").count(), 0);
}

#[test]
fn what_is_wrong_is_told() {
    let good = zip(&sample(), |_| {});
    let spoilt = |at: usize, byte: u8| zip(&sample()[1..2], |line| line[at] = byte);
    let archives = vec![
        good[..good.len() - 30].to_vec(),
        spoilt(8, 1),
        spoilt(10, 14),
        spoilt(16, 0),
        spoilt(24, 5),
        spoilt(20, 3),
        spoilt(42, 200),
        zip(&[("device", b"", 0o020_644, 0)], |_| {}),
        [b"PK\x05\x06", &[0xff; 18][..]].concat(),
    ];
    let said = [
        "Truncated ZIP file", "Encrypted file is unsupported", "Unsupported ZIP compression method (14)", "ZIP bad CRC",
        "ZIP uncompressed data is wrong size", "ZIP", "Truncated ZIP file", "has unsupported file type 8192", "Truncated ZIP file",
    ];
    let server = server(archives);
    let cache = tempfile::tempdir().expect("a directory");
    let bench = Bench::new(cache.path(), |_| {});
    for (index, said) in said.iter().enumerate() {
        let error = bench.url(&format!("{}/{index}.zip", server.url)).expect_err(said).to_string();
        assert!(error.contains(said), "{said:?} is not in {error}");
    }
    let left = std::fs::read_dir(cache.path().join("trees")).expect("lists").count();
    assert_eq!(left, 0, "nothing half-written is left");
}
