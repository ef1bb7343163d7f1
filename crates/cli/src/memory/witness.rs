//! `Witnessed`: what verification asks besides the host: nodes from the database or on their way from a remote, what states of files
//! vouch for, and the store.

use super::{Memory, lock};
use firn_cache::Reading;
use firn_host::{Digest, Question, RecordedStore, Stamp as State};
use firn_memo::kept::{Voucher, Witness};
use firn_remote::Candidate;
use std::borrow::Cow;
use std::cell::RefCell;

/// What verification asks of the database and the store.
pub struct Witnessed<'a, 's> {
    memory: &'a Memory,
    /// A state of the database.
    pub reading: &'a Reading<'a>,
    /// The answer of a remote that is being verified.
    pub coming: RefCell<Option<Candidate<'s>>>,
}

impl<'a> Witnessed<'a, '_> {
    /// Nothing is coming yet.
    pub fn new(memory: &'a Memory, reading: &'a Reading<'a>) -> Self {
        Witnessed { memory, reading, coming: RefCell::default() }
    }
}

impl Witness for Witnessed<'_, '_> {
    fn node(&self, digest: &Digest) -> Option<Cow<'_, [u8]>> {
        let coming = self.coming.borrow_mut().as_mut().and_then(|candidate| candidate.node(digest));
        coming.map(Cow::Owned).or_else(|| self.reading.node(digest).map(Cow::Borrowed))
    }

    fn node_now(&self, digest: &Digest) -> Option<Cow<'_, [u8]>> {
        let coming = self.coming.borrow_mut().as_mut().and_then(|candidate| candidate.node_now(digest));
        coming.map(Cow::Owned).or_else(|| self.reading.node(digest).map(Cow::Borrowed))
    }

    fn vouched(&self, question: &Question, stamp: &State) -> Option<Digest> {
        self.reading.vouched(question, stamp)
    }

    fn voucher(&self) -> Option<Box<dyn Voucher + '_>> {
        let reading = self.memory.disk.read().filter(Reading::vouches)?;
        Some(Box::new(Vouching(reading)))
    }

    fn vouch(&self, question: &Question, stamp: &State, digest: Digest) {
        lock(&self.memory.stamps).push((question.clone(), *stamp, digest));
    }

    fn store_object(&self, path: &[u8]) -> Option<Digest> {
        let object = self.memory.store_dir.parse(path).ok()?;
        RecordedStore::digest_object(&*self.memory.store, &object)
    }
}

/// What states vouch for, for another thread.
struct Vouching<'d>(Reading<'d>);

impl Voucher for Vouching<'_> {
    fn vouched(&self, question: &Question, stamp: &State) -> Option<Digest> {
        self.0.vouched(question, stamp)
    }
}
