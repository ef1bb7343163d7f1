//! Store paths and string contexts between values and `firn_store`: what every builtin that knows the store needs.

use crate::Machine;
use firn_source::{Pos, Symbol};
use firn_store::context::Element;
use firn_store::store_dir::StoreDir;
use firn_value::{Context, Error, ErrorKind};
use std::cell::RefCell;

/// How many elements a thread remembers, direct mapped.
const RECENT: usize = 1 << 12;

thread_local! {
    static MET: RefCell<Vec<Option<(Symbol, Element)>>> = RefCell::new(vec![None; RECENT]);
}

/// The elements of a context in Nix's order: plain paths, deep derivations, outputs.
// PERF: a derivation's inputs are those of many others, and the store keeps them: what is the same path is one in memory.
pub fn context_elements(context: Context) -> Vec<Element> {
    let mut elements: Vec<Element> = MET.with_borrow_mut(|met| {
        let parse = |&symbol: &Symbol| match &mut met[symbol.id() as usize % RECENT] {
            Some((known, element)) if *known == symbol => element.clone(),
            place => {
                let element = Element::parse(symbol.as_bytes()).expect("contexts hold what `to_bytes` wrote");
                *place = Some((symbol, element.clone()));
                element
            }
        };
        context.elements().iter().map(parse).collect()
    });
    elements.sort_unstable();
    elements
}

/// The context of these elements.
pub fn context_of<'a>(elements: impl IntoIterator<Item = &'a Element>) -> Context {
    Context::of(elements.into_iter().map(|element| Symbol::intern(&element.to_bytes())).collect())
}

/// An error of a pure store function as an evaluation error.
#[cold]
pub fn store_error(error: &firn_store::Error) -> Box<Error> {
    let kind = match error.kind() {
        firn_store::ErrorKind::Usage => ErrorKind::Usage,
        _ => ErrorKind::Store,
    };
    let told = Error::new(kind, error.message()).exit_with(error.status());
    error.traces().iter().fold(told, |e, trace| e.trace(Pos::NONE, &trace[..]))
}

impl Machine {
    /// The directory that store paths are printed under.
    pub fn store_dir(&self) -> &StoreDir {
        &self.shared.store_dir
    }
}
