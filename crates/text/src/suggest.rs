//! Names near a mistyped one, for "Did you mean …?" (whose wording lives with the errors).

/// Edits (of bytes) that turn one name into the other.
pub fn distance(left: &[u8], right: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, byte) in left.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in right.iter().enumerate() {
            let substitution = diagonal + usize::from(byte != other);
            diagonal = row[column + 1];
            row[column + 1] = substitution.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

/// The names worth suggesting: at most five, at most two edits away, nearest first, then by name.
pub fn nearest<'a>(names: impl IntoIterator<Item = &'a [u8]>, wanted: &[u8]) -> Vec<&'a [u8]> {
    let mut ranked: Vec<(usize, &[u8])> = names
        .into_iter()
        // The difference in length is a lower bound, and cheap.
        .filter(|name| name.len().abs_diff(wanted.len()) <= 2)
        .map(|name| (distance(wanted, name), name))
        .filter(|(distance, _)| *distance <= 2)
        .collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.into_iter().take(5).map(|(_, name)| name).collect()
}
