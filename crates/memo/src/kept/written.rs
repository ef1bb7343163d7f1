//! `Written`: a question read back from a record, its trees by role, for those who look through what was asked (spec O3).

use super::EPOCH;
use super::cbor::{Item, Malformed, Reader};
use super::key::Argument;
use super::roles::Roles;
use firn_host::AbsPath;
use std::collections::BTreeMap;

/// A path as a role and the way from there.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// The role.
    pub role: String,
    /// What follows it: empty, or beginning with `/`.
    pub rest: Vec<u8>,
}

impl Place {
    fn read(reader: &mut Reader<'_>) -> Result<Place, Malformed> {
        Ok(Place { role: reader.text()?.to_owned(), rest: reader.bytes()?.to_vec() })
    }

    /// Where a path is.
    pub fn of(path: &AbsPath, roles: &Roles) -> Place {
        let (role, rest) = roles.place(path);
        Place { role: role.to_owned(), rest: rest.to_vec() }
    }
}

/// Where an evaluation began.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum WrittenEntry {
    /// A file or directory.
    File(Place),
    /// An expression, and the directory it was seen from.
    Expression(Vec<u8>, Place),
    /// A flake by its fingerprint.
    Flake(Vec<u8>),
}

/// A question as it was written down.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// Where evaluation began.
    pub entry: WrittenEntry,
    /// The directory that other expressions of the command line were seen from.
    pub base: Option<Place>,
    /// The attribute path.
    pub attribute: Vec<u8>,
    /// What was done with the value.
    pub form: Vec<u8>,
    /// Arguments for functions that are called automatically.
    pub arguments: BTreeMap<Vec<u8>, Argument>,
    /// Settings that change what expressions mean.
    pub settings: BTreeMap<String, Vec<u8>>,
}

impl Written {
    /// Reads a question's bytes. Those of another version are not understood, as they are never asked.
    pub fn decode(bytes: &[u8]) -> Result<Written, Malformed> {
        let mut reader = Reader::new(bytes);
        reader.tuple(8)?;
        if reader.unsigned()? != EPOCH || reader.text()? != env!("CARGO_PKG_VERSION") {
            return Err(Malformed::Unexpected);
        }
        let len = reader.array()?;
        let entry = match (reader.unsigned()?, len) {
            (0, 3) => WrittenEntry::File(Place::read(&mut reader)?),
            (1, 4) => {
                let text = reader.bytes()?.to_vec();
                WrittenEntry::Expression(text, Place::read(&mut reader)?)
            }
            (2, 2) => WrittenEntry::Flake(reader.bytes()?.to_vec()),
            _ => return Err(Malformed::Unexpected),
        };
        let base = match reader.item()? {
            Item::Null => None,
            Item::Array(2) => Some(Place::read(&mut reader)?),
            _ => return Err(Malformed::Unexpected),
        };
        let form = reader.bytes()?.to_vec();
        let mut arguments = BTreeMap::new();
        for _ in 0..reader.array()? {
            reader.tuple(3)?;
            let (name, kind, text) = (reader.bytes()?.to_vec(), reader.unsigned()?, reader.bytes()?.to_vec());
            let argument = match kind {
                0 => Argument::Expression(text),
                1 => Argument::Text(text),
                _ => return Err(Malformed::Unexpected),
            };
            arguments.insert(name, argument);
        }
        let mut settings = BTreeMap::new();
        for _ in 0..reader.array()? {
            reader.tuple(2)?;
            settings.insert(reader.text()?.to_owned(), reader.bytes()?.to_vec());
        }
        let attribute = reader.bytes()?.to_vec();
        reader.end()?;
        Ok(Written { entry, base, attribute, form, arguments, settings })
    }

    /// Whether this asks for the same value, in whichever form it is printed.
    pub fn is_about_the_same(&self, other: &Written) -> bool {
        let Written { entry, base: _, attribute, form: _, arguments, settings } = self;
        *entry == other.entry
            && *attribute == other.attribute
            && *arguments == other.arguments
            && *settings == other.settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::{Asked, ENTRY, Entry, HERE, Key};

    fn path(text: &str) -> AbsPath {
        AbsPath::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn questions_come_back_by_role() {
        let mut roles = Roles::new();
        roles.assign(ENTRY, path("/src"));
        roles.assign(HERE, path("/here"));
        let entries = [
            Entry::File(path("/src/a.nix")),
            Entry::Expression(b"1 + 1".to_vec(), path("/here/b")),
            Entry::Flake(b"fingerprint".to_vec()),
        ];
        let place = |role: &str, rest: &str| Place { role: role.to_owned(), rest: rest.into() };
        let expected = [
            WrittenEntry::File(place(ENTRY, "/a.nix")),
            WrittenEntry::Expression(b"1 + 1".to_vec(), place(HERE, "/b")),
            WrittenEntry::Flake(b"fingerprint".to_vec()),
        ];
        for (entry, expected) in entries.into_iter().zip(expected) {
            let asked = Asked {
                entry,
                base: Some(path("/here")),
                attribute: b"x.y".to_vec(),
                form: b"printed".to_vec(),
                arguments: BTreeMap::from([(b"n".to_vec(), Argument::Expression(b"1".to_vec()))]),
                settings: BTreeMap::from([("system".to_owned(), b"s".to_vec())]),
            };
            let key = Key::new(&asked, &roles);
            let written = Written::decode(&key.question).unwrap();
            assert_eq!(written.entry, expected);
            assert_eq!(written.base, Some(place(HERE, "")));
            assert_eq!((&written.arguments, &written.settings), (&asked.arguments, &asked.settings));
            let other = Key::new(&Asked { form: b"otherwise".to_vec(), ..asked.clone() }, &roles);
            assert!(written.is_about_the_same(&Written::decode(&other.question).unwrap()));
            let other = Key::new(&Asked { attribute: b"x".to_vec(), ..asked }, &roles);
            assert!(!written.is_about_the_same(&Written::decode(&other.question).unwrap()));
            for end in 0..key.question.len() {
                assert!(Written::decode(&key.question[..end]).is_err());
            }
        }
    }
}
