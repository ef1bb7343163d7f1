//! Objects: what lies in a remote, compressed, and where. Nothing is unpacked beyond a bound.
//!
//! ```text
//! v1/index/ab/abcd…     the answers to a question, by its digest
//! v1/nodes/ab/abcd…     a node of observations, by its digest
//! v1/answers/ab/abcd…   result, log and needed store paths, by their digest
//! ```
//!
//! The two letters are there for directories; a proxy in front of several stores can share out by them (spec L3.5).

use crate::counts::Wrong;
use firn_host::Digest;
use std::io::Read;

/// The version of the layout and of everything in it. Another one is another set of objects.
pub const VERSION: u8 = 1;

/// What an object is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// The answers to a question.
    Index,
    /// A node of observations.
    Node,
    /// Result, log and needs.
    Answer,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 3] = [Kind::Index, Kind::Node, Kind::Answer];

    /// The folder that objects of this kind lie in.
    pub fn folder(self) -> &'static str {
        match self {
            Kind::Index => "index",
            Kind::Node => "nodes",
            Kind::Answer => "answers",
        }
    }

    /// The most bytes that such an object may have as it lies there.
    pub fn most_packed(self) -> usize {
        match self {
            Kind::Index => 1 << 20,
            Kind::Node => 4 << 20,
            Kind::Answer => 16 << 20,
        }
    }

    /// The most bytes that it may have when unpacked.
    pub fn most(self) -> usize {
        match self {
            Kind::Index => 4 << 20,
            Kind::Node => 8 << 20,
            Kind::Answer => 64 << 20,
        }
    }

    /// Where the object of a digest lies.
    pub fn path(self, digest: &Digest) -> String {
        let name = digest.to_string();
        format!("v{VERSION}/{}/{}/{name}", self.folder(), &name[..2])
    }

    /// The kind and the digest of the object that lies at a path.
    pub fn of_path(path: &str) -> Option<(Kind, Digest)> {
        let mut parts = path.split('/');
        let version = parts.next()?.strip_prefix('v')?;
        let folder = parts.next()?;
        let (shard, name) = (parts.next()?, parts.next()?);
        let kind = Kind::ALL.into_iter().find(|kind| kind.folder() == folder)?;
        let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let whole = parts.next().is_none() && name.len() == 64 && name.bytes().all(lower) && name.starts_with(shard);
        if version != VERSION.to_string() || !whole || shard.len() != 2 {
            return None;
        }
        let bytes = firn_store::encoding::base16_decode(name.as_bytes()).ok()?;
        Some((kind, Digest(bytes.try_into().ok()?)))
    }
}

/// Compresses an object. None if it is larger than such an object may be.
pub fn pack(kind: Kind, bytes: &[u8]) -> Option<Vec<u8>> {
    let packed = zstd::bulk::compress(bytes, 3).ok()?;
    (bytes.len() <= kind.most() && packed.len() <= kind.most_packed()).then_some(packed)
}

/// Unpacks an object within its bounds: no more memory than the bound and the window, whatever the bytes claim.
pub fn unpack(kind: Kind, packed: &[u8]) -> Result<Vec<u8>, Wrong> {
    if packed.len() > kind.most_packed() {
        return Err(Wrong::TooLarge);
    }
    let mut decoder = zstd::stream::read::Decoder::with_buffer(packed).map_err(|_| Wrong::Malformed)?.single_frame();
    decoder.window_log_max(23).map_err(|_| Wrong::Malformed)?;
    let mut bytes = Vec::new();
    let limit = kind.most() as u64 + 1;
    decoder.by_ref().take(limit).read_to_end(&mut bytes).map_err(|_| Wrong::Malformed)?;
    if bytes.len() > kind.most() {
        return Err(Wrong::TooLarge);
    }
    // Bytes after the frame would be bytes that nobody signed for.
    if decoder.finish().is_empty() { Ok(bytes) } else { Err(Wrong::Malformed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_come_back_and_bombs_do_not_go_off() {
        let bytes = b"some bytes ".repeat(1000);
        let packed = pack(Kind::Index, &bytes).unwrap();
        assert!(packed.len() < 100);
        assert_eq!(unpack(Kind::Index, &packed), Ok(bytes));
        let bomb = zstd::bulk::compress(&vec![0; (Kind::Index.most() + 1) * 4], 19).unwrap();
        assert!(bomb.len() < 10_000);
        assert_eq!(unpack(Kind::Index, &bomb), Err(Wrong::TooLarge));
        assert_eq!(unpack(Kind::Index, &vec![0; Kind::Index.most_packed() + 1]), Err(Wrong::TooLarge));
        assert_eq!(unpack(Kind::Index, b"no frame"), Err(Wrong::Malformed));
        let twice = [&packed[..], &packed[..]].concat();
        assert_eq!(unpack(Kind::Index, &twice), Err(Wrong::Malformed));
        for len in 0..packed.len() {
            assert!(unpack(Kind::Index, &packed[..len]).is_err());
        }
        assert_eq!(pack(Kind::Index, &vec![0; Kind::Index.most() + 1]), None);
    }

    #[test]
    fn a_path_names_one_object_and_nothing_else() {
        let digest = Digest([0xab; 32]);
        for kind in Kind::ALL {
            assert_eq!(Kind::of_path(&kind.path(&digest)), Some((kind, digest)));
        }
        let path = Kind::Node.path(&digest);
        for bad in [
            format!("/{path}"),
            format!("{path}/"),
            path.replace("v1", "v2"),
            path.replace("nodes", "other"),
            path.replace("/ab/", "/ac/"),
            path.replace("ab", "AB"),
            path[..path.len() - 1].to_owned(),
            format!("v1/nodes/../{}", "ab".repeat(32)),
        ] {
            assert_eq!(Kind::of_path(&bad), None, "{bad}");
        }
    }
}
