//! `.narinfo` files: what a binary cache says of a store object, and where its archive is.

use crate::content_address::ContentAddress;
use crate::error::{Error, ErrorKind, Result};
use crate::hash::{Algorithm, Hash};
use crate::path::StorePath;
use crate::path_info::PathInfo;
use crate::store_dir::StoreDir;

/// A `.narinfo` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NarInfo {
    /// What is known of the object.
    pub info: PathInfo,
    /// Where its archive is, seen from the cache's address.
    pub url: String,
    /// How the archive is compressed, by the name that the file has for it.
    pub compression: String,
    /// The hash of the compressed archive.
    pub file_hash: Option<Hash>,
    /// The length of the compressed archive.
    pub file_size: Option<u64>,
}

/// Fields as they are read.
#[derive(Default)]
struct Fields {
    path: Option<StorePath>,
    url: String,
    compression: Option<String>,
    file_hash: Option<Hash>,
    file_size: Option<u64>,
    nar_hash: Option<Hash>,
    nar_size: u64,
    references: Vec<StorePath>,
    deriver: Option<StorePath>,
    signatures: Vec<String>,
    address: Option<ContentAddress>,
}

impl NarInfo {
    /// Reads the file that was found at `whence`. Fields that are not known mean nothing.
    pub fn parse(dir: &StoreDir, text: &[u8], whence: &str) -> Result<NarInfo> {
        let mut fields = Fields::default();
        let (mut rest, mut line) = (text, 1);
        while !rest.is_empty() {
            let colon = memchr::memchr(b':', rest).ok_or_else(|| corrupt(whence, "expecting ':'", line))?;
            let start = (colon + 2).min(rest.len());
            let end = memchr::memchr(b'\n', &rest[start..]).ok_or_else(|| corrupt(whence, "expecting '\\n'", line))?;
            let (name, value) = (&rest[..colon], &rest[start..start + end]);
            fields.read(dir, name, value, &|reason| corrupt(whence, reason, line))?;
            rest = &rest[start + end + 1..];
            line += 1;
        }
        fields.finish(&|reason| corrupt(whence, reason, 0))
    }
}

impl Fields {
    fn read(&mut self, dir: &StoreDir, name: &[u8], value: &[u8], bad: &dyn Fn(&str) -> Error) -> Result<()> {
        let hash = || match Hash::parse_any_prefixed(value) {
            Ok(hash) if hash.algorithm() == Algorithm::Sha256 => Ok(hash),
            _ => Err(bad("bad hash")),
        };
        let number = || std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok());
        let text = || String::from_utf8_lossy(value).into_owned();
        match name {
            b"StorePath" => self.path = Some(dir.parse(value)?),
            b"URL" => self.url = text(),
            b"Compression" => self.compression = Some(text()).filter(|method| !method.is_empty()),
            b"FileHash" => self.file_hash = Some(hash()?),
            b"FileSize" => self.file_size = Some(number().ok_or_else(|| bad("invalid FileSize"))?),
            b"NarHash" => self.nar_hash = Some(hash()?),
            b"NarSize" => self.nar_size = number().ok_or_else(|| bad("invalid NarSize"))?,
            b"References" => {
                if !self.references.is_empty() {
                    return Err(bad("extra References"));
                }
                let words = value.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
                self.references = words.map(StorePath::parse).collect::<Result<_>>()?;
                self.references.sort();
                self.references.dedup();
            }
            b"Deriver" if value != b"unknown-deriver" => self.deriver = Some(StorePath::parse(value)?),
            b"Sig" => self.signatures.push(text()),
            b"CA" => {
                if self.address.is_some() {
                    return Err(bad("extra CA"));
                }
                self.address = if value.is_empty() { None } else { Some(ContentAddress::parse(value)?) };
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self, bad: &dyn Fn(&str) -> Error) -> Result<NarInfo> {
        let path = self.path.ok_or_else(|| bad("StorePath missing"))?;
        let nar_hash = self.nar_hash.ok_or_else(|| bad("NarHash missing"))?;
        if self.url.is_empty() {
            return Err(bad("URL missing"));
        }
        if self.nar_size == 0 {
            return Err(bad("NarSize missing or zero"));
        }
        let info = PathInfo {
            path,
            nar_hash,
            nar_size: self.nar_size,
            references: self.references,
            deriver: self.deriver,
            signatures: self.signatures,
            address: self.address,
        };
        // NIX: files from before there was a choice do not say how their archive is compressed.
        let compression = self.compression.unwrap_or_else(|| "bzip2".to_owned());
        let file_size = self.file_size.filter(|size| *size > 0);
        Ok(NarInfo { info, url: self.url, compression, file_hash: self.file_hash, file_size })
    }
}

fn corrupt(whence: &str, reason: &str, line: usize) -> Error {
    let at = if line > 0 { format!(" at line {line}") } else { String::new() };
    let message = format!("NAR info file '{whence}' is corrupt: {reason}{at}");
    Error::new(ErrorKind::Other, &[message.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Keyring, PublicKey};

    /// One with every kind of field.
    const HELLO: &str = "StorePath: /nix/store/0c3zdl1xvpmcqk1fdhbzj2w6y9cmclhz-hello\nURL: nar/x.nar.xz\nCompression: xz\n\
        FileHash: sha256:1mkvfad0qmv2j6ks8ysqv4xlr9l4bv9z50ywrhcm5yixyx4i4jbl\nFileSize: 17\n\
        NarHash: sha256:1mkvfad0qmv2j6ks8ysqv4xlr9l4bv9z50ywrhcm5yixyx4i4jbl\nNarSize: 112\n\
        References: 1c3zdl1xvpmcqk1fdhbzj2w6y9cmclhz-b 0c3zdl1xvpmcqk1fdhbzj2w6y9cmclhz-hello\nDeriver: unknown-deriver\n\
        Unknown: field\nSig: a:AAAA\nSig: b:BBBB\n";

    fn read(text: &str) -> Result<NarInfo> {
        NarInfo::parse(&StoreDir::default(), text.as_bytes(), "x.narinfo")
    }

    #[test]
    fn fields_are_read_and_what_is_signed_follows() {
        let read = read(HELLO).expect("reads");
        assert_eq!((read.url.as_str(), read.compression.as_str(), read.file_size), ("nar/x.nar.xz", "xz", Some(17)));
        let info = &read.info;
        assert!(info.refers_to_itself() && info.deriver.is_none() && info.signatures.len() == 2);
        let statement = String::from_utf8(info.fingerprint(&StoreDir::default())).expect("text");
        assert_eq!(
            statement,
            "1;/nix/store/0c3zdl1xvpmcqk1fdhbzj2w6y9cmclhz-hello;\
             sha256:1mkvfad0qmv2j6ks8ysqv4xlr9l4bv9z50ywrhcm5yixyx4i4jbl;112;\
             /nix/store/0c3zdl1xvpmcqk1fdhbzj2w6y9cmclhz-hello,/nix/store/1c3zdl1xvpmcqk1fdhbzj2w6y9cmclhz-b"
        );
        let mut keys = Keyring::default();
        let key = PublicKey::parse("cache.nixos.org-1:6NCHdD59X431o0gWypbMrAURkbJ16ZPMQFGspcDShjY=").expect("a key");
        keys.add(key);
        assert!(!info.is_signed(&StoreDir::default(), &keys));
        assert!(!info.is_content_addressed(&StoreDir::default()));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, said) in [
            ("", "StorePath missing"),
            ("nothing\n", "expecting ':' at line 1"),
            ("URL: x", "expecting '\\n' at line 1"),
            ("URL:", "expecting '\\n' at line 1"),
            ("URL: x\nNarSize: many\n", "invalid NarSize at line 2"),
            ("NarHash: sha256:zz\n", "bad hash at line 1"),
            ("NarHash: sha1:0000000000000000000000000000000000000000\n", "bad hash at line 1"),
            (&HELLO.replace("112", "0"), "NarSize missing or zero"),
            (&HELLO.replace("URL: nar/x.nar.xz\n", ""), "URL missing"),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert_eq!(error, format!("NAR info file 'x.narinfo' is corrupt: {said}"));
        }
    }
}
