//! `:why`: what an expression looks at. Values that exist have looked already, so it is evaluated anew, over everything that
//! is loaded read anew.

use super::{Repl, Scope};
use crate::commands::why::Layout;
use crate::failure::Failure;
use crate::flags::Flags;
use crate::session::Session;
use crate::settings;
use firn_eval::{PrintOptions, try_print_value};
use firn_host::{Observation, RealHost, RealWorld};
use firn_memo::kept::{Entry, Roles, labels};
use std::sync::Arc;

impl Repl<'_> {
    pub(super) fn why(&mut self, text: &str) -> Result<(), Failure> {
        let host = Arc::new(RealHost::new(RealWorld));
        let flags = Flags { keeps_answers: true, reloads: false, memo: Some(b"disk".to_vec()), ..self.flags.clone() };
        let resolved = settings::resolve(&*host, &flags, false, &|_| ())?;
        let log = self.invocation.log.clone();
        let session = Session::start_with(&host, &flags, resolved, &log, self.session.ended())?;
        let (session, scope) =
            (std::mem::replace(&mut self.session, session), std::mem::take(&mut self.scope));
        let loaded = self.loaded.clone();
        self.quiet = true;
        let looked = self.look(text, &scope);
        self.quiet = false;
        (self.session, self.scope, self.loaded) = (session, scope, loaded);
        let (observations, roles) = looked?;
        let mut layout = Layout::new(&observations, &roles);
        layout.open(false);
        let count = observations.len();
        let shown = format!("it rests on {count} observation{}\n{}", if count == 1 { "" } else { "s" }, layout.print());
        self.tell(shown.trim_end())
    }

    /// Evaluates all of the expression in the session at hand; what was observed meanwhile.
    fn look(&mut self, text: &str, earlier: &Scope) -> Result<(Vec<Observation>, Roles), Failure> {
        let last = self.last;
        labels::let_go();
        for (loaded, _) in self.loaded.clone() {
            self.load(&loaded, false)?;
        }
        self.last = last;
        self.scope.add_missing(earlier);
        let value = self.value(text)?;
        let options = PrintOptions { force: true, derivation_paths: true, ..PrintOptions::default() };
        try_print_value(&self.session.machine, value, &options, &mut Vec::new())?;
        let Some(memory) = &self.session.memory else {
            return Err(Failure::error("what is looked at is taken down by the cache on disk, which cannot be used"));
        };
        memory.name_trees(&Entry::Expression(text.as_bytes().to_vec(), self.session.here()?), None, &[]);
        Ok((memory.observed(), memory.roles()))
    }
}
