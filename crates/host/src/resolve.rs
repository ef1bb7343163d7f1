//! Following links, by Nix's rules, over any host's `lstat` and `read_link`.
//!
//! Called through the methods of [`Host`]. Each walk ends: 1024 links are followed, no more.

use crate::{AbsPath, FileType, Follow, Host, HostError};

const LINKS_ALLOWED: usize = 1024;

/// Replaces every link on the way by its target. `..` in a target climbs from where the link really lies.
pub(crate) fn resolve_symlinks<H: Host + ?Sized>(
    host: &H,
    path: &AbsPath,
    follow: Follow,
) -> Result<AbsPath, HostError> {
    let mut resolved = AbsPath::root();
    let mut links = 0;
    // The components still to walk, the next one last.
    let mut todo: Vec<Box<[u8]>> = path.components().rev().map(Box::from).collect();
    while let Some(component) = todo.pop() {
        if *component == *b".." {
            resolved = resolved.parent().unwrap_or(resolved);
            continue;
        }
        if *component == *b"." {
            continue;
        }
        let here = resolved.child(&component);
        let last = todo.is_empty();
        if (last && follow == Follow::Ancestors) || host.file_type(&here)? != Some(FileType::Symlink) {
            resolved = here;
            continue;
        }
        if links == LINKS_ALLOWED {
            return Err(HostError::SymlinkRecursion(path.clone()));
        }
        links += 1;
        let target = host.read_link(&here)?;
        if target.first() == Some(&b'/') {
            resolved = AbsPath::root();
        }
        todo.extend(target.split(|&byte| byte == b'/').filter(|step| !step.is_empty()).rev().map(Box::from));
    }
    // The common case shares the bytes of the question.
    Ok(if resolved == *path { path.clone() } else { resolved })
}

/// NIX: a relative target is taken from the directory as written, by letters, not from where that directory really is.
pub(crate) fn resolve_expr_path<H: Host + ?Sized>(host: &H, path: &AbsPath) -> Result<AbsPath, HostError> {
    let mut path = path.clone();
    let mut follows = 0;
    while let (Some(parent), Some(name)) = (path.parent(), path.base_name()) {
        follows += 1;
        if follows >= LINKS_ALLOWED {
            return Err(HostError::TooManySymlinks(path));
        }
        let above = host.resolve_symlinks(&parent, Follow::Full)?;
        let real = if above == parent { path.clone() } else { above.child(name) };
        match host.existing_type(&real)? {
            FileType::Symlink => path = parent.join(&host.read_link(&real)?)?,
            FileType::Directory => return Ok(path.child(b"default.nix")),
            _ => return Ok(path),
        }
    }
    // What is left is the root, which may still not be seen.
    host.existing_type(&path)?;
    Ok(path.child(b"default.nix"))
}

pub(crate) fn path_exists<H: Host + ?Sized>(host: &H, path: &AbsPath, must_be_dir: bool) -> Result<bool, HostError> {
    let answer = || {
        let follow = if must_be_dir { Follow::Full } else { Follow::Ancestors };
        let file_type = host.file_type(&host.resolve_symlinks(path, follow)?)?;
        Ok(file_type.is_some_and(|file_type| !must_be_dir || file_type == FileType::Directory))
    };
    // NIX: what may not be seen does not exist; any other failure is one.
    answer().or_else(|error: HostError| if error.is_restriction() { Ok(false) } else { Err(error) })
}

/// Whether `pathExists` of this string asks for a directory: it ends in `/` or `/.`. Paths as values never do.
pub fn must_be_dir(raw: &[u8]) -> bool {
    raw.ends_with(b"/") || raw.ends_with(b"/.")
}
