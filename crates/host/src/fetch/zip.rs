//! Zip archives, by the directory at their end: names, modes, times and where each file's bytes begin.
//!
//! Everything read is bounded by the archive's own length, except contents, which are bounded by the size that their entry
//! says they have.
#![allow(clippy::disallowed_methods)] // Reads a download of the fetchers' own.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use super::compression::Compression;

/// The longest end of an archive: its record and a comment.
const END: usize = 22 + 0xffff;
const DIRECTORY_ENTRY: usize = 46;
const LOCAL_HEADER: u64 = 30;
/// Instead of sizes and places, where they stand in a further field.
const ELSEWHERE: u64 = 0xffff_ffff;

/// What is wrong with an archive, in libarchive's manner.
pub(super) type Wrong = String;

/// An entry of an archive.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub name: Vec<u8>,
    pub kind: Kind,
    /// Seconds since 1970.
    pub modified: u64,
    method: u16,
    crc: u32,
    packed: u64,
    size: u64,
    header: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    Regular { executable: bool },
    Symlink,
    Other(u32),
}

/// An open archive.
pub(super) struct Zip {
    file: File,
    pub entries: Vec<Entry>,
}

fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(width)?)?;
    Some(part.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn truncated() -> Wrong {
    "Truncated ZIP file".to_owned()
}

fn unreadable(error: std::io::Error) -> Wrong {
    error.to_string()
}

impl Zip {
    /// Reads the directory of an archive.
    pub fn open(mut file: File) -> Result<Zip, Wrong> {
        let length = file.seek(SeekFrom::End(0)).map_err(unreadable)?;
        let (start, size) = find_directory(&mut file, length)?;
        if start.checked_add(size).is_none_or(|end| end > length) {
            return Err(truncated());
        }
        let directory = read_at(&mut file, start, size)?;
        let (mut entries, mut at) = (Vec::new(), 0);
        while directory.get(at..at + 4) == Some(b"PK\x01\x02") {
            let (entry, next) = Entry::read(&directory, at).ok_or_else(truncated)??;
            entries.push(entry);
            at = next;
        }
        Ok(Zip { file, entries })
    }

    /// Hands the content of an entry to `take`, piece by piece, and checks it.
    pub fn read(
        &mut self,
        entry: &Entry,
        mut take: impl FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<(), Wrong> {
        let header = read_at(&mut self.file, entry.header, LOCAL_HEADER)?;
        if !header.starts_with(b"PK\x03\x04") {
            return Err("Damaged Zip archive".to_owned());
        }
        let name = number(&header, 26, 2).ok_or_else(truncated)?;
        let extra = number(&header, 28, 2).ok_or_else(truncated)?;
        let start = entry.header + LOCAL_HEADER + name + extra;
        self.file.seek(SeekFrom::Start(start)).map_err(unreadable)?;
        let packed = BufReader::new(self.file.try_clone().map_err(unreadable)?).take(entry.packed);
        let content: Box<dyn Read> = match entry.method {
            0 => Box::new(packed),
            8 => Box::new(flate2::bufread::DeflateDecoder::new(packed)),
            12 => Compression::Bzip2.decode(packed).map_err(unreadable)?,
            93 => Compression::Zstd.decode(packed).map_err(unreadable)?,
            95 => Compression::Xz.decode(packed).map_err(unreadable)?,
            other => return Err(format!("Unsupported ZIP compression method ({other})")),
        };
        let mut content = content.take(entry.size.saturating_add(1));
        let (mut crc, mut piece, mut size) = (flate2::Crc::new(), vec![0; 1 << 16], 0);
        loop {
            let read = content.read(&mut piece).map_err(|e| format!("ZIP decompression failed: {e}"))?;
            if read == 0 {
                break;
            }
            size += read as u64;
            if size > entry.size {
                break;
            }
            crc.update(&piece[..read]);
            take(&piece[..read]).map_err(unreadable)?;
        }
        if size != entry.size {
            return Err("ZIP uncompressed data is wrong size".to_owned());
        }
        if crc.sum() != entry.crc {
            return Err("ZIP bad CRC".to_owned());
        }
        Ok(())
    }
}

fn read_at(file: &mut File, start: u64, size: u64) -> Result<Vec<u8>, Wrong> {
    file.seek(SeekFrom::Start(start)).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(size).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 == size { Ok(bytes) } else { Err(truncated()) }
}

/// Where the directory begins, and its length.
fn find_directory(file: &mut File, length: u64) -> Result<(u64, u64), Wrong> {
    let tail = length.min(END as u64);
    let end = read_at(file, length - tail, tail)?;
    let at = end.windows(4).rposition(|part| part == b"PK\x05\x06").ok_or_else(truncated)?;
    let (size, start) = (number(&end, at + 12, 4).ok_or_else(truncated)?, number(&end, at + 16, 4).ok_or_else(truncated)?);
    if start != ELSEWHERE && size != ELSEWHERE {
        return Ok((start, size));
    }
    // Just before it stands where the longer record is.
    let before = at.checked_sub(20).ok_or_else(truncated)?;
    if end.get(before..before + 4) != Some(b"PK\x06\x07") {
        return Ok((start, size));
    }
    let place = number(&end, before + 8, 8).ok_or_else(truncated)?;
    let record = read_at(file, place, 56)?;
    if !record.starts_with(b"PK\x06\x06") {
        return Err(truncated());
    }
    Ok((number(&record, 48, 8).ok_or_else(truncated)?, number(&record, 40, 8).ok_or_else(truncated)?))
}

impl Entry {
    /// Reads an entry of the directory, and where the next begins. None if it is cut off.
    fn read(directory: &[u8], at: usize) -> Option<Result<(Entry, usize), Wrong>> {
        let field = |offset: usize, width: usize| number(directory, at + offset, width);
        let (names, extras, comments) = (field(28, 2)? as usize, field(30, 2)? as usize, field(32, 2)? as usize);
        let name = directory.get(at + DIRECTORY_ENTRY..)?.get(..names)?.to_vec();
        let extra = directory.get(at + DIRECTORY_ENTRY + names..)?.get(..extras)?;
        if field(8, 2)? & 1 != 0 {
            return Some(Err("Encrypted file is unsupported".to_owned()));
        }
        let mut entry = Entry {
            kind: kind(&name, field(5, 1)? as u8, field(38, 4)? as u32),
            name,
            modified: dos_time(field(12, 2)? as u32, field(14, 2)? as u32),
            method: field(10, 2)? as u16,
            crc: field(16, 4)? as u32,
            packed: field(20, 4)?,
            size: field(24, 4)?,
            header: field(42, 4)?,
        };
        entry.read_extra(extra);
        Some(Ok((entry, at + DIRECTORY_ENTRY + names + extras + comments)))
    }

    /// Reads fields that say more: times in seconds, and numbers that need more room.
    fn read_extra(&mut self, mut extra: &[u8]) {
        while let (Some(id), Some(size)) = (number(extra, 0, 2), number(extra, 2, 2)) {
            let Some(data) = extra.get(4..4 + size as usize) else { return };
            match id {
                0x5455 if data.first().is_some_and(|flags| flags & 1 != 0) => {
                    self.modified = number(data, 1, 4).unwrap_or(self.modified);
                }
                0x0001 => {
                    let mut at = 0;
                    for wide in [&mut self.size, &mut self.packed, &mut self.header] {
                        if *wide == ELSEWHERE
                            && let Some(value) = number(data, at, 8)
                        {
                            *wide = value;
                            at += 8;
                        }
                    }
                }
                _ => {}
            }
            extra = &extra[4 + size as usize..];
        }
    }

    /// The length of its content.
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// What an entry is, by who made it (3 is Unix) and the attributes it has there.
fn kind(name: &[u8], system: u8, attributes: u32) -> Kind {
    let mode = if system == 3 { attributes >> 16 } else { 0 };
    match mode & 0o170_000 {
        _ if name.ends_with(b"/") => Kind::Directory,
        0o040_000 => Kind::Directory,
        0o120_000 => Kind::Symlink,
        0o100_000 | 0 => Kind::Regular { executable: mode & 0o100 != 0 },
        other => Kind::Other(other),
    }
}

/// A date and a time of day as DOS kept them, taken as UTC.
fn dos_time(time: u32, date: u32) -> u64 {
    let (year, month, day) = (i64::from(date >> 9) + 1980, i64::from(date >> 5 & 15), i64::from(date & 31));
    // Years that begin in March, counted from the year 0.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    let seconds = i64::from(time >> 11) * 3600 + i64::from(time >> 5 & 63) * 60 + i64::from(time & 31) * 2;
    u64::try_from(days * 86400 + seconds).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_dos() {
        assert_eq!(dos_time(0, 1 << 5 | 1), 315_532_800);
        // 2000-02-29 12:34:56
        assert_eq!(dos_time(12 << 11 | 34 << 5 | 28, 20 << 9 | 2 << 5 | 29), 951_827_696);
    }

    #[test]
    fn kinds_by_mode_and_name() {
        assert_eq!(kind(b"a/", 0, 0), Kind::Directory);
        assert_eq!(kind(b"a", 3, 0o100_755 << 16), Kind::Regular { executable: true });
        assert_eq!(kind(b"a", 0, 0o100_755 << 16), Kind::Regular { executable: false });
        assert_eq!(kind(b"a", 3, 0o120_777 << 16), Kind::Symlink);
        assert_eq!(kind(b"a", 3, 0o020_600 << 16), Kind::Other(0o020_000));
    }
}
