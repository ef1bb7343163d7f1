//! Pieces of messages: types by Nix's names, highlighting, suggestions.

use crate::Machine;
use firn_source::Symbol;
use firn_value::{Error, ErrorKind, Function, Type, Value};

/// A part of a message that Nix highlights.
pub fn colored(part: impl std::fmt::Display) -> String {
    format!("{}{part}{}", Error::HIGHLIGHT, Error::PLAIN)
}

/// An attribute's or argument's name in a message: highlighted, in quotes unless it could stand in code without.
pub fn colored_name(name: Symbol) -> String {
    let mut text = Vec::new();
    firn_text::literal::write_name(&mut text, name.as_bytes());
    colored(String::from_utf8_lossy(&text))
}

/// A highlighted part that may not be UTF-8.
pub fn color_bytes(part: &[u8]) -> Vec<u8> {
    [Error::HIGHLIGHT.as_bytes(), part, Error::PLAIN.as_bytes()].concat()
}

/// What Nix calls a value's type in messages, with its article.
pub fn show_type(value: Value) -> String {
    match value.get_type() {
        None => match value.as_thunk().inspect(|_| firn_memo::doubt::unevaluated_shown()) {
            Some(thunk) if thunk.is_application() => "a function application".to_owned(),
            Some(thunk) if matches!(thunk.state(), firn_value::ThunkState::Claimed(_)) => "a black hole".to_owned(),
            _ => "a thunk".to_owned(),
        },
        Some(Type::Null) => "null".to_owned(),
        Some(Type::Bool) => "a Boolean".to_owned(),
        Some(Type::Int) => "an integer".to_owned(),
        Some(Type::Float) => "a float".to_owned(),
        Some(Type::String) => {
            if value.as_str().is_some_and(|s| !s.context().is_empty()) {
                "a string with context".to_owned()
            } else {
                "a string".to_owned()
            }
        }
        Some(Type::Path) => "a path".to_owned(),
        Some(Type::List) => "a list".to_owned(),
        Some(Type::Attrs) => "a set".to_owned(),
        Some(Type::Function) => match value.as_function() {
            Some(Function::Primop(primop)) => format!("the built-in function '{}'", primop.name),
            Some(Function::Partial(partial)) => match partial.function().as_function() {
                Some(Function::Primop(primop)) => format!("the partially applied built-in function '{}'", primop.name),
                _ => "a function".to_owned(),
            },
            _ => "a function".to_owned(),
        },
    }
}

/// The names closest to `name`, as Nix ranks them.
pub(crate) fn best_matches(names: &[&[u8]], name: &[u8]) -> Vec<Vec<u8>> {
    firn_text::suggest::nearest(names.iter().copied(), name).into_iter().map(<[u8]>::to_vec).collect()
}

/// The error for something that needs an experimental feature.
#[cold]
pub fn missing_feature(feature: &str) -> Box<Error> {
    let name = colored(feature);
    let message = format!(
        "experimental Nix feature '{name}' is disabled; add '--extra-experimental-features {name}' to enable it"
    );
    Error::new(ErrorKind::Eval, message)
}

impl Machine {
    /// A value as Nix shows it in messages; evaluates nothing.
    pub fn show(&self, value: Value) -> Vec<u8> {
        let mut out = Vec::new();
        crate::print_value(self, value, &crate::PrintOptions::in_errors(), &mut out);
        out
    }
}
