//! Versions and derivation names: `compareVersions`, `splitVersion`, `parseDrvName`. Nothing is allocated.

use std::cmp::Ordering;

/// The components of a version, left to right: runs of digits and runs of anything else, dots and dashes between them.
#[derive(Clone, Debug)]
pub struct Components<'a> {
    rest: &'a [u8],
}

/// Splits a version.
pub fn components(version: &[u8]) -> Components<'_> {
    Components { rest: version }
}

impl<'a> Iterator for Components<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let separators = self.rest.iter().take_while(|byte| matches!(byte, b'.' | b'-')).count();
        self.rest = &self.rest[separators..];
        let digits = self.rest.first()?.is_ascii_digit();
        let belongs = |byte: &&u8| byte.is_ascii_digit() == digits && !matches!(byte, b'.' | b'-');
        let length = self.rest.iter().take_while(belongs).count();
        let (component, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(component)
    }
}

/// Compares two versions. A version that ends counts as continued by empty components.
pub fn compare(left: &[u8], right: &[u8]) -> Ordering {
    let (mut left, mut right) = (components(left), components(right));
    loop {
        let (one, other) = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (one, other) => (one.unwrap_or(b""), other.unwrap_or(b"")),
        };
        if is_less(one, other) {
            return Ordering::Less;
        }
        if is_less(other, one) {
            return Ordering::Greater;
        }
    }
}

/// NIX: a number is one that fits 32 bits; longer runs of digits compare as text.
fn number(component: &[u8]) -> Option<i32> {
    if !component.first()?.is_ascii_digit() {
        return None;
    }
    component.iter().try_fold(0i32, |value, digit| value.checked_mul(10)?.checked_add(i32::from(digit - b'0')))
}

fn is_less(left: &[u8], right: &[u8]) -> bool {
    match (number(left), number(right)) {
        (Some(left), Some(right)) => left < right,
        (None, Some(_)) if left.is_empty() => true,
        _ if left == b"pre" && right != b"pre" => true,
        _ if right == b"pre" => false,
        // `2.3a` comes before `2.3.1`.
        (_, Some(_)) => true,
        (Some(_), _) => false,
        (None, None) => left < right,
    }
}

/// Splits a derivation name at the first dash that no letter follows: `nix-2.35` is `nix` and `2.35`.
pub fn parse_drv_name(name: &[u8]) -> (&[u8], &[u8]) {
    let dash = name.windows(2).position(|pair| pair[0] == b'-' && !pair[1].is_ascii_alphabetic());
    match dash {
        Some(index) => (&name[..index], &name[index + 1..]),
        None => (name, b""),
    }
}
