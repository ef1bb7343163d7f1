//! `Promised`: the digest of what was read or listed, made when somebody asks for it, by whichever thread. It is made from the very
//! bytes that were handed out, which are held until then and no longer.

use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use crate::observation::{PathKind, digest_essence, digest_exists, digest_no_code, digest_path, digest_type};
use crate::{AbsPath, Digest, Durability, FileContent, FileType, Listing, Observation, Question};

/// A digest that may still have to be made. Cheap to clone.
#[derive(Clone)]
pub struct Promised(Arc<Inner>);

struct Inner {
    /// Who makes the digest holds it: nobody makes it twice.
    of: Mutex<Of>,
    weight: usize,
}

/// What a digest is to be made of.
enum Of {
    Digested(Digest),
    Text(FileContent),
    /// A text, less these.
    Code(FileContent, firn_syntax::Gaps),
    /// A text that has none.
    NoCode(FileContent),
    Listing(Listing),
}

impl Of {
    fn digest(&self) -> Digest {
        match self {
            Of::Digested(digest) => *digest,
            Of::Text(content) => content.digest(),
            Of::Code(content, gaps) => digest_essence(&gaps.essence(content.bytes())),
            Of::NoCode(content) => digest_no_code(content.bytes()),
            Of::Listing(listing) => listing.digest(),
        }
    }
}

impl Promised {
    fn new(of: Of, weight: usize) -> Promised {
        Promised(Arc::new(Inner { of: Mutex::new(of), weight }))
    }

    /// That of a file's bytes.
    pub(crate) fn text(content: &FileContent) -> Promised {
        Promised::new(Of::Text(content.clone()), content.bytes().len())
    }

    /// That of a file's code. The tokens are made at once: whoever parses the text next has them.
    pub(crate) fn code(content: &FileContent) -> Promised {
        Promised::sound_code(content).unwrap_or_else(|| Promised::new(Of::NoCode(content.clone()), content.bytes().len()))
    }

    /// As [`Promised::code`]; none if the text has no code.
    pub(crate) fn sound_code(content: &FileContent) -> Option<Promised> {
        let gaps = firn_syntax::gaps_of_next(&content.shared())?;
        Some(Promised::new(Of::Code(content.clone(), gaps), content.bytes().len()))
    }

    /// That of a listing.
    pub(crate) fn listing(listing: &Listing) -> Promised {
        // A name is about so long.
        Promised::new(Of::Listing(listing.clone()), listing.entries().len() * 16)
    }

    /// The digest; made now if nobody has made it.
    pub fn digest(&self) -> Digest {
        let mut of = self.0.of.lock().unwrap_or_else(PoisonError::into_inner);
        let digest = of.digest();
        *of = Of::Digested(digest);
        digest
    }

    /// Whether it is the digest of the same thing, as far as can be told without making one.
    fn is_of_same(&self, other: &Promised) -> bool {
        let held = |promised: &Promised| match &*promised.0.of.lock().unwrap_or_else(PoisonError::into_inner) {
            Of::Text(content) => Some(content.clone()),
            _ => None,
        };
        Arc::ptr_eq(&self.0, &other.0) || held(self).zip(held(other)).is_some_and(|(one, other)| one.is_same(&other))
    }

    /// About how many bytes it is made of.
    pub fn weight(&self) -> usize {
        self.0.weight
    }
}

impl fmt::Debug for Promised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Promised({} bytes)", self.0.weight)
    }
}

/// The digest of an answer, or the promise of one.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It is made.
    Digested(Digest),
    /// It will be.
    Promised(Promised),
}

impl Answer {
    /// The digest; made now if nobody has made it.
    pub fn digest(&self) -> Digest {
        match self {
            Answer::Digested(digest) => *digest,
            Answer::Promised(promised) => promised.digest(),
        }
    }

    /// Whether it has the same digest.
    // PERF: sources of packages are read several times before there is time to make their digests: a NixOS waited 8 ms for those.
    pub fn is_same(&self, other: &Answer) -> bool {
        let is_of_same = match (self, other) {
            (Answer::Promised(one), Answer::Promised(other)) => one.is_of_same(other),
            _ => false,
        };
        is_of_same || self.digest() == other.digest()
    }
}

/// An observation whose digest may still have to be made.
#[derive(Clone, Debug)]
pub struct Seen {
    /// What was asked.
    pub question: Question,
    /// What was answered.
    pub answer: Answer,
    /// How long the answer may be trusted.
    pub durability: Durability,
}

impl Seen {
    /// The observation, its digest made.
    pub fn observation(&self) -> Observation {
        Observation { question: self.question.clone(), digest: self.answer.digest(), durability: self.durability }
    }

    /// Whether this follows from other observations: `is_file` and `is_directory` say of which paths it is known that they
    /// are a regular file or a directory, with no link on the way to them. (Reading a file's content or a directory's
    /// listing tells that.)
    pub fn follows_from(&self, is_file: impl Fn(&AbsPath) -> bool, is_directory: impl Fn(&AbsPath) -> bool) -> bool {
        static SAME: LazyLock<[Digest; 6]> = LazyLock::new(|| {
            let (root, default) = (AbsPath::root(), AbsPath::canonical(&[b"default.nix"]));
            [
                digest_path(PathKind::Resolve, &root, &Ok(root.clone())),
                digest_path(PathKind::Import, &root, &Ok(root.clone())),
                digest_path(PathKind::Import, &root, &Ok(default)),
                digest_exists(&root, &Ok(true)),
                digest_type(&root, &Ok(Some(FileType::Regular))),
                digest_type(&root, &Ok(Some(FileType::Directory))),
            ]
        });
        let [itself, imports_itself, imports_default, exists, regular, directory] = *SAME;
        // Of these every digest is made.
        let is = |digest| self.answer.digest() == digest;
        match &self.question {
            Question::Resolve(path, _) => is(itself) && (is_file(path) || is_directory(path)),
            Question::ExprPath(path) if is(imports_itself) => is_file(path),
            Question::ExprPath(path) if is(imports_default) => is_file(&path.child(b"default.nix")),
            Question::Exists(path, must_be_dir) => is(exists) && (is_directory(path) || !must_be_dir && is_file(path)),
            Question::Type(path) if is(regular) => is_file(path),
            Question::Type(path) if is(directory) => is_directory(path),
            _ => false,
        }
    }
}

impl From<Observation> for Seen {
    fn from(Observation { question, digest, durability }: Observation) -> Seen {
        Seen { question, answer: Answer::Digested(digest), durability }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{digest_code, digest_file, digest_listing};

    #[test]
    fn a_digest_is_the_same_whoever_makes_it_and_the_bytes_are_held_no_longer() {
        let (asked, texts) = (AbsPath::root(), [&b"# one\n[ 1 ]"[..], b"[ 1 ] # two", b"\"", b""]);
        for content in texts.map(|text| FileContent::new(text.to_vec())) {
            let promised = [Promised::text(&content), Promised::code(&content)];
            let held = content.holders();
            let expected = [digest_file(&asked, &Ok(content.clone())), digest_code(&asked, &Ok(content.clone()))];
            let make = || assert_eq!([promised[0].digest(), promised[1].digest()], expected);
            std::thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(make)));
            assert_eq!(content.holders(), held - 2);
        }
        let listing = Listing::new(vec![(b"x"[..].into(), Some(FileType::Regular)), (b"a"[..].into(), None)]);
        assert_eq!(Promised::listing(&listing).digest(), digest_listing(&asked, &Ok(listing)));
    }
}
