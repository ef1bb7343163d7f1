//! The attributes of an input: names with a text, a number or a flag each, in order of names as lock files have them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::error::{FetchError, shown};

/// Attributes by name.
pub type Attrs = BTreeMap<String, Attr>;

/// A number that is costly to know and seldom asked for.
pub struct Lazy {
    value: OnceLock<Result<u64, FetchError>>,
    compute: Box<dyn Fn() -> Result<u64, FetchError> + Send + Sync>,
}

impl Lazy {
    /// Computed when first asked for.
    pub fn new(compute: impl Fn() -> Result<u64, FetchError> + Send + Sync + 'static) -> Arc<Lazy> {
        Arc::new(Lazy { value: OnceLock::new(), compute: Box::new(compute) })
    }

    /// The number.
    pub fn get(&self) -> Result<u64, FetchError> {
        self.value.get_or_init(|| (self.compute)()).clone()
    }
}

/// The value of an attribute.
#[derive(Clone)]
pub enum Attr {
    /// A text.
    Text(String),
    /// A number.
    Number(u64),
    /// A flag.
    Flag(bool),
    /// A number not known yet.
    Lazy(Arc<Lazy>),
}

impl Attr {
    /// The number, computed if need be; none for other kinds.
    pub fn number(&self) -> Result<Option<u64>, FetchError> {
        match self {
            Attr::Number(number) => Ok(Some(*number)),
            Attr::Lazy(lazy) => lazy.get().map(Some),
            _ => Ok(None),
        }
    }

    /// A key that tells values apart without computing any.
    fn key(&self) -> (u8, &str, u64) {
        match self {
            Attr::Text(text) => (0, text, 0),
            Attr::Number(number) => (1, "", *number),
            Attr::Flag(flag) => (2, "", u64::from(*flag)),
            Attr::Lazy(lazy) => (3, "", Arc::as_ptr(lazy) as *const u8 as u64),
        }
    }
}

impl PartialEq for Attr {
    /// Two lazy numbers, or a lazy and a known one, are equal if the numbers are.
    fn eq(&self, other: &Attr) -> bool {
        match (self, other) {
            (Attr::Lazy(_), Attr::Number(_) | Attr::Lazy(_)) | (Attr::Number(_), Attr::Lazy(_)) => {
                self.key() == other.key()
                    || matches!((self.number(), other.number()), (Ok(Some(a)), Ok(Some(b))) if a == b)
            }
            _ => self.key() == other.key(),
        }
    }
}

impl Eq for Attr {}

impl std::fmt::Debug for Attr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Attr::Text(text) => write!(f, "{text:?}"),
            Attr::Number(number) => write!(f, "{number}"),
            Attr::Flag(flag) => write!(f, "{flag}"),
            Attr::Lazy(_) => f.write_str("…"),
        }
    }
}

impl From<&str> for Attr {
    fn from(text: &str) -> Attr {
        Attr::Text(text.to_owned())
    }
}

impl From<String> for Attr {
    fn from(text: String) -> Attr {
        Attr::Text(text)
    }
}

/// The text of an attribute, if it is there.
pub(super) fn maybe_text<'a>(attrs: &'a Attrs, name: &str) -> Result<Option<&'a str>, FetchError> {
    match attrs.get(name) {
        None => Ok(None),
        Some(Attr::Text(text)) => Ok(Some(text)),
        Some(_) => {
            let all = attrs_to_json(attrs).unwrap_or_default();
            Err(FetchError::new(format!("input attribute '{}' is not a string {}", shown(name), shown(all))))
        }
    }
}

/// The text of an attribute that must be there.
pub(super) fn text<'a>(attrs: &'a Attrs, name: &str) -> Result<&'a str, FetchError> {
    maybe_text(attrs, name)?
        .ok_or_else(|| FetchError::new(format!("input attribute '{}' is missing", shown(name))))
}

/// The number of an attribute, if it is there.
pub(super) fn maybe_number(attrs: &Attrs, name: &str) -> Result<Option<u64>, FetchError> {
    let Some(attr) = attrs.get(name) else { return Ok(None) };
    match attr.number()? {
        Some(number) => Ok(Some(number)),
        None => Err(FetchError::new(format!("input attribute '{}' is not an integer", shown(name)))),
    }
}

/// The flag of an attribute, if it is there.
pub(super) fn maybe_flag(attrs: &Attrs, name: &str) -> Result<Option<bool>, FetchError> {
    match attrs.get(name) {
        None => Ok(None),
        Some(Attr::Flag(flag)) => Ok(Some(*flag)),
        Some(_) => Err(FetchError::new(format!("input attribute '{}' is not a Boolean", shown(name)))),
    }
}

/// The attributes as JSON on one line.
pub fn attrs_to_json(attrs: &Attrs) -> Result<String, FetchError> {
    let mut out = String::from("{");
    for (index, (name, attr)) in attrs.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_json_text(&mut out, name);
        out.push(':');
        match attr {
            Attr::Text(text) => write_json_text(&mut out, text),
            Attr::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
            Attr::Number(_) | Attr::Lazy(_) => out.push_str(&attr.number()?.unwrap_or_default().to_string()),
        }
    }
    out.push('}');
    Ok(out)
}

/// Writes a JSON string, quotes included.
fn write_json_text(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", letter as u32)),
            _ => out.push(letter),
        }
    }
    out.push('"');
}

/// Attributes as a URL's query: every kind as text.
pub(super) fn to_query(attrs: &Attrs) -> Result<BTreeMap<String, String>, FetchError> {
    attrs
        .iter()
        .map(|(name, attr)| {
            let text = match attr {
                Attr::Text(text) => text.clone(),
                Attr::Flag(flag) => if *flag { "1" } else { "0" }.to_owned(),
                Attr::Number(_) | Attr::Lazy(_) => attr.number()?.unwrap_or_default().to_string(),
            };
            Ok((name.clone(), text))
        })
        .collect()
}
