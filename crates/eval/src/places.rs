//! Where trees lie, as far as a program can tell (spec L3.1).
//!
//! A program that only goes from path to path within a tree does the same wherever the tree lies, and so do its answers. It sees
//! the place where the bytes of a path become text, where a path leads from one tree into another, where two paths are
//! compared, and where text becomes a path. In the same way it sees the text of a file, where otherwise only the code in it
//! matters, when it asks where something stands (spec L2.5). All of that goes through this file, which tells the host; whoever records finds out
//! which trees are meant. Invariant: nothing else makes text of a path, or a path of anything but a path below it.

use crate::Machine;
use firn_host::{AbsPath, Follow};
use firn_source::{Origin, Pos};
use firn_value::{Context, Result, Thunk, Value};

/// Is told of a path literal that may lead out of its directory: whether it is written in full, and the path that it means.
pub(crate) type EachPath<'a> = &'a mut dyn FnMut(bool, &[u8]);

impl Machine {
    /// The bytes of a path that are about to be seen as text.
    #[inline]
    pub fn path_text<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        self.host().seen_at(path);
        path
    }

    /// The last name of a path, which is the tree's own only where the path is its root.
    pub fn path_name<'p>(&self, path: &'p AbsPath) -> &'p [u8] {
        if let Some(parent) = path.parent() {
            self.host().related(path.as_bytes(), parent.as_bytes());
        }
        path.base_name().unwrap_or_default()
    }

    /// The program is about to see where something stands in a file: the blanks and comments before it decide that.
    pub fn see_position(&self, pos: Pos) {
        if self.host().notes_places()
            && let Some(Origin::File(path)) = pos.file_offset().map(|(file, _)| file.origin())
            && let Ok(path) = AbsPath::new(path)
            && let Ok(real) = self.host().resolve_symlinks(&path, Follow::Full)
        {
            self.host().seen_text(&real);
        }
    }

    /// Two paths were compared, or one was made from the other.
    #[inline]
    pub fn path_related(&self, one: &[u8], other: &[u8]) {
        self.host().related(one, other);
    }

    /// Whether a cell is the file of a position that nobody has looked at: NIX: it is never shown as unevaluated.
    pub(crate) fn is_file_of_position(&self, thunk: &'static Thunk) -> bool {
        thunk.applied_function() == Some(self.shared.position_parts[2])
    }

    /// What a text can see of places before it runs: paths that are written in full or lead out of the tree, and the search path
    /// by name.
    pub(crate) fn note_places(&self, each_path: impl FnOnce(EachPath<'_>), base: &AbsPath, text: &[u8]) {
        if !self.host().notes_places() {
            return;
        }
        each_path(&mut |written_in_full, path| {
            if written_in_full {
                self.host().seen_at(path);
            } else if !is_below(path, base.as_bytes()) {
                self.host().related(base.as_bytes(), path);
            }
        });
        // NIX: `<name>` means `__findFile __nixPath "name"`; only who names the list sees what is in it.
        let entries = &self.settings().nix_path;
        if !entries.is_empty() && contains(text, b"nixPath") {
            for entry in entries {
                let path = entry.iter().position(|&byte| byte == b'=').map_or(&entry[..], |at| &entry[at + 1..]);
                self.host().seen_at(path);
            }
        }
    }

    /// Whether a text may name the home directory.
    pub(crate) fn may_name_home(text: &[u8]) -> bool {
        contains(text, b"~/")
    }
}

/// The file of a position, by the position's number.
pub(crate) fn file_of_position(machine: &Machine, _pos: Pos, args: &[Value]) -> Result<Value> {
    let number = args[0].as_int().and_then(|number| u32::try_from(number).ok()).unwrap_or_default();
    let origin = Pos::from_number(number).file_offset().map(|(file, _)| file.origin());
    let Some(Origin::File(path)) = origin else { return Ok(Value::NULL) };
    Ok(Value::string(machine.path_text(path), Context::EMPTY))
}

fn is_below(path: &[u8], base: &[u8]) -> bool {
    path.strip_prefix(base).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}
