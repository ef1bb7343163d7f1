//! Canonical paths, by letters.

/// Appends the components of `path` to the absolute path `out[start..]` (empty for the root), undoing `.` and `..`.
pub(crate) fn append_canonical(out: &mut Vec<u8>, start: usize, path: &[u8]) {
    for component in path.split(|&b| b == b'/') {
        match component {
            b"" | b"." => {}
            b".." => {
                let slash = out[start..].iter().rposition(|&b| b == b'/').unwrap_or(0);
                out.truncate(start + slash);
            }
            name => {
                out.push(b'/');
                out.extend_from_slice(name);
            }
        }
    }
}

/// Appends what a path literal means in a text whose relative paths start from the absolute directory `base`.
pub fn path_literal(base: &[u8], literal: &[u8], out: &mut Vec<u8>) {
    let mut canonical = Vec::with_capacity(base.len());
    append_canonical(&mut canonical, 0, base);
    append_literal(&canonical, literal, out);
}

/// Appends what a literal means that is seen from the canonical directory `base`.
// PERF: most path literals of a package set are never looked at.
pub(crate) fn append_literal(base: &[u8], literal: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    if literal.first() != Some(&b'/') {
        out.extend_from_slice(base);
    }
    append_canonical(out, start, literal);
    // NIX: the first piece of an interpolated path keeps its slash.
    if out.len() == start || (literal.len() > 1 && literal.ends_with(b"/")) {
        out.push(b'/');
    }
}

#[cfg(test)]
mod tests {
    use super::append_literal;

    #[test]
    fn literals_are_seen_from_their_directory() {
        for (base, literal, expected) in [
            ("/a/b", "./c", "/a/b/c"),
            ("/a/b", "../../../c", "/c"),
            ("/a/b", "c/../..", "/a"),
            ("/a", "./..", "/"),
            ("", "./x", "/x"),
            ("/a/b", "/", "/"),
            ("/a/b", "/x//y/.", "/x/y"),
            ("/a/b", "./c/", "/a/b/c/"),
        ] {
            let mut out = b"before".to_vec();
            append_literal(base.as_bytes(), literal.as_bytes(), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), format!("before{expected}"), "{base} {literal}");
        }
    }
}
