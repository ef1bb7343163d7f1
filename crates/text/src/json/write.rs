//! String literals of JSON output.

/// Writes a string in quotes. Text that is not UTF-8 is an error, whose message is given.
pub fn write_string(out: &mut Vec<u8>, text: &[u8]) -> Result<(), String> {
    check_utf8(text)?;
    out.push(b'"');
    let mut from = 0;
    for (index, &byte) in text.iter().enumerate() {
        let short = match byte {
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0x0c => b'f',
            b'\r' => b'r',
            b'"' | b'\\' => byte,
            0..=0x1f => 0,
            _ => continue,
        };
        out.extend_from_slice(&text[from..index]);
        from = index + 1;
        match short {
            0 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.extend_from_slice(&[b'\\', short]),
        }
    }
    out.extend_from_slice(&text[from..]);
    out.push(b'"');
    Ok(())
}

fn check_utf8(text: &[u8]) -> Result<(), String> {
    let Err(error) = std::str::from_utf8(text) else { return Ok(()) };
    let start = error.valid_up_to();
    let Some(length) = error.error_len() else {
        let last = text.last().copied().unwrap_or(0);
        return Err(format!("[json.exception.type_error.316] incomplete UTF-8 string; last byte: 0x{last:02X}"));
    };
    // The byte at fault is the first that cannot continue; where nothing can begin, that is the beginning.
    let index = if matches!(text[start], 0xc2..=0xf4) { start + length } else { start };
    Err(format!("[json.exception.type_error.316] invalid UTF-8 byte at index {index}: 0x{:02X}", text[index]))
}
