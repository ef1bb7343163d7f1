//! `Record`: a result with everything that was observed to produce it, and the seal under which all things are stored.
//!
//! ```text
//! sealed  = format (1 byte) · checksum (16 bytes) · payload
//! record  = [ question, result | blob digest, log, observations, [store path …], cost, durability, made, [place …] ]
//! place   = [ role, digest of where its tree lies ]
//! ```
//!
//! The checksum covers what the thing is, the key it is stored under, and its bytes: a flipped bit, a torn write and an
//! entry moved to another key are all simply not there (spec M6).

use super::cbor::{Item, Malformed, Reader, Writer};
use super::checksum::checksum;
use firn_host::{Digest, Durability};

/// The version of everything that is stored. Another one is a miss.
pub const FORMAT: u8 = 4;

const CHECKSUM: usize = 16;

/// What a sealed thing is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A [`Record`].
    Record,
    /// A node of observations.
    Observations,
    /// The bytes of a result.
    Blob,
    /// What the state of a file vouches for.
    Stamp,
    /// When a record was last of use.
    Use,
}

fn sum(kind: Kind, key: &[u8], payload: &[u8]) -> [u8; CHECKSUM] {
    checksum(&[&[FORMAT, kind as u8], key, payload])
}

/// The payload with its seal.
pub fn seal(kind: Kind, key: &[u8], payload: &[u8]) -> Vec<u8> {
    [&[FORMAT], &sum(kind, key, payload)[..], payload].concat()
}

/// The payload, if the seal is whole.
pub fn unseal<'a>(kind: Kind, key: &[u8], sealed: &'a [u8]) -> Option<&'a [u8]> {
    let (format, rest) = sealed.split_first()?;
    let (noted, payload) = rest.split_at_checked(CHECKSUM)?;
    (*format == FORMAT && noted == sum(kind, key, payload)).then_some(payload)
}

/// Where the bytes of a result are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stored {
    /// Here.
    Inline(Vec<u8>),
    /// Under this digest.
    Blob(Digest),
}

/// A result and what it rests on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// The question in full, as [`Key`](super::Key) writes it.
    pub question: Vec<u8>,
    /// The result as [`plain`](super::plain) data.
    pub result: Stored,
    /// What was printed on the way, to be printed again (spec M1).
    pub log: Vec<u8>,
    /// The digest of the root of what was observed.
    pub observations: Digest,
    /// Store objects that the result refers to; where a store is written, they must exist (spec L2.8).
    pub needs: Vec<Vec<u8>>,
    /// Microseconds that the evaluation took.
    pub cost: u64,
    /// The least durable of the observations.
    pub durability: Durability,
    /// Seconds since 1970 when it was made.
    pub made: i64,
    /// Where the trees lay when it was made, by role. Nothing rests on it: it tells whose answer this is, where that is asked.
    pub places: Vec<(String, Digest)>,
}

impl Record {
    /// The record's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let Record { question, result, log, observations, needs, cost, durability, made, places } = self;
        let mut writer = Writer::new();
        writer.array(9).bytes(question);
        match result {
            Stored::Inline(bytes) => writer.bytes(bytes),
            Stored::Blob(digest) => writer.array(1).bytes(&digest.0),
        };
        writer.bytes(log).bytes(&observations.0).array(needs.len());
        for path in needs {
            writer.bytes(path);
        }
        writer.unsigned(*cost).unsigned(*durability as u64).integer(*made).array(places.len());
        for (role, place) in places {
            writer.array(2).text(role).bytes(&place.0);
        }
        writer.finish()
    }

    /// Reads a record back.
    pub fn decode(bytes: &[u8]) -> Result<Record, Malformed> {
        let mut reader = Reader::new(bytes);
        reader.tuple(9)?;
        let question = reader.bytes()?.to_vec();
        let result = match reader.item()? {
            Item::Bytes(bytes) => Stored::Inline(bytes.to_vec()),
            Item::Array(1) => Stored::Blob(Digest(reader.fixed()?)),
            _ => return Err(Malformed::Unexpected),
        };
        let log = reader.bytes()?.to_vec();
        let observations = Digest(reader.fixed()?);
        let needs = (0..reader.array()?).map(|_| reader.bytes().map(<[u8]>::to_vec)).collect::<Result<_, _>>()?;
        let cost = reader.unsigned()?;
        let durability = Durability::from_number(reader.unsigned()?).ok_or(Malformed::Unexpected)?;
        let made = reader.integer()?;
        let count = reader.array()?;
        let mut places = Vec::with_capacity(count);
        for _ in 0..count {
            reader.tuple(2)?;
            places.push((reader.text()?.to_owned(), Digest(reader.fixed()?)));
        }
        reader.end()?;
        Ok(Record { question, result, log, observations, needs, cost, durability, made, places })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_holds_for_one_kind_one_key_and_every_bit() {
        let sealed = seal(Kind::Record, b"key", b"payload");
        assert_eq!(unseal(Kind::Record, b"key", &sealed), Some(&b"payload"[..]));
        assert_eq!(unseal(Kind::Blob, b"key", &sealed), None);
        assert_eq!(unseal(Kind::Record, b"kez", &sealed), None);
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(unseal(Kind::Record, b"key", &flipped), None);
        }
        for len in 0..sealed.len() {
            assert_eq!(unseal(Kind::Record, b"key", &sealed[..len]), None);
        }
    }

    #[test]
    fn records_come_back() {
        let record = Record {
            question: b"q".to_vec(),
            result: Stored::Blob(Digest([7; 32])),
            log: b"trace: x\n".to_vec(),
            observations: Digest([1; 32]),
            needs: vec![b"a.drv".to_vec()],
            cost: 12,
            durability: Durability::Medium,
            made: -1,
            places: vec![("entry".to_owned(), Digest([3; 32]))],
        };
        assert_eq!(Record::decode(&record.encode()), Ok(record.clone()));
        let inline = Record { result: Stored::Inline(b"x".to_vec()), ..record };
        assert_eq!(Record::decode(&inline.encode()), Ok(inline));
    }
}
