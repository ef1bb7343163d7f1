//! Texts of objects that are not on disk. Hardly any is ever read, and they are much alike: where memory counts they are packed together,
//! half a megabyte at a time, on a thread of its own while the next one is filled.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

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
    packs: Vec<Pack>,
    /// What packs the last of them, as many as it gives.
    packing: Option<JoinHandle<Vec<Option<Box<[u8]>>>>>,
    /// Whether they are packed at all.
    pub spares: bool,
    /// The pack that is being filled.
    open: Vec<u8>,
}

enum Pack {
    Whole(Arc<Vec<u8>>),
    Packed(Box<[u8]>),
}

impl Pack {
    fn whole(&self) -> Option<Arc<Vec<u8>>> {
        match self {
            Pack::Whole(whole) => Some(whole.clone()),
            Pack::Packed(_) => None,
        }
    }
}

/// Bytes that make a pack.
const FULL: usize = 512 << 10;
/// Of zstd: at 1.2 GB a second 34 MB of derivations become 4.6.
const LEVEL: i32 = -5;
/// What zstd needs is on the heap.
const STACK: usize = 256 << 10;

impl Texts {
    /// Keeps a text.
    pub fn keep(&mut self, text: &Text) -> Place {
        if let Text::Lasting(bytes) = text {
            return Place::Lasting(bytes);
        }
        let place = Place::Packed(self.packs.len(), self.open.len(), text.len());
        self.open.extend_from_slice(text);
        // PERF: the texts were 34 of 290 MB that a thousand packages take.
        if self.open.len() >= FULL {
            self.close();
        }
        place
    }

    /// Has the open pack packed. The one before it is done by now, or is waited for.
    fn close(&mut self) {
        let empty = self.settle();
        self.packs.push(Pack::Whole(Arc::new(std::mem::replace(&mut self.open, empty))));
        // PERF: a program that is small is better off without: 2 % of firefox's user time.
        if !self.spares {
            return;
        }
        // What cannot be packed stays as it is.
        let mut whole: Vec<_> = self.packs.iter().rev().map_while(Pack::whole).collect();
        whole.reverse();
        let pack_all = move || whole.into_iter().map(|whole| pack(&whole)).collect();
        self.packing = Builder::new().name("texts".to_owned()).stack_size(STACK).spawn(pack_all).ok();
    }

    /// Puts the last packs in their place when they are packed. Gives a buffer for the next.
    fn settle(&mut self) -> Vec<u8> {
        let packed = self.packing.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let first = self.packs.len() - packed.len();
        let mut buffer = Vec::new();
        for (pack, packed) in self.packs[first..].iter_mut().zip(packed) {
            if let Some(packed) = packed
                && let Pack::Whole(whole) = std::mem::replace(pack, Pack::Packed(packed))
            {
                buffer = Arc::into_inner(whole).unwrap_or_default();
            }
        }
        buffer.clear();
        buffer
    }

    /// The text at a place from [`Texts::keep`].
    pub fn get(&self, place: Place) -> Arc<[u8]> {
        match place {
            Place::Lasting(bytes) => bytes.into(),
            Place::Packed(pack, at, length) => match self.packs.get(pack) {
                None => self.open[at..at + length].into(),
                Some(Pack::Whole(whole)) => whole[at..at + length].into(),
                Some(Pack::Packed(packed)) => {
                    let whole = zstd::stream::decode_all(&packed[..]).expect("what was packed here unpacks");
                    whole[at..at + length].into()
                }
            },
        }
    }
}

fn pack(whole: &[u8]) -> Option<Box<[u8]>> {
    // What it is packed into has room for the whole text.
    zstd::bulk::compress(whole, LEVEL).ok().map(|packed| packed.as_slice().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_from_whichever_pack_they_are_in() {
        let mut texts = Texts::default();
        let text = |n: usize| vec![b'a' + (n % 26) as u8; n * 1000 % 70_000];
        // The first packs stay as they are until memory counts.
        let keep = |n: usize| {
            texts.spares |= texts.packs.len() == 4;
            texts.keep(&text(n).into())
        };
        let places: Vec<Place> = (0..200).map(keep).collect();
        let large = texts.keep(&vec![7; 3 * FULL].into());
        let lasting = texts.keep(&Text::from(&b"for ever"[..]));
        let get_all = |texts: &Texts| {
            for (n, &place) in places.iter().enumerate() {
                assert_eq!(*texts.get(place), text(n)[..]);
            }
        };
        get_all(&texts);
        texts.settle();
        let length = |pack: &Pack| match pack {
            Pack::Whole(whole) => whole.len(),
            Pack::Packed(packed) => packed.len(),
        };
        assert!(texts.packs.len() > 6 && texts.packs.iter().map(length).sum::<usize>() < FULL / 10);
        get_all(&texts);
        assert_eq!((texts.get(large).len(), &texts.get(lasting)[..]), (3 * FULL, &b"for ever"[..]));
    }
}
