//! A map in one vector, kept in key order: what derivations hold their small tables in.
//!
//! Invariant: entries are strictly ascending by key. Appending in order, the common case, costs no search.

use std::borrow::Borrow;

/// An ordered map for few entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortedMap<K, V>(Vec<(K, V)>);

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        SortedMap(Vec::new())
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    fn search<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        match self.0.last() {
            None => Err(0),
            Some((last, _)) if last.borrow() < key => Err(self.0.len()),
            Some(_) => self.0.binary_search_by(|(k, _)| k.borrow().cmp(key)),
        }
    }

    /// Sets `key`, replacing what was there.
    pub fn insert(&mut self, key: K, value: V) {
        match self.search(&key) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (key, value)),
        }
    }

    /// The value of `key`.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.search(key).ok().map(|at| &self.0[at].1)
    }

    /// Whether `key` is there.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.search(key).is_ok()
    }

    /// The value of `key`, put there first if it was absent.
    pub fn entry(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        let at = match self.search(&key) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, (key, V::default()));
                at
            }
        };
        &mut self.0[at].1
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries in key order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&K, &V)> {
        self.0.iter().map(|(k, v)| (k, v))
    }

    /// The keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &K> {
        self.0.iter().map(|(k, _)| k)
    }

    /// The entries in key order, values changeable.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&K, &mut V)> {
        self.0.iter_mut().map(|(k, v)| (&*k, v))
    }
}

/// An ordered set for few elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortedSet<T>(Vec<T>);

impl<T> Default for SortedSet<T> {
    fn default() -> Self {
        SortedSet(Vec::new())
    }
}

impl<T: Ord> SortedSet<T> {
    /// Adds `item`; whether it was new.
    pub fn insert(&mut self, item: T) -> bool {
        let at = match self.0.last() {
            None => 0,
            Some(last) if *last < item => self.0.len(),
            Some(_) => match self.0.binary_search(&item) {
                Ok(_) => return false,
                Err(at) => at,
            },
        };
        self.0.insert(at, item);
        true
    }

    /// The elements in order.
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }

    /// The elements in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl<T: Ord> FromIterator<T> for SortedSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut all: Vec<T> = items.into_iter().collect();
        all.sort_unstable();
        all.dedup();
        SortedSet(all)
    }
}

impl<T: Ord> Extend<T> for SortedSet<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        self.0.extend(items);
        self.0.sort();
        self.0.dedup();
    }
}
