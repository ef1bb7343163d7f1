//! Texts of objects that are not on disk. Hardly any is ever read, and they are much alike: they are packed together.

use std::sync::Arc;

/// The contents of a file that becomes a store object.
#[derive(Debug)]
pub enum Text {
    /// Bytes that live as long as the process.
    Lasting(&'static [u8]),
    /// Others.
    Own(Vec<u8>),
}

impl From<&'static [u8]> for Text {
    fn from(bytes: &'static [u8]) -> Text {
        Text::Lasting(bytes)
    }
}

impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Text {
        Text::Own(bytes)
    }
}

impl std::ops::Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Text::Lasting(bytes) => bytes,
            Text::Own(bytes) => bytes,
        }
    }
}

/// Where a text is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Lasting(&'static [u8]),
    /// The number of the pack, and where in it.
    Packed(usize, usize, usize),
}

/// Texts, packed.
#[derive(Default)]
pub(super) struct Texts {
    packs: Vec<Box<[u8]>>,
    /// The pack that is being filled.
    open: Vec<u8>,
}

/// Bytes that make a pack.
const FULL: usize = 1 << 20;
/// Of zstd: at 1.2 GB a second 34 MB of derivations become 4.6.
const LEVEL: i32 = -5;

impl Texts {
    /// Keeps a text.
    pub fn keep(&mut self, text: &Text) -> Place {
        if let Text::Lasting(bytes) = text {
            return Place::Lasting(bytes);
        }
        let place = Place::Packed(self.packs.len(), self.open.len(), text.len());
        self.open.extend_from_slice(text);
        // PERF: the texts were 34 of 290 MB that a thousand packages take. What cannot be packed now is packed with the next.
        if self.open.len() >= FULL
            && let Ok(packed) = zstd::bulk::compress(&self.open, LEVEL)
        {
            // What it was packed into has room for the whole text.
            self.packs.push(packed.as_slice().into());
            self.open.clear();
        }
        place
    }

    /// The text at a place from [`Texts::keep`].
    pub fn get(&self, place: Place) -> Arc<[u8]> {
        match place {
            Place::Lasting(bytes) => bytes.into(),
            Place::Packed(pack, at, length) => match self.packs.get(pack) {
                None => self.open[at..at + length].into(),
                Some(packed) => {
                    let whole = zstd::stream::decode_all(&packed[..]).expect("what was packed here unpacks");
                    whole[at..at + length].into()
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_from_whichever_pack_they_are_in() {
        let mut texts = Texts::default();
        let text = |n: usize| vec![b'a' + (n % 26) as u8; n * 1000 % 70_000];
        let places: Vec<Place> = (0..200).map(|n| texts.keep(&text(n).into())).collect();
        let large = texts.keep(&vec![7; 3 * FULL].into());
        let lasting = texts.keep(&Text::from(&b"for ever"[..]));
        assert!(texts.packs.len() > 3 && texts.packs.iter().map(|pack| pack.len()).sum::<usize>() < FULL / 10);
        for (n, &place) in places.iter().enumerate() {
            assert_eq!(*texts.get(place), text(n)[..]);
        }
        assert_eq!((texts.get(large).len(), &texts.get(lasting)[..]), (3 * FULL, &b"for ever"[..]));
    }
}
