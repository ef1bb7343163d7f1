//! Configuration files: `name = value`, `include`, `!include`, `#` comments.

use super::config::{Config, words};
use crate::failure::Failure;
use firn_host::{AbsPath, Follow, Host};

/// Files may include files; deeper than this it is a loop.
const DEEPEST: usize = 64;

type Lines = Vec<(Vec<u8>, Vec<u8>)>;

/// Name, value, and the file that says so.
pub(super) type Said = (String, Vec<u8>, Vec<u8>);

/// Applies the system's file, the user's, and `NIX_CONFIG`.
pub(super) fn read_all(host: &dyn Host, config: &mut Config, warn: &dyn Fn(&[u8])) -> Result<(), Failure> {
    let mut files = vec![system_file(host, b"/nix.conf")];
    files.extend(user_files(host).into_iter().rev());
    for file in files {
        if let Some((path, text)) = AbsPath::new(&file).ok().and_then(|path| Some((path.clone(), read(host, &path)?))) {
            apply(host, config, &text, &path, path.as_bytes(), warn)?;
        }
    }
    if let Some(text) = host.env(b"NIX_CONFIG") {
        // NIX: what it includes is seen from the current directory.
        let here = host.current_dir().unwrap_or_else(|_| AbsPath::root());
        let place = here.join(b"NIX_CONFIG").unwrap_or(here);
        apply(host, config, &text, &place, b"NIX_CONFIG", warn)?;
    }
    Ok(())
}

/// What the files that only firn reads say, in the order in which it counts.
pub(super) fn read_own(host: &dyn Host) -> Result<Vec<Said>, Failure> {
    let mut files = vec![system_file(host, b"/firn.conf")];
    files.extend(files_of_user(host, b"/firn.conf").into_iter().rev());
    let mut all = Vec::new();
    for file in files {
        let Some((path, text)) = AbsPath::new(&file).ok().and_then(|path| Some((path.clone(), read(host, &path)?))) else {
            continue;
        };
        let mut lines = Lines::new();
        parse(host, &text, &path, path.as_bytes(), &mut lines, 0)?;
        let named = |(name, value): (Vec<u8>, Vec<u8>)| (String::from_utf8_lossy(&name).into_owned(), value, file.clone());
        all.extend(lines.into_iter().map(named));
    }
    Ok(all)
}

fn system_file(host: &dyn Host, name: &[u8]) -> Vec<u8> {
    let dir = host.env(b"NIX_CONF_DIR").filter(|dir| !dir.is_empty());
    [dir.as_deref().unwrap_or(b"/etc/nix"), name].concat()
}

/// The user's files, the most important first.
fn user_files(host: &dyn Host) -> Vec<Vec<u8>> {
    if let Some(named) = host.env(b"NIX_USER_CONF_FILES") {
        return named.split(|&b| b == b':').filter(|file| !file.is_empty()).map(<[u8]>::to_vec).collect();
    }
    files_of_user(host, b"/nix.conf")
}

fn files_of_user(host: &dyn Host, name: &[u8]) -> Vec<Vec<u8>> {
    let variable = |name: &[u8]| host.env(name).map(|value| value.to_vec());
    let home =
        variable(b"NIX_CONFIG_HOME").or_else(|| variable(b"XDG_CONFIG_HOME").map(|dir| [&dir, &b"/nix"[..]].concat()));
    let home = home.or_else(|| host.home().ok().map(|home| [&home, &b"/.config/nix"[..]].concat()));
    let others = variable(b"XDG_CONFIG_DIRS").unwrap_or_else(|| b"/etc/xdg".to_vec());
    let others = others.split(|&b| b == b':').filter(|dir| !dir.is_empty()).map(|dir| [dir, b"/nix"].concat());
    home.into_iter().chain(others).map(|dir| [&dir, name].concat()).collect()
}

/// The content of a file; none if it cannot be had, which is no error here.
fn read(host: &dyn Host, path: &AbsPath) -> Option<Vec<u8>> {
    let real = host.resolve_symlinks(path, Follow::Full).ok()?;
    host.file_type(&real).ok()??;
    Some(host.read_file(&real).ok()?.bytes().to_vec())
}

fn apply(
    host: &dyn Host,
    config: &mut Config,
    text: &[u8],
    path: &AbsPath,
    shown: &[u8],
    warn: &dyn Fn(&[u8]),
) -> Result<(), Failure> {
    let mut lines = Lines::new();
    config.from_now_on(String::from_utf8_lossy(shown));
    parse(host, text, path, shown, &mut lines, 0)?;
    let is_features = |name: &[u8]| matches!(name, b"experimental-features" | b"extra-experimental-features");
    let nix_path_given = host.env(b"NIX_PATH").is_some();
    // Features come first, because other settings may need them.
    let (first, then): (Lines, Lines) = lines.into_iter().partition(|(name, _)| is_features(name));
    for (name, value) in first.into_iter().chain(then) {
        if nix_path_given && matches!(&name[..], b"nix-path" | b"extra-nix-path") {
            continue;
        }
        config.set(&String::from_utf8_lossy(&name), &value, warn).map_err(Failure::Usage)?;
    }
    Ok(())
}

fn parse(
    host: &dyn Host,
    text: &[u8],
    path: &AbsPath,
    shown: &[u8],
    lines: &mut Lines,
    depth: usize,
) -> Result<(), Failure> {
    for line in text.split(|&b| b == b'\n') {
        let line = line.split(|&b| b == b'#').next().unwrap_or_default();
        let tokens: Vec<&[u8]> = words(line).collect();
        match tokens[..] {
            [] => {}
            [b"include", file] => include(host, file, false, path, shown, lines, depth)?,
            [b"!include", file] => include(host, file, true, path, shown, lines, depth)?,
            [b"include" | b"!include", ..] => return Err(syntax_error(line, shown)),
            [name, b"=", ref value @ ..] => lines.push((name.to_vec(), value.join(&b' '))),
            _ => return Err(syntax_error(line, shown)),
        }
    }
    Ok(())
}

fn include(
    host: &dyn Host,
    file: &[u8],
    may_be_missing: bool,
    from: &AbsPath,
    shown: &[u8],
    lines: &mut Lines,
    depth: usize,
) -> Result<(), Failure> {
    let target = from.parent().unwrap_or_else(AbsPath::root).join(file).map_err(super::host_failure)?;
    let quoted = |path: &[u8]| format!("\"{}\"", String::from_utf8_lossy(path));
    if depth >= DEEPEST {
        let message = format!("file {} included from {} includes itself", quoted(target.as_bytes()), quoted(shown));
        return Err(Failure::error(message));
    }
    match read(host, &target) {
        Some(text) => parse(host, &text, &target, target.as_bytes(), lines, depth + 1),
        None if may_be_missing || host.path_exists(&target, false).unwrap_or(false) => Ok(()),
        None => Err(Failure::error(format!("file {} included from {} not found", quoted(target.as_bytes()), quoted(shown)))),
    }
}

fn syntax_error(line: &[u8], shown: &[u8]) -> Failure {
    let after = format!("' in \"{}\"", String::from_utf8_lossy(shown));
    Failure::usage("syntax error in configuration line '", line, &after)
}
