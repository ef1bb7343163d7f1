//! `Edits`: what a change did to files, and which questions may have another answer since (spec O3).
//!
//! Sound: a question that is not named here has the same answer on both sides of the change. What is named may have.

use firn_host::{AbsPath, FileType, Host, Question, SearchPath};
use rustc_hash::FxHashSet;

/// What a change did.
#[derive(Clone, Debug, Default)]
pub struct Edits {
    /// Regular files that have another content.
    contents: FxHashSet<AbsPath>,
    /// What appeared, disappeared or became something else.
    moved: FxHashSet<AbsPath>,
    /// Directories that have other entries.
    relisted: FxHashSet<AbsPath>,
}

/// No more links are followed on one way.
const LINKS: usize = 64;

impl Edits {
    /// Nothing changed.
    pub fn new() -> Edits {
        Edits::default()
    }

    /// A regular file has another content.
    pub fn edit(&mut self, path: AbsPath) {
        self.contents.insert(path);
    }

    /// Something appeared, disappeared or became something else; the directory it lies in has other entries.
    pub fn replace(&mut self, path: AbsPath) {
        self.relisted.extend(path.parent());
        self.moved.insert(path);
    }

    /// A directory has other entries.
    pub fn relist(&mut self, path: AbsPath) {
        self.relisted.insert(path);
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.contents.is_empty() && self.moved.is_empty() && self.relisted.is_empty()
    }

    /// Every path that is named.
    pub fn paths(&self) -> impl Iterator<Item = &AbsPath> {
        self.contents.iter().chain(&self.moved).chain(&self.relisted)
    }

    /// Whether the answer may be another since the change. `host` sees how things are now.
    pub fn touch(&self, question: &Question, host: &dyn Host) -> bool {
        match question {
            Question::File(path) | Question::Code(path) | Question::Key(path, ..) | Question::Outline(path) => {
                self.any(path, host, |path| self.is_moved(path) || self.contents.contains(path))
            }
            Question::Directory(path) => {
                self.any(path, host, |path| self.is_moved(path) || self.relisted.contains(path))
            }
            Question::DirectoryEntry(path, name) => {
                self.any(path, host, |path| self.is_moved(path) || self.is_moved(&path.child(name)))
            }
            Question::ExprPath(path) => {
                // A directory stands for the file in it.
                self.any(path, host, |path| self.is_moved(path))
                    || self.any(&path.child(b"default.nix"), host, |path| self.is_moved(path))
            }
            Question::Type(path)
            | Question::Stat(path)
            | Question::Link(path)
            | Question::Resolve(path, _)
            | Question::Exists(path, _) => self.any(path, host, |path| self.is_moved(path)),
            Question::SearchPath(search, name) => self.touch_lookup(search, name, host),
            Question::Env(_)
            | Question::Time
            | Question::Home
            | Question::CurrentDir
            | Question::System
            | Question::Setting(_)
            | Question::Tree(_)
            | Question::StorePath(_)
            | Question::Output(..)
            | Question::Location(_) => false,
            // Whoever has the places of the group asks about them.
            Question::Member(..) => true,
        }
    }

    /// Each entry of a search path is looked at until one has the name: any of them may be the one now.
    fn touch_lookup(&self, search: &SearchPath, name: &[u8], host: &dyn Host) -> bool {
        search.entries.iter().any(|entry| {
            let rest = match &entry.prefix[..] {
                b"" => name,
                prefix => match name.strip_prefix(prefix) {
                    Some(b"") => b"",
                    Some([b'/', rest @ ..]) => rest,
                    _ => return false,
                },
            };
            // A relative entry is seen from a directory that is not known here.
            if !entry.path.starts_with(b"/") {
                return true;
            }
            let path = AbsPath::new(&entry.path).and_then(|tree| if rest.is_empty() { Ok(tree) } else { tree.join(rest) });
            path.is_ok_and(|path| self.any(&path, host, |path| self.is_moved(path)))
        })
    }

    fn is_moved(&self, path: &AbsPath) -> bool {
        !self.moved.is_empty()
            && std::iter::successors(Some(path.clone()), AbsPath::parent).any(|above| self.moved.contains(&above))
    }

    /// Whether it is so for the path, or for any that the links on it lead over.
    fn any(&self, path: &AbsPath, host: &dyn Host, is_so: impl Fn(&AbsPath) -> bool) -> bool {
        let mut path = path.clone();
        for _ in 0..LINKS {
            if is_so(&path) {
                return true;
            }
            match after_first_link(&path, host) {
                Some(next) => path = next,
                None => return false,
            }
        }
        // A way that does not end.
        true
    }
}

/// The path with its first link replaced by where that leads; none if there is none.
fn after_first_link(path: &AbsPath, host: &dyn Host) -> Option<AbsPath> {
    let mut above = AbsPath::root();
    let mut components = path.components();
    while let Some(name) = components.next() {
        let here = above.child(name);
        match host.file_type(&here) {
            Ok(Some(FileType::Symlink)) => {
                let target = host.read_link(&here).ok()?;
                let mut next = above.join(&target).ok()?;
                for rest in components {
                    next = next.child(rest);
                }
                return Some(next);
            }
            Ok(Some(FileType::Directory)) => above = here,
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use firn_host::{Follow, MemoryHost, MemoryWorld, SearchEntry};

    fn path(text: &str) -> AbsPath {
        AbsPath::new(text.as_bytes()).unwrap()
    }

    fn host() -> MemoryHost {
        let world = MemoryWorld::new();
        world.write("/t/a.nix", "1");
        world.write("/t/d/b.nix", "1");
        world.write("/t/new/c.nix", "1");
        world.symlink("/t/link", "d");
        world.symlink("/t/far", "/t/link/b.nix");
        world.symlink("/t/broken", "gone");
        MemoryHost::new(world)
    }

    #[test]
    fn an_edit_touches_content_and_nothing_else() {
        let (mut edits, host) = (Edits::new(), host());
        edits.edit(path("/t/d/b.nix"));
        assert!(edits.touch(&Question::File(path("/t/d/b.nix")), &host));
        assert!(edits.touch(&Question::File(path("/t/far")), &host), "through two links");
        for other in [
            Question::File(path("/t/a.nix")),
            Question::Directory(path("/t/d")),
            Question::Exists(path("/t/d/b.nix"), false),
            Question::Resolve(path("/t/far"), Follow::Full),
            Question::ExprPath(path("/t/d/b.nix")),
            Question::Env(b"HOME"[..].into()),
        ] {
            assert!(!edits.touch(&other, &host), "{other:?}");
        }
    }

    #[test]
    fn what_came_or_went_touches_listings_existence_and_ways() {
        let (mut edits, host) = (Edits::new(), host());
        edits.replace(path("/t/gone"));
        edits.replace(path("/t/d/default.nix"));
        let search = |prefix: &str, at: &str| SearchPath {
            entries: [SearchEntry { prefix: prefix.as_bytes().into(), path: at.as_bytes().into() }].into(),
            pure: false,
        };
        for touched in [
            Question::Directory(path("/t")),
            Question::Directory(path("/t/d")),
            Question::Directory(path("/t/link")),
            Question::DirectoryEntry(path("/t"), b"gone"[..].into()),
            Question::Exists(path("/t/broken"), false),
            Question::Exists(path("/t/gone/deeper"), false),
            Question::Type(path("/t/gone")),
            Question::ExprPath(path("/t/d")),
            Question::ExprPath(path("/t/link")),
            Question::SearchPath(search("", "/t"), b"gone/x"[..].into()),
            Question::SearchPath(search("n", "/t/gone"), b"n/x"[..].into()),
        ] {
            assert!(edits.touch(&touched, &host), "{touched:?}");
        }
        for other in [
            Question::Directory(path("/t/new")),
            Question::DirectoryEntry(path("/t"), b"a.nix"[..].into()),
            Question::Exists(path("/t/a.nix"), false),
            Question::Resolve(path("/t/link"), Follow::Full),
            Question::ExprPath(path("/t/new")),
            Question::SearchPath(search("m", "/t/gone"), b"n/x"[..].into()),
        ] {
            assert!(!edits.touch(&other, &host), "{other:?}");
        }
    }
}
