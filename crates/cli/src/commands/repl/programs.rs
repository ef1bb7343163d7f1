//! What the REPL leaves to other programs: building, shells, editors, logs.
#![allow(clippy::disallowed_methods, reason = "the user asks for these programs by name")]

use super::Repl;
use crate::failure::Failure;
use crate::stores::failed;
use firn_eval::{Coercion, colored};
use firn_host::Host;
use firn_source::{Origin, Pos, Symbol};
use firn_store::context::Built;
use firn_store::path::StorePath;
use firn_value::{Function, Value};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::Command;

impl Repl<'_> {
    /// The derivation that a value is, written to the store.
    pub fn derivation(&self, value: Value) -> Result<StorePath, Failure> {
        let machine = &self.session.machine;
        let set = match value.as_attrs() {
            Some(set) if machine.is_derivation(set)? => set,
            _ => return Err(Failure::error("expression does not evaluate to a derivation, so I can't build it")),
        };
        let Some((cell, pos)) = set.get_with_pos(machine.names().drv_path) else {
            let message = "expression did not evaluate to a valid derivation (no 'drvPath' attribute)";
            return Err(Failure::error(message));
        };
        let context = "while evaluating the 'drvPath' attribute of a derivation";
        let (path, _) = machine.coerce_to_path(cell, pos, context)?;
        let path = machine.store_dir().parse(path.as_bytes()).map_err(failed)?;
        if !self.session.store.is_valid(&path).map_err(failed)? {
            let shown = colored(String::from_utf8_lossy(&machine.store_dir().print(&path)).into_owned());
            return Err(Failure::error(format!("expression evaluated to invalid derivation '{shown}'")));
        }
        self.session.store.settle(&path).map_err(failed)?;
        Ok(path)
    }

    /// `:b`, `:bl`.
    pub fn build(&mut self, text: &str, roots: bool) -> Result<(), Failure> {
        let path = self.derivation(self.value(text)?)?;
        let machine = &self.session.machine;
        let outputs = firn_builtins::derivation_at(machine, &path)?.outputs;
        let wanted: Vec<Built> = outputs.keys().map(|name| Built::new(path.clone(), name.clone())).collect();
        let built = self.session.store.build(&wanted).map_err(failed)?;
        let mut shown = "\nThis derivation produced the following outputs:\n".to_owned();
        for (built, path) in wanted.iter().zip(&built) {
            let name = String::from_utf8_lossy(&built.output).into_owned();
            let place = String::from_utf8_lossy(&machine.store_dir().print(path)).into_owned();
            if roots {
                let link = format!("repl-result-{name}");
                let root = self.session.here()?.join(link.as_bytes()).map_err(crate::settings::host_failure)?;
                self.session.store.add_root(path, &root).map_err(failed)?;
                shown += &format!("  ./{link} -> {place}\n");
            } else {
                shown += &format!("  {name} -> {place}\n");
            }
        }
        self.tell(&shown)
    }

    /// Runs one of Nix's programs on the derivation that an expression gives.
    pub fn run_nix(&self, program: &str, before: &[&str], value: Value) -> Result<(), Failure> {
        let path = self.derivation(value)?;
        let printed = self.session.machine.store_dir().print(&path);
        let mut command = Command::new(program);
        command.args(before).arg(OsStr::from_bytes(&printed));
        run(command, program)
    }

    /// `:e`: opens the file where something is defined. Whether a file that was loaded may have changed.
    pub fn edit(&self, text: &str) -> Result<(), Failure> {
        let (file, line) = self.place(self.value(text)?, text)?;
        let editor = self.invocation.host.env(b"EDITOR").map_or_else(|| b"cat".to_vec(), |editor| editor.to_vec());
        let mut words = editor.split(|&b| b == b' ').filter(|word| !word.is_empty());
        let program = OsString::from_vec(words.next().unwrap_or(b"cat").to_vec());
        let mut command = Command::new(&program);
        command.args(words.map(OsStr::from_bytes));
        let knows_lines = ["emacs", "nano", "vim", "kak"].iter().any(|name| program.to_string_lossy().contains(name));
        if line > 0 && knows_lines {
            command.arg(format!("+{line}"));
        }
        command.arg(OsStr::from_bytes(&file));
        run(command, &program.to_string_lossy())
    }

    fn place(&self, value: Value, text: &str) -> Result<(Vec<u8>, u32), Failure> {
        let machine = &self.session.machine;
        if value.as_path().is_some() || value.as_str().is_some() {
            let string = machine.coerce_to_string(value, Pos::NONE, "while evaluating the filename to edit", Coercion::PLAIN)?;
            return Ok((string.as_str().map_or_else(Vec::new, |s| s.bytes().to_vec()), 0));
        }
        if let Some(Function::Closure(closure)) = value.as_function() {
            let pos = closure.lambda().pos_at(0);
            if let Some(at) = pos.resolve()
                && let Origin::File(path) = at.file.origin()
            {
                return Ok((path.clone(), at.line));
            }
            return Err(Failure::error(format!("'{}' cannot be shown in an editor", colored(text))));
        }
        let lacks = || Failure::error(format!("cannot find position information for '{}'", colored(text)));
        let set = value.as_attrs().ok_or_else(lacks)?;
        let get = |set: firn_value::Attrs, name: &str| set.get_with_pos(Symbol::from(name));
        let (meta, pos) = get(set, "meta").ok_or_else(lacks)?;
        let meta = machine.force_attrs(meta, pos, "while looking for a position")?;
        let (position, pos) = get(meta, "position").ok_or_else(lacks)?;
        let position = machine.force_string(position, pos, "while looking for a position")?.bytes();
        let colon = position.iter().rposition(|&b| b == b':').ok_or_else(lacks)?;
        let line = std::str::from_utf8(&position[colon + 1..]).ok().and_then(|line| line.parse().ok()).ok_or_else(lacks)?;
        Ok((position[..colon].to_vec(), line))
    }
}

fn run(mut command: Command, name: &str) -> Result<(), Failure> {
    let told = |why: String| Failure::error(format!("running '{}': {why}", colored(name)));
    let status = command.status().map_err(|error| told(firn_host::Errno::from(error).to_string()))?;
    if status.success() { Ok(()) } else { Err(told(status.to_string())) }
}
