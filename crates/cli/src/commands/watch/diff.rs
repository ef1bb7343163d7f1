//! Two texts by the lines in which they differ.

/// Lines shown around a difference.
const AROUND: usize = 2;
/// Beyond this many pairs of lines, what differs is shown as one piece.
const PAIRS: usize = 4 << 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Both,
    Old,
    New,
}

/// How many lines a text has.
pub(super) fn lines(text: &[u8]) -> usize {
    split(text).len()
}

fn split(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap_or(line)).collect()
}

/// What must be taken away (`-`) and added (`+`) to come from the old text to the new, with a little around it.
pub(super) fn diff(old: &[u8], new: &[u8]) -> Vec<u8> {
    let (old, new) = (split(old), split(new));
    let script = compare(&old, &new);
    let near = |at: usize| {
        let range = at.saturating_sub(AROUND)..(at + AROUND + 1).min(script.len());
        script[range].iter().any(|(side, _)| *side != Side::Both)
    };
    let (mut out, mut skipped) = (Vec::new(), false);
    for (at, (side, line)) in script.iter().enumerate() {
        if !near(at) {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            out.extend_from_slice("…\n".as_bytes());
        }
        out.push(match side {
            Side::Both => b' ',
            Side::Old => b'-',
            Side::New => b'+',
        });
        out.extend_from_slice(line);
        out.push(b'\n');
    }
    if skipped {
        out.extend_from_slice("…\n".as_bytes());
    }
    out
}

/// All lines of both texts, those of a longest common part once.
fn compare<'t>(old: &[&'t [u8]], new: &[&'t [u8]]) -> Vec<(Side, &'t [u8])> {
    let before = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let after = old[before..].iter().rev().zip(new[before..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[before..old.len() - after], &new[before..new.len() - after]);
    let mut script: Vec<(Side, &[u8])> = old[..before].iter().map(|line| (Side::Both, *line)).collect();
    if a.len().saturating_mul(b.len()) > PAIRS {
        script.extend(a.iter().map(|line| (Side::Old, *line)));
        script.extend(b.iter().map(|line| (Side::New, *line)));
    } else {
        // The length of the longest common part of what is left of both, from each pair of lines on.
        let width = b.len() + 1;
        let mut length = vec![0u32; (a.len() + 1) * width];
        for i in (0..a.len()).rev() {
            for j in (0..b.len()).rev() {
                length[i * width + j] = match a[i] == b[j] {
                    true => length[(i + 1) * width + j + 1] + 1,
                    false => length[(i + 1) * width + j].max(length[i * width + j + 1]),
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < a.len() || j < b.len() {
            if i < a.len() && j < b.len() && a[i] == b[j] {
                script.push((Side::Both, a[i]));
                (i, j) = (i + 1, j + 1);
            } else if j == b.len() || i < a.len() && length[(i + 1) * width + j] >= length[i * width + j + 1] {
                script.push((Side::Old, a[i]));
                i += 1;
            } else {
                script.push((Side::New, b[j]));
                j += 1;
            }
        }
    }
    script.extend(old[old.len() - after..].iter().map(|line| (Side::Both, *line)));
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(old: &str, new: &str) -> String {
        String::from_utf8(diff(old.as_bytes(), new.as_bytes())).expect("text")
    }

    #[test]
    fn lines_that_differ_are_shown_with_those_around() {
        assert_eq!(shown("a\nb\nc\nd\ne\nf\ng\n", "a\nb\nc\nD\ne\nf\ng\n"), "…\n b\n c\n-d\n+D\n e\n f\n…\n");
        assert_eq!(shown("a\nb\n", "b\nc\n"), "-a\n b\n+c\n");
        assert_eq!(shown("", "a\n"), "+a\n");
        assert_eq!(shown("a\nb\n", "a\n"), " a\n-b\n");
        assert_eq!(lines(b"a\nb"), 2);
    }
}
