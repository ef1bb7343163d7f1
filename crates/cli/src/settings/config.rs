//! The values of settings while files and flags are applied, one after the other.

use super::table::{self, FEATURES, Kind, SETTINGS};
use crate::failure::Failure;
use std::collections::BTreeSet;

/// Values of settings, as text that was checked.
#[derive(Debug, Default)]
pub struct Config {
    values: Vec<Option<Vec<u8>>>,
    unknown: BTreeSet<String>,
    /// Where each value came from, all places for one that was appended to.
    places: Vec<String>,
    /// Where the next ones come from.
    place: String,
}

/// A setting that was set.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: Vec<u8>,
    /// The file, variable or flag.
    pub place: String,
}

fn highlighted(part: &[u8]) -> String {
    firn_eval::colored(String::from_utf8_lossy(part))
}

impl Config {
    /// Sets a setting (`extra-name` appends); a name that nobody knows is kept for [`Config::warn_unknown`]. A value that does
    /// not suit gives Nix's message.
    pub fn set(&mut self, name: &str, value: &[u8], warn: &dyn Fn(&[u8])) -> Result<(), Vec<u8>> {
        self.values.resize(SETTINGS.len(), None);
        self.places.resize(SETTINGS.len(), String::new());
        let base = name.strip_prefix("extra-").and_then(table::find).filter(|&index| SETTINGS[index].kind == Kind::List);
        let (index, append) = match (table::find(name), base) {
            (Some(index), _) => (index, false),
            (None, Some(index)) => (index, true),
            (None, None) => {
                self.unknown.insert(name.to_owned());
                return Ok(());
            }
        };
        let setting = &SETTINGS[index];
        if let Some(feature) = setting.needs.filter(|feature| !self.has_feature(feature)) {
            let (name, feature) = (highlighted(setting.name.as_bytes()), highlighted(feature.as_bytes()));
            warn(format!("Ignoring setting '{name}' because experimental feature '{feature}' is not enabled").as_bytes());
            return Ok(());
        }
        check(setting, value)?;
        match setting.name {
            "experimental-features" => warn_features(value, warn),
            "warn-short-path-literals" => {
                let instead = if is_true(value) { "warn" } else { "ignore" };
                let (name, target) = (highlighted(setting.name.as_bytes()), highlighted(b"lint-short-path-literals"));
                warn(
                    format!("'{name}' is deprecated, use '{target} = {}' instead", highlighted(instead.as_bytes()))
                        .as_bytes(),
                );
            }
            _ => {}
        }
        let place = &mut self.places[index];
        *place = match append && !place.is_empty() && *place != self.place {
            true => format!("{place}, {}", self.place),
            false => self.place.clone(),
        };
        let slot = &mut self.values[index];
        *slot = match slot.take() {
            Some(before) if append => Some([&before, &b" "[..], value].concat()),
            None if append => Some([default_of(setting.name), value].concat()),
            _ => Some(value.to_vec()),
        };
        Ok(())
    }

    /// What is set next comes from there.
    pub fn from_now_on(&mut self, place: impl Into<String>) {
        self.place = place.into();
    }

    /// All settings that were set, in the order of their names.
    pub fn origins(&self) -> Vec<Origin> {
        let set = SETTINGS.iter().zip(&self.values).zip(&self.places);
        let mut all: Vec<Origin> = set
            .filter_map(|((setting, value), place)| {
                Some(Origin { name: setting.name, value: value.clone()?, place: place.clone() })
            })
            .collect();
        all.sort_by_key(|origin| origin.name);
        all
    }

    /// Tells of the names that are no settings.
    pub fn warn_unknown(&self, warn: &dyn Fn(&[u8])) {
        for name in &self.unknown {
            warn(format!("unknown setting '{}'", highlighted(name.as_bytes())).as_bytes());
        }
    }

    /// The value as text, if it was set.
    pub fn text(&self, name: &str) -> Option<&[u8]> {
        self.values.get(table::find(name)?)?.as_deref()
    }

    /// The words of a list, none if it was not set.
    pub fn words(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        words(self.text(name).unwrap_or_default())
    }

    /// The value of a Boolean, if it was set.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.text(name).map(is_true)
    }

    /// The value of a number, if it was set.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name).and_then(parse_number)
    }

    /// Whether an experimental feature is enabled.
    pub fn has_feature(&self, name: &str) -> bool {
        // NIX: flakes bring `fetchTree` with them.
        self.words("experimental-features")
            .any(|word| word == name.as_bytes() || (name == "fetch-tree" && word == b"flakes"))
    }

    /// Fails if the feature is not enabled.
    pub fn require_feature(&self, name: &str) -> Result<(), Failure> {
        if self.has_feature(name) {
            return Ok(());
        }
        let shown = highlighted(name.as_bytes());
        let message = format!(
            "experimental Nix feature '{shown}' is disabled; add '--extra-experimental-features {shown}' to enable it"
        );
        Err(Failure::error(message))
    }
}

/// What a list has before anything is appended to it, where that is not nothing.
fn default_of(name: &str) -> &'static [u8] {
    match name {
        "substituters" => b"https://cache.nixos.org/ ",
        "trusted-public-keys" => b"cache.nixos.org-1:6NCHdD59X431o0gWypbMrAURkbJ16ZPMQFGspcDShjY= ",
        _ => b"",
    }
}

/// Words between white space.
pub(super) fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')).filter(|word| !word.is_empty())
}

fn is_true(value: &[u8]) -> bool {
    matches!(value, b"true" | b"yes" | b"1")
}

/// A number, perhaps with a binary unit.
fn parse_number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let (digits, shift) = match text.bytes().last().map(|unit| unit.to_ascii_uppercase()) {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        Some(b'T') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Nix's message for a value that does not suit.
fn check(setting: &table::Setting, value: &[u8]) -> Result<(), Vec<u8>> {
    let (name, shown) = (highlighted(setting.name.as_bytes()), highlighted(value));
    let message = match setting.kind {
        Kind::Bool if !matches!(value, b"true" | b"yes" | b"1" | b"false" | b"no" | b"0") => {
            format!("Boolean setting '{name}' has invalid value '{shown}'")
        }
        Kind::Int if parse_number(value).is_none() => {
            format!("setting '{name}' has invalid value '{shown}'")
        }
        Kind::Lint if !matches!(value, b"ignore" | b"warn" | b"fatal") => {
            format!("option '{name}' has invalid value '{shown}' (expected 'ignore', 'warn', or 'fatal')")
        }
        _ => return Ok(()),
    };
    Err(message.into_bytes())
}

fn warn_features(value: &[u8], warn: &dyn Fn(&[u8])) {
    let sorted: BTreeSet<&[u8]> = words(value).collect();
    for word in sorted {
        let known = FEATURES.iter().any(|feature| feature.as_bytes() == word);
        if word == b"no-url-literals" {
            let shown = highlighted(word);
            let renamed = "has been stabilized and renamed; use 'lint-url-literals = fatal' setting instead";
            warn(format!("experimental feature '{shown}' {renamed}").as_bytes());
        } else if !known {
            warn(format!("unknown experimental feature '{}'", highlighted(word)).as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_appended_and_overridden() {
        let mut config = Config::default();
        let quiet = |_: &[u8]| {};
        config.set("allowed-uris", b"a", &quiet).expect("a list");
        config.set("extra-allowed-uris", b"b c", &quiet).expect("a list");
        assert_eq!(config.words("allowed-uris").collect::<Vec<_>>(), [b"a", b"b", b"c"]);
        config.set("max-call-depth", b"2K", &quiet).expect("a number");
        assert_eq!(config.number("max-call-depth"), Some(2048));
        assert!(config.set("max-call-depth", b"many", &quiet).is_err());
        assert!(config.set("pure-eval", b"maybe", &quiet).is_err());
        config.set("gc-keep-outputs", b"yes", &quiet).expect("an older name");
        assert_eq!(config.flag("keep-outputs"), Some(true));
    }

    #[test]
    fn unknown_names_and_features_are_told() {
        let said = std::cell::RefCell::new(Vec::new());
        let warn = |text: &[u8]| {
            said.borrow_mut().push(String::from_utf8_lossy(text).replace("\x1b[35;1m", "").replace("\x1b[0m", ""))
        };
        let mut config = Config::default();
        config.set("nonsense", b"1", &warn).expect("kept");
        config.set("experimental-features", b"flakes warp-drive", &warn).expect("a list");
        config.warn_unknown(&warn);
        assert_eq!(*said.borrow(), ["unknown experimental feature 'warp-drive'", "unknown setting 'nonsense'"]);
        assert!(config.has_feature("fetch-tree") && !config.has_feature("nix-command"));
    }
}
