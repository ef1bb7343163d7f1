//! Nix's own literal forms: strings in quotes, identifiers, attribute names.

/// Words that need quotes where a name is printed. (`or` does not.)
pub fn is_reserved(word: &[u8]) -> bool {
    matches!(word, b"if" | b"then" | b"else" | b"assert" | b"with" | b"let" | b"in" | b"rec" | b"inherit")
}

/// Whether a name can stand without quotes in an attribute set or path.
pub fn is_name(text: &[u8]) -> bool {
    match text {
        [] | [b'0'..=b'9' | b'-' | b'\'', ..] => false,
        _ => text.iter().copied().all(is_name_byte) && !is_reserved(text),
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'\'')
}

/// Writes a string literal.
pub fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    write_escaped(out, text);
    out.push(b'"');
}

/// Writes the start of a string literal, at most `limit` bytes of it; gives how many bytes were left out, which the
/// caller tells the reader.
pub fn write_string_start(out: &mut Vec<u8>, text: &[u8], limit: usize) -> usize {
    let shown = text.len().min(limit);
    out.push(b'"');
    write_escaped(out, &text[..shown]);
    // An interpolation cut in two is still escaped.
    if text.get(shown) == Some(&b'{') && text[..shown].ends_with(b"$") {
        out.pop();
        out.extend_from_slice(b"\\$");
    }
    out.push(b'"');
    text.len() - shown
}

fn write_escaped(out: &mut Vec<u8>, text: &[u8]) {
    let mut from = 0;
    for (index, byte) in text.iter().enumerate() {
        let escaped: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            b'$' if text.get(index + 1) == Some(&b'{') => b"\\$",
            _ => continue,
        };
        out.extend_from_slice(&text[from..index]);
        out.extend_from_slice(escaped);
        from = index + 1;
    }
    out.extend_from_slice(&text[from..]);
}

/// Writes an attribute name, in quotes where it needs them.
pub fn write_name(out: &mut Vec<u8>, name: &[u8]) {
    if is_name(name) {
        out.extend_from_slice(name);
    } else {
        write_string(out, name);
    }
}
