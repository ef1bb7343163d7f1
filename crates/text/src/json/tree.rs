//! `Tree`: a document held as a value, for files that are read and written as a whole (lock files, registries).

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Builder, Error, parse, write_string};

/// A JSON value. Objects are in order of names, as nlohmann prints them.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number without fraction.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A string.
    Text(Vec<u8>),
    /// An array.
    List(Vec<Tree>),
    /// An object.
    Object(BTreeMap<Vec<u8>, Tree>),
}

impl Tree {
    /// Reads a document; the message is nlohmann's.
    pub fn parse(text: &[u8]) -> Result<Tree, Vec<u8>> {
        let mut stack = Stack(vec![Level::List(Vec::new())]);
        parse(text, &mut stack).map_err(|error: Error<std::convert::Infallible>| error.message().unwrap_or_default())?;
        match stack.0.pop() {
            Some(Level::List(mut items)) => Ok(items.pop().unwrap_or(Tree::Null)),
            _ => Ok(Tree::Null),
        }
    }

    /// A string value.
    pub fn text(text: &str) -> Tree {
        Tree::Text(text.as_bytes().to_vec())
    }

    /// The entry of an object.
    pub fn get(&self, name: &str) -> Option<&Tree> {
        self.as_object()?.get(name.as_bytes())
    }

    /// The entries, if this is an object.
    pub fn as_object(&self) -> Option<&BTreeMap<Vec<u8>, Tree>> {
        if let Tree::Object(entries) = self { Some(entries) } else { None }
    }

    /// The elements, if this is an array.
    pub fn as_list(&self) -> Option<&[Tree]> {
        if let Tree::List(items) = self { Some(items) } else { None }
    }

    /// The string, if this is one and UTF-8.
    pub fn as_text(&self) -> Option<&str> {
        if let Tree::Text(text) = self { std::str::from_utf8(text).ok() } else { None }
    }

    /// The document on one line, or with `indent` blanks a level.
    pub fn print(&self, indent: Option<usize>) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        self.write(&mut out, indent, 0)?;
        Ok(out)
    }

    fn write(&self, out: &mut Vec<u8>, indent: Option<usize>, depth: usize) -> Result<(), String> {
        let newline = |out: &mut Vec<u8>, depth: usize| {
            if let Some(indent) = indent {
                out.push(b'\n');
                out.resize(out.len() + indent * depth, b' ');
            }
        };
        match self {
            Tree::Null => out.extend_from_slice(b"null"),
            Tree::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Tree::Int(number) => out.extend_from_slice(number.to_string().as_bytes()),
            Tree::Float(number) => out.extend_from_slice(format!("{number:?}").as_bytes()),
            Tree::Text(text) => write_string(out, text)?,
            Tree::List(items) if items.is_empty() => out.extend_from_slice(b"[]"),
            Tree::Object(entries) if entries.is_empty() => out.extend_from_slice(b"{}"),
            Tree::List(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    newline(out, depth + 1);
                    item.write(out, indent, depth + 1)?;
                }
                newline(out, depth);
                out.push(b']');
            }
            Tree::Object(entries) => {
                out.push(b'{');
                for (index, (name, value)) in entries.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    newline(out, depth + 1);
                    write_string(out, name)?;
                    out.extend_from_slice(if indent.is_some() { b": " } else { b":" });
                    value.write(out, indent, depth + 1)?;
                }
                newline(out, depth);
                out.push(b'}');
            }
        }
        Ok(())
    }
}

enum Level {
    List(Vec<Tree>),
    Object(BTreeMap<Vec<u8>, Tree>, Vec<u8>),
}

struct Stack(Vec<Level>);

type Infallible<T = ()> = Result<T, std::convert::Infallible>;

impl Stack {
    fn put(&mut self, value: Tree) -> Infallible {
        match self.0.last_mut() {
            Some(Level::List(items)) => items.push(value),
            Some(Level::Object(entries, name)) => drop(entries.insert(std::mem::take(name), value)),
            None => {}
        }
        Ok(())
    }

    fn close(&mut self) -> Infallible {
        match self.0.pop() {
            Some(Level::List(items)) => self.put(Tree::List(items)),
            Some(Level::Object(entries, _)) => self.put(Tree::Object(entries)),
            None => Ok(()),
        }
    }
}

impl Builder for Stack {
    type Error = std::convert::Infallible;

    fn null(&mut self) -> Infallible {
        self.put(Tree::Null)
    }
    fn boolean(&mut self, value: bool) -> Infallible {
        self.put(Tree::Bool(value))
    }
    fn integer(&mut self, value: i64) -> Infallible {
        self.put(Tree::Int(value))
    }
    fn float(&mut self, value: f64) -> Infallible {
        self.put(Tree::Float(value))
    }
    fn string(&mut self, value: Cow<'_, [u8]>) -> Infallible {
        self.put(Tree::Text(value.into_owned()))
    }
    fn start_array(&mut self) -> Infallible {
        self.0.push(Level::List(Vec::new()));
        Ok(())
    }
    fn end_array(&mut self) -> Infallible {
        self.close()
    }
    fn start_object(&mut self) -> Infallible {
        self.0.push(Level::Object(BTreeMap::new(), Vec::new()));
        Ok(())
    }
    fn key(&mut self, name: Cow<'_, [u8]>) -> Infallible {
        if let Some(Level::Object(_, next)) = self.0.last_mut() {
            *next = name.into_owned();
        }
        Ok(())
    }
    fn end_object(&mut self) -> Infallible {
        self.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_come_back_as_they_went() {
        let compact = br#"{"a":[1,true,null,"x\ny"],"b":{},"c":[],"d":{"e":-2}}"#;
        let tree = Tree::parse(compact).expect("a document");
        assert_eq!(tree.print(None).expect("prints"), compact);
        let laid = tree.print(Some(2)).expect("prints");
        assert_eq!(Tree::parse(&laid).expect("a document"), tree);
        assert!(laid.starts_with(b"{\n  \"a\": [\n    1,\n    true"));
        assert!(Tree::parse(b"{").is_err());
    }
}
