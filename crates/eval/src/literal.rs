//! Literal forms of scalars in printed values, and the ranking of suggestions.

const RESERVED: [&[u8]; 9] = [b"if", b"then", b"else", b"assert", b"with", b"let", b"in", b"rec", b"inherit"];

pub(crate) fn print_string(bytes: &[u8], out: &mut Vec<u8>) {
    print_string_open(bytes, None, out);
    out.push(b'"');
}

/// A string literal without its closing quote; `next` is the byte that would follow.
pub(crate) fn print_string_open(bytes: &[u8], next: Option<u8>, out: &mut Vec<u8>) {
    out.push(b'"');
    for (i, &b) in bytes.iter().enumerate() {
        match b {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', b]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'$' if bytes.get(i + 1).copied().or(next) == Some(b'{') => out.extend_from_slice(b"\\$"),
            _ => out.push(b),
        }
    }
}

/// An attribute name as `nix eval` prints it.
pub(crate) fn print_attr_name(name: &[u8], out: &mut Vec<u8>) {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'\'');
    let first = name.first().copied().unwrap_or(b'0');
    let is_name = !name.is_empty()
        && !RESERVED.contains(&name)
        && !first.is_ascii_digit()
        && !matches!(first, b'-' | b'\'')
        && name.iter().all(plain);
    if is_name { out.extend_from_slice(name) } else { print_string(name, out) }
}

/// An attribute name as `nix-instantiate --eval` and messages print it.
pub(crate) fn print_symbol(name: &[u8], out: &mut Vec<u8>) {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'\'');
    let first = name.first().copied().unwrap_or(b'0');
    if name.is_empty() {
        out.extend_from_slice(b"\"\"");
    } else if RESERVED.contains(&name) {
        out.push(b'"');
        out.extend_from_slice(name);
        out.push(b'"');
    } else if (first.is_ascii_alphabetic() || first == b'_') && name.iter().all(plain) {
        out.extend_from_slice(name);
    } else {
        print_string(name, out);
    }
}

/// A float as C++ streams print it by default: `%g` with six significant digits.
pub(crate) fn print_float(x: f64) -> String {
    if x.is_nan() {
        return if x.is_sign_negative() { "-nan" } else { "nan" }.to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    if x == 0.0 {
        return if x.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let scientific = format!("{x:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |s: &str| if s.contains('.') { s.trim_end_matches('0').trim_end_matches('.').to_owned() } else { s.to_owned() };
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(mantissa), exponent.abs());
    }
    trim(&format!("{x:.*}", (5 - exponent).max(0) as usize))
}

/// The names closest to `name`: at most two edits away and fewer than the name is long.
pub(crate) fn best_matches(names: &[&[u8]], name: &[u8]) -> Vec<Vec<u8>> {
    let mut ranked: Vec<(usize, &[u8])> = names.iter().map(|&n| (distance(n, name), n)).collect();
    ranked.sort();
    ranked.dedup();
    ranked.retain(|&(d, _)| d <= 2);
    ranked.into_iter().take(5).map(|(_, n)| n.to_vec()).collect()
}

fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut previous = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = previous + usize::from(x != y);
            previous = row[j + 1];
            row[j + 1] = substituted.min(previous + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
