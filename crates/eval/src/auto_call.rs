//! Automatic calls: what the command line does with a function it meets where it wants a value.

use crate::{Machine, colored, place_of};
use firn_source::Pos;
use firn_value::{Attrs, AttrsBuilder, Error, ErrorKind, Result, Value};

impl Machine {
    /// Calls functions that take a set with the arguments of that name; everything else is itself.
    pub fn auto_call(&self, args: Attrs, value: Value) -> Result<Value> {
        let pos = place_of(value);
        let value = self.force(value, pos)?;
        if let Some(functor) = value.as_attrs().and_then(|set| set.get(self.names().functor)) {
            let result = self.call(functor, &[value], pos)?;
            return self.auto_call(args, result);
        }
        let Some(pattern) = self.formals(value) else {
            return Ok(value);
        };
        let mut given = AttrsBuilder::with_capacity(pattern.formals.len().max(args.len()));
        if pattern.ellipsis {
            args.iter().for_each(|(name, pos, cell)| given.push(name, pos, cell));
        } else {
            for formal in pattern.formals {
                match args.get_with_pos(formal.name) {
                    Some((cell, pos)) => given.push(formal.name, pos, cell),
                    None if formal.default.is_none() => {
                        return Err(without_value(formal.name, formal.pos));
                    }
                    None => {}
                }
            }
        }
        self.call(value, &[given.finish()], pos)
    }
}

fn without_value(name: firn_source::Symbol, pos: Pos) -> Box<Error> {
    let message = format!(
        "cannot evaluate a function that has an argument without a value ('{}')\n\
         Nix attempted to evaluate a function as a top level expression; in\n\
         this case it must have its arguments supplied either by default\n\
         values, or passed explicitly with '--arg' or '--argstr'. See\n\
         https://nix.dev/manual/nix/stable/language/syntax.html#functions.",
        colored(name)
    );
    Error::new(ErrorKind::MissingArgument, message).at(pos)
}
