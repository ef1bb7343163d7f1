//! `Host`: the questions evaluation may ask of the outside, answered the way Nix's file-system accessor answers them.
//!
//! The first six methods never follow links: a caller that means to follow asks [`Host::resolve_symlinks`] first, as
//! Nix does. The rest are built from them, and wrappers override one only to answer it as a whole.

use std::sync::Arc;

use crate::search::{EntrySource, Found, SearchPath};
use crate::{AbsPath, Entry, FileContent, FileType, HostError, Listing, Stat, resolve};

/// How far links are followed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Follow {
    /// Every component, the last included.
    Full,
    /// Every component but the last.
    Ancestors,
}

/// The large set of a file, whose bindings do not count as seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bindings {
    /// Where in the text it begins.
    pub start: u32,
    /// The number of its guard ([`Sink::guard`](crate::Sink::guard)).
    pub guard: u32,
}

/// A file that was read as code.
pub struct Code {
    /// Its bytes.
    pub content: FileContent,
    /// Its large set, if it has one.
    pub bindings: Option<Bindings>,
    /// The tree of these bytes, if somebody made it before ([`Preparation`](crate::Preparation)).
    pub tree: Option<firn_syntax::Unplaced>,
    /// What else is known of them.
    pub measured: Option<firn_source::Measured>,
}

impl From<FileContent> for Code {
    fn from(content: FileContent) -> Code {
        Code { content, bindings: None, tree: None, measured: None }
    }
}

/// The door outward. One host serves one run; within a run the same question has the same answer.
///
/// ```
/// use firn_host::{AbsPath, Host, MemoryHost, MemoryWorld};
/// let world = MemoryWorld::new();
/// world.write("/src/default.nix", "1 + 1");
/// let host = MemoryHost::new(world);
/// let file = host.resolve_expr_path(&AbsPath::new(b"/src")?)?;
/// assert_eq!(file.as_bytes(), b"/src/default.nix");
/// assert_eq!(host.read_file(&file)?.bytes(), b"1 + 1");
/// let missing = host.read_file(&AbsPath::new(b"/src/x")?).unwrap_err();
/// assert_eq!(missing.to_string(), "path '/src/x' does not exist");
/// # Ok::<(), firn_host::HostError>(())
/// ```
pub trait Host: Send + Sync {
    /// Type and state of what is at the path; none if nothing is.
    fn lstat(&self, path: &AbsPath) -> Result<Option<Stat>, HostError>;

    /// The bytes of a regular file.
    fn read_file(&self, path: &AbsPath) -> Result<FileContent, HostError>;

    /// As [`Host::read_file`], for callers that will not ask again: nothing need be kept.
    fn read_once(&self, path: &AbsPath) -> Result<FileContent, HostError> {
        self.read_file(path)
    }

    /// As [`Host::read_once`], for callers that use the text as code: blanks and comments are not looked at, until
    /// [`Host::seen_text`] says that somebody did.
    fn read_code(&self, path: &AbsPath) -> Result<FileContent, HostError> {
        self.read_once(path)
    }

    /// As [`Host::read_code`], for callers that make the large set of a file guarded, if it has one ([`firn_syntax::outline`]): what that
    /// binds does not count as seen, and a number says how to say that it is.
    fn read_bindings(&self, path: &AbsPath) -> Result<Code, HostError> {
        self.read_code(path).map(Code::from)
    }

    /// The program has seen where in this file something stands, which what stands before it decides.
    fn seen_text(&self, _path: &AbsPath) {}

    /// The entries of a directory.
    fn read_dir(&self, path: &AbsPath) -> Result<Listing, HostError>;

    /// As [`Host::read_dir`], for callers that look at names one by one and say which: none of them counts as seen. A number
    /// says how to say that ([`Sink::guard`](crate::Sink::guard)); without one all of them count.
    fn read_names(&self, path: &AbsPath) -> Result<(Listing, Option<u32>), HostError> {
        self.read_dir(path).map(|listing| (listing, None))
    }

    /// The target of a link, as written in it.
    fn read_link(&self, path: &AbsPath) -> Result<Arc<[u8]>, HostError>;

    /// The value of an environment variable; none if unset.
    fn env(&self, name: &[u8]) -> Option<Arc<[u8]>>;

    /// Seconds since 1970 when this run first asked.
    fn current_time(&self) -> i64;

    /// The home directory, as `~` in a path literal means it.
    fn home(&self) -> Result<Arc<[u8]>, HostError>;

    /// The directory the process runs in.
    fn current_dir(&self) -> Result<AbsPath, HostError>;

    /// Fails if pure or restricted evaluation may not see the path. Asks nothing of the disk.
    fn check_access(&self, _path: &AbsPath) -> Result<(), HostError> {
        Ok(())
    }

    /// Lets pure or restricted evaluation see the path and all below it: a store object that it made.
    fn allow(&self, _prefix: AbsPath) {}

    /// The program has seen where this path lies: its bytes became text, or text became it.
    fn seen_at(&self, _path: &[u8]) {}

    /// The program has seen how these two paths lie to each other.
    fn related(&self, _one: &[u8], _other: &[u8]) {}

    /// Whether anybody wants to know of places.
    fn notes_places(&self) -> bool {
        false
    }

    /// Shows a tree at another path. False: this host cannot (see [`Mounted`](crate::Mounted)).
    fn mount(&self, _seen_at: AbsPath, _mount: crate::Mount) -> bool {
        false
    }

    /// The type of what is at the path; none if nothing is.
    fn file_type(&self, path: &AbsPath) -> Result<Option<FileType>, HostError> {
        Ok(self.lstat(path)?.map(|stat| stat.file_type))
    }

    /// As [`Host::file_type`], for callers that need something to be there (`readFileType`).
    fn existing_type(&self, path: &AbsPath) -> Result<FileType, HostError> {
        self.file_type(path)?.ok_or_else(|| HostError::NotFound(path.clone()))
    }

    /// One name of a listing, for callers that look at no other; none if the directory does not have it.
    fn dir_entry(&self, dir: &AbsPath, name: &[u8]) -> Result<Option<Entry>, HostError> {
        Ok(self.read_dir(dir)?.get(name).cloned())
    }

    /// The path with its links resolved. What does not exist is kept as it is written.
    fn resolve_symlinks(&self, path: &AbsPath, follow: Follow) -> Result<AbsPath, HostError> {
        resolve::resolve_symlinks(self, path, follow)
    }

    /// The file that `import` of this path reads: links of the path itself followed, a directory's `default.nix`.
    fn resolve_expr_path(&self, path: &AbsPath) -> Result<AbsPath, HostError> {
        resolve::resolve_expr_path(self, path)
    }

    /// The file that `import` of this path reads ([`Host::resolve_expr_path`]), and where that really lies. Whoever asks reads that as
    /// code, which tells where it lies, or asks for both by themselves: they need not count as seen.
    fn find_code(&self, path: &AbsPath) -> Result<(AbsPath, AbsPath), HostError> {
        let file = self.resolve_expr_path(path)?;
        let real = self.resolve_symlinks(&file, Follow::Full)?;
        Ok((file, real))
    }

    /// `builtins.pathExists`: links above are followed. `must_be_dir` (see [`must_be_dir`](crate::must_be_dir)) follows
    /// the last one too and wants a directory.
    fn path_exists(&self, path: &AbsPath, must_be_dir: bool) -> Result<bool, HostError> {
        resolve::path_exists(self, path, must_be_dir)
    }

    /// Where the search path has `name`, as `<name>` and `builtins.findFile` look it up.
    fn find_file(&self, search: &SearchPath, name: &[u8], entries: &dyn EntrySource) -> Result<Found, HostError> {
        search.find(self, name, entries)
    }
}

/// Methods of [`Host`] that hand the question on to a host behind: `hand_on!(self => self.host; env home)`.
macro_rules! hand_on {
    ($self:ident => $behind:expr; $($method:ident)*) => { $(hand_on!(@ $method $self $behind);)* };
    (@ lstat $self:ident $behind:expr) => {
        fn lstat(&$self, path: &$crate::AbsPath) -> Result<Option<$crate::Stat>, $crate::HostError> {
            $behind.lstat(path)
        }
    };
    (@ read_file $self:ident $behind:expr) => {
        fn read_file(&$self, path: &$crate::AbsPath) -> Result<$crate::FileContent, $crate::HostError> {
            $behind.read_file(path)
        }
    };
    (@ read_once $self:ident $behind:expr) => {
        fn read_once(&$self, path: &$crate::AbsPath) -> Result<$crate::FileContent, $crate::HostError> {
            $behind.read_once(path)
        }
    };
    (@ read_code $self:ident $behind:expr) => {
        fn read_code(&$self, path: &$crate::AbsPath) -> Result<$crate::FileContent, $crate::HostError> {
            $behind.read_code(path)
        }
    };
    (@ read_bindings $self:ident $behind:expr) => {
        fn read_bindings(&$self, path: &$crate::AbsPath) -> Result<$crate::Code, $crate::HostError> {
            $behind.read_bindings(path)
        }
    };
    (@ seen_text $self:ident $behind:expr) => {
        fn seen_text(&$self, path: &$crate::AbsPath) {
            $behind.seen_text(path);
        }
    };
    (@ read_dir $self:ident $behind:expr) => {
        fn read_dir(&$self, path: &$crate::AbsPath) -> Result<$crate::Listing, $crate::HostError> {
            $behind.read_dir(path)
        }
    };
    (@ read_names $self:ident $behind:expr) => {
        fn read_names(&$self, path: &$crate::AbsPath) -> Result<($crate::Listing, Option<u32>), $crate::HostError> {
            $behind.read_names(path)
        }
    };
    (@ read_link $self:ident $behind:expr) => {
        fn read_link(&$self, path: &$crate::AbsPath) -> Result<std::sync::Arc<[u8]>, $crate::HostError> {
            $behind.read_link(path)
        }
    };
    (@ env $self:ident $behind:expr) => {
        fn env(&$self, name: &[u8]) -> Option<std::sync::Arc<[u8]>> {
            $behind.env(name)
        }
    };
    (@ current_time $self:ident $behind:expr) => {
        fn current_time(&$self) -> i64 {
            $behind.current_time()
        }
    };
    (@ home $self:ident $behind:expr) => {
        fn home(&$self) -> Result<std::sync::Arc<[u8]>, $crate::HostError> {
            $behind.home()
        }
    };
    (@ current_dir $self:ident $behind:expr) => {
        fn current_dir(&$self) -> Result<$crate::AbsPath, $crate::HostError> {
            $behind.current_dir()
        }
    };
    (@ check_access $self:ident $behind:expr) => {
        fn check_access(&$self, path: &$crate::AbsPath) -> Result<(), $crate::HostError> {
            $behind.check_access(path)
        }
    };
    (@ allow $self:ident $behind:expr) => {
        fn allow(&$self, prefix: $crate::AbsPath) {
            $behind.allow(prefix);
        }
    };
    (@ seen_at $self:ident $behind:expr) => {
        fn seen_at(&$self, path: &[u8]) {
            $behind.seen_at(path);
        }
    };
    (@ related $self:ident $behind:expr) => {
        fn related(&$self, one: &[u8], other: &[u8]) {
            $behind.related(one, other);
        }
    };
    (@ notes_places $self:ident $behind:expr) => {
        fn notes_places(&$self) -> bool {
            $behind.notes_places()
        }
    };
    (@ mount $self:ident $behind:expr) => {
        fn mount(&$self, seen_at: $crate::AbsPath, mount: $crate::Mount) -> bool {
            $behind.mount(seen_at, mount)
        }
    };
    (@ file_type $self:ident $behind:expr) => {
        fn file_type(&$self, path: &$crate::AbsPath) -> Result<Option<$crate::FileType>, $crate::HostError> {
            $behind.file_type(path)
        }
    };
    (@ existing_type $self:ident $behind:expr) => {
        fn existing_type(&$self, path: &$crate::AbsPath) -> Result<$crate::FileType, $crate::HostError> {
            $behind.existing_type(path)
        }
    };
    (@ dir_entry $self:ident $behind:expr) => {
        fn dir_entry(&$self, dir: &$crate::AbsPath, name: &[u8]) -> Result<Option<$crate::Entry>, $crate::HostError> {
            $behind.dir_entry(dir, name)
        }
    };
    (@ resolve_symlinks $self:ident $behind:expr) => {
        fn resolve_symlinks(&$self, path: &$crate::AbsPath, follow: $crate::Follow) -> Result<$crate::AbsPath, $crate::HostError> {
            $behind.resolve_symlinks(path, follow)
        }
    };
    (@ find_code $self:ident $behind:expr) => {
        fn find_code(&$self, path: &$crate::AbsPath) -> Result<($crate::AbsPath, $crate::AbsPath), $crate::HostError> {
            $behind.find_code(path)
        }
    };
    (@ resolve_expr_path $self:ident $behind:expr) => {
        fn resolve_expr_path(&$self, path: &$crate::AbsPath) -> Result<$crate::AbsPath, $crate::HostError> {
            $behind.resolve_expr_path(path)
        }
    };
    (@ path_exists $self:ident $behind:expr) => {
        fn path_exists(&$self, path: &$crate::AbsPath, must_be_dir: bool) -> Result<bool, $crate::HostError> {
            $behind.path_exists(path, must_be_dir)
        }
    };
    (@ find_file $self:ident $behind:expr) => {
        fn find_file(&$self, search: &$crate::search::SearchPath, name: &[u8], entries: &dyn $crate::search::EntrySource) -> Result<$crate::search::Found, $crate::HostError> {
            $behind.find_file(search, name, entries)
        }
    };
}
pub(crate) use hand_on;

macro_rules! forward_host {
    ($($kind:ty),*) => {$(
        impl<H: Host + ?Sized> Host for $kind {
            hand_on!(self => (**self); lstat read_file read_once read_code read_bindings seen_text read_dir read_names read_link env current_time home current_dir check_access allow seen_at
                related notes_places mount file_type existing_type dir_entry resolve_symlinks resolve_expr_path find_code path_exists find_file);
        }
    )*};
}

forward_host!(Arc<H>, Box<H>, &H);
