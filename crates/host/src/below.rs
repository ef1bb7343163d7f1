//! `Below`: things that lie at paths, found by any path below them. Looked up for every question to the outside.

use crate::AbsPath;
use rustc_hash::FxHashMap;

/// Things by path.
pub(crate) struct Below<T> {
    at: FxHashMap<AbsPath, T>,
    /// A directory that all of them lie in or are.
    within: Option<AbsPath>,
}

impl<T> Default for Below<T> {
    fn default() -> Below<T> {
        Below { at: FxHashMap::default(), within: None }
    }
}

impl<T> Below<T> {
    /// Puts something at a path.
    pub fn insert(&mut self, path: AbsPath, thing: T) {
        let parent = path.parent().unwrap_or_else(AbsPath::root);
        self.within = Some(match self.within.take() {
            None => parent,
            Some(within) => {
                let above = std::iter::successors(Some(within), AbsPath::parent);
                above.into_iter().find(|dir| parent.is_within(dir)).unwrap_or_else(AbsPath::root)
            }
        });
        self.at.insert(path, thing);
    }

    /// The nearest path at or above this one that has something.
    // PERF: nearly every path asked about lies elsewhere; a thousand packages show a thousand sources.
    pub fn find(&self, path: &AbsPath) -> Option<(&AbsPath, &T)> {
        let within = self.within.as_ref().filter(|within| path.is_within(within))?;
        path.upwards().take_while(|above| above.len() >= within.as_bytes().len()).find_map(|above| self.at.get_key_value(above))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> AbsPath {
        AbsPath::new(text.as_bytes()).expect("no NUL")
    }

    #[test]
    fn the_nearest_above_is_found() {
        let mut below = Below::default();
        assert!(below.find(&path("/")).is_none());
        for (number, at) in ["/s/a", "/s/a/b/c", "/t/u"].into_iter().enumerate() {
            below.insert(path(at), number);
        }
        let find = |text: &str| below.find(&path(text)).map(|(_, number)| *number);
        let asked = ["/s/a", "/s/a/b", "/s/a/b/c/d/e", "/s/ab", "/s", "/", "/t/u/v", "/t/uv", "/x"];
        assert_eq!(asked.map(find), [Some(0), Some(0), Some(1), None, None, None, Some(2), None, None]);
        let mut everything = Below::default();
        everything.insert(path("/"), 7);
        assert_eq!(everything.find(&path("/a/b")).map(|(_, number)| *number), Some(7));
    }
}
