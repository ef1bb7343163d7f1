//! Files and expressions: parse, lower, evaluate; each file once per process.

use crate::frame::{Frame, heap_slots};
use crate::machine::Imported;
use crate::times::{Doing, doing};
use crate::{Machine, Stats};
use firn_host::{AbsPath, Bindings as Guarded, Code, FileContent, Follow};
use firn_ir::Program;
use firn_memo::kept::{guards, labels};
use firn_source::diagnostics::{Diagnostic, Level};
use firn_source::{Measured, Origin, Pos, Reread, SourceFile, Symbol};
use firn_syntax::Unplaced;
use firn_value::{Attrs, Constants, Error, ErrorKind, Function, Guard, Production, Result, Stamp, Value};
use std::sync::Arc;

/// What a text is that may be a row of bindings.
#[derive(Debug)]
pub enum Bindings {
    /// One; the program gives the set of them.
    Set(&'static Program<Value>),
    /// The beginning of one.
    Incomplete,
    /// Something else.
    None,
}

impl Machine {
    /// The value of the file that a path means (a directory means its `default.nix`).
    pub fn import(&self, path: &AbsPath, pos: Pos) -> Result<Value> {
        let (resolved, real) = self.resolve_import(path)?;
        let known = self.shared.files.lock().unwrap_or_else(|e| e.into_inner()).get(resolved.as_bytes()).copied();
        let instances = &self.shared.memo.instances;
        let by = Production::current().stamp();
        if let Some(Imported { value, stamp, label }) = known {
            if stamp != Stamp::NONE {
                instances.import(stamp, by);
            }
            labels::take(label);
            return self.force(value, pos);
        }
        // A file's cells belong to no call, whoever imports it first.
        let file = if self.shared.memo.is_on() { instances.file() } else { Stamp::NONE };
        let (value, _, label) = self.in_instance(file, || self.eval_file(&resolved, real));
        let value = value.inspect_err(|_| self.see_import(path, &resolved))?;
        let stamp = self.file_of(value, file);
        if stamp != Stamp::NONE {
            instances.import(stamp, by);
        }
        let mut files = self.shared.files.lock().unwrap_or_else(|e| e.into_inner());
        Ok(files.entry(resolved.as_bytes().to_vec()).or_insert(Imported { value, stamp, label }).value)
    }

    /// The instance of a file's cells: none if its value has none. Calls of a function that is a file are remembered.
    fn file_of(&self, value: Value, file: Stamp) -> Stamp {
        if let Some(Function::Closure(closure)) = value.as_function() {
            closure.lambda().marks.remember();
        }
        match value.as_function() {
            Some(Function::Closure(closure)) if closure.captures().is_empty() => {}
            None if value.as_attrs().is_none() && value.as_list().is_none() => {}
            _ => return file,
        }
        self.shared.memo.instances.give_back(file);
        Stamp::NONE
    }

    /// The file that a path means and, the first time, where it really lies. That it is this one counts as seen with its content, or
    /// by [`Machine::see_import`].
    fn resolve_import(&self, path: &AbsPath) -> Result<(AbsPath, Option<AbsPath>)> {
        if let Some((known, label)) = self.shared.resolved.lock().unwrap_or_else(|e| e.into_inner()).get(path.as_bytes()) {
            labels::take(*label);
            return AbsPath::new(known).map(|resolved| (resolved, None)).map_err(|e| self.host_error(e));
        }
        let (found, label) = labels::within(|| doing(|| Doing::Input, || self.host().find_code(path)));
        let (resolved, real) = found.map_err(|e| self.host_error(e))?;
        let mut all = self.shared.resolved.lock().unwrap_or_else(|e| e.into_inner());
        all.insert(path.as_bytes().to_vec(), (resolved.as_bytes().into(), label));
        Ok((resolved, Some(real)))
    }

    /// What a path means was seen although nothing may have been read there.
    #[cold]
    fn see_import(&self, path: &AbsPath, resolved: &AbsPath) {
        // What these say was said before.
        let _ = self.host().resolve_expr_path(path);
        let _ = self.real(resolved);
    }

    fn eval_file(&self, path: &AbsPath, real: Option<AbsPath>) -> Result<Value> {
        Stats::bump(&self.stats.files);
        let program = self.load_at(path, real, &[])?;
        self.run(&program.body, &[]).map_err(|e| {
            let path = crate::color_bytes(path.as_bytes());
            e.trace(Pos::NONE, [b"while evaluating the file '", path.as_slice(), b"':"].concat())
        })
    }

    /// The value of a file evaluated with extra variables in scope (`scopedImport`).
    pub fn scoped_import(&self, scope: Attrs, path: &AbsPath) -> Result<Value> {
        let (resolved, real) = self.resolve_import(path)?;
        let names: Vec<Symbol> = scope.iter().map(|(name, _, _)| name).collect();
        let program = self.load_at(&resolved, real, &names).inspect_err(|_| self.see_import(path, &resolved))?;
        let cells: Vec<Value> = scope.iter().map(|(_, _, cell)| cell).collect();
        self.run_program(program, &cells)
    }

    /// Runs a program with the cells of its scope.
    pub fn run_program(&self, program: &'static Program<Value>, scope: &[Value]) -> Result<Value> {
        let locals = heap_slots(program.body.locals as usize);
        for (slot, &cell) in locals.iter().zip(scope) {
            slot.set(cell);
        }
        self.eval(&program.body.expr, Frame::new(&program.body, &locals, &[]))
    }

    /// Parses and lowers a file. The large set of it, if it has one, is seen name by name.
    pub fn load(&self, path: &AbsPath, scope: &[Symbol]) -> Result<&'static Program<Value>> {
        self.load_at(path, None, scope)
    }

    /// The same; it lies at `real`, if that is known.
    fn load_at(&self, path: &AbsPath, real: Option<AbsPath>, scope: &[Symbol]) -> Result<&'static Program<Value>> {
        let real = real.map_or_else(|| self.real(path), Ok)?;
        let read = doing(|| Doing::Input, || self.host().read_bindings(&real)).map_err(|e| self.host_error(e))?;
        let Code { content, bindings, tree, measured } = read;
        let kept = self.kept_code().filter(|_| scope.is_empty()).map(|kept| (kept, content.digest()));
        if let Some(program) = kept.and_then(|(kept, digest)| kept.find(path, digest)) {
            return Ok(program);
        }
        let sample = if scope.is_empty() { self.sample_of(content.bytes()) } else { None };
        let copied = sample.and_then(|sample| self.copied(path, &real, &content, bindings, sample));
        let (program, is_quiet) = match copied {
            Some(program) => (program, true),
            None => {
                let (file, base) = self.register(path, real, content, measured);
                self.compile_once(file, (&base, scope), bindings, tree, sample)?
            }
        };
        if let Some((kept, digest)) = kept.filter(|_| is_quiet) {
            kept.keep(path, digest, program);
        }
        Ok(program)
    }

    /// Registers the text of a file, and the directory that its relative paths start from.
    ///
    /// NIX: links are followed for the bytes only; relative paths and positions go by the path as imported.
    pub fn source(&self, path: &AbsPath) -> Result<(&'static SourceFile, AbsPath)> {
        let (real, content) = self.read_source(path)?;
        Ok(self.register(path, real, content, None))
    }

    /// The bytes that a path means, and where they lie.
    fn read_source(&self, path: &AbsPath) -> Result<(AbsPath, FileContent)> {
        let real = self.real(path)?;
        let content = doing(|| Doing::Input, || self.host().read_code(&real)).map_err(|e| self.host_error(e))?;
        Ok((real, content))
    }

    pub(crate) fn real(&self, path: &AbsPath) -> Result<AbsPath> {
        self.host().resolve_symlinks(path, Follow::Full).map_err(|e| self.host_error(e))
    }

    fn register(&self, path: &AbsPath, real: AbsPath, content: FileContent, measured: Option<Measured>) -> (&'static SourceFile, AbsPath) {
        let (origin, reread, base) = self.origin(path, real);
        (SourceFile::register_read(origin, content.shared(), measured, reread), base)
    }

    /// Where a text comes from, how it is read again, and where its relative paths start.
    pub(crate) fn origin(&self, path: &AbsPath, real: AbsPath) -> (Origin, Reread, AbsPath) {
        let host = self.shared.host.clone();
        let reread = move || host.read_once(&real).ok().map(FileContent::into_bytes);
        (Origin::File(path.as_bytes().to_vec()), Box::new(reread), path.parent().unwrap_or_else(AbsPath::root))
    }

    /// Parses and lowers a registered text; relative paths in it are relative to `base`.
    pub fn compile(&self, file: &'static SourceFile, base: &AbsPath, scope: &[Symbol]) -> Result<&'static Program<Value>> {
        let sample = if scope.is_empty() { file.text().and_then(|text| self.sample_of(&text)) } else { None };
        self.compile_once(file, (base, scope), None, None, sample).map(|(program, _)| program)
    }

    /// The code, and whether nothing was said about the text.
    fn compile_once(
        &self,
        file: &'static SourceFile,
        (base, scope): (&AbsPath, &[Symbol]),
        bindings: Option<Guarded>,
        tree: Option<Unplaced>,
        sample: Option<u64>,
    ) -> Result<(&'static Program<Value>, bool)> {
        Stats::bump(&self.stats.parsed);
        let see_all = || bindings.into_iter().for_each(|bindings| guards::see_all(Guard(bindings.guard)));
        // What fails may fail because of any of them.
        let mut ast = self.parse_unless(tree, file, base).inspect_err(|_| see_all())?;
        let is_quiet = ast.warnings().is_empty();
        self.watch(file, &mut ast, bindings.is_none() && scope.is_empty());
        // A warning is told whoever looks at what.
        let is_guarded = is_quiet && bindings.is_none_or(|bindings| ast.guard(bindings.start, bindings.guard));
        if !is_guarded {
            see_all();
        }
        let twin = sample.filter(|_| is_guarded).and_then(|sample| Some((sample, self.traits_of(&ast, bindings.is_some())?)));
        let program = self.lowered(ast, scope);
        if let (Ok(program), Some((sample, traits))) = (&program, twin) {
            self.seek_twins(sample, file, program, traits);
        }
        file.release();
        Ok((program.inspect_err(|_| see_all())?, is_quiet))
    }

    /// Fails if a name in the text has no meaning.
    pub fn check_names(&self, ast: &firn_syntax::Ast) -> Result<()> {
        firn_ir::check_names(ast, &*self.shared).map_err(|e| Error::new(ErrorKind::UndefinedVar, e.message).at(e.pos))
    }

    /// Lowers a tree whose variables may be those of `scope`.
    pub fn lowered(&self, ast: firn_syntax::Ast, scope: &[Symbol]) -> Result<&'static Program<Value>> {
        let ast = Arc::new(ast.compact());
        let program = Stats::time(&self.stats.lower_time, Doing::Lower, || firn_ir::lower(&ast, scope, &*self.shared, &mut Constants))
            .map_err(|e| Error::new(ErrorKind::UndefinedVar, e.message).at(e.pos));
        // Otherwise code that is not made yet has it.
        if let Some(ast) = Arc::into_inner(ast) {
            ast.recycle();
        }
        program
    }

    /// Parses a registered text.
    pub fn parse(&self, file: &'static SourceFile, base: &AbsPath) -> Result<firn_syntax::Ast> {
        self.parse_unless(None, file, base)
    }

    /// As [`Machine::parse`], of a text that may have been parsed before: then nothing is to be said of it.
    fn parse_unless(&self, tree: Option<Unplaced>, file: &'static SourceFile, base: &AbsPath) -> Result<firn_syntax::Ast> {
        let syntax = self.settings().syntax;
        let text = file.text();
        let text = text.as_ref().map_or(&[][..], |text| &text[..]);
        let is_watched = self.is_watched(file);
        let parse = if is_watched { firn_syntax::parse_noting_leaves } else { firn_syntax::parse };
        let parse = || match tree.filter(|_| !is_watched) {
            Some(tree) => {
                Stats::bump(&self.stats.files_prepared);
                Ok(tree.place(file, base.as_bytes()))
            }
            None => self.at_home(text, |home| parse(file, base.as_bytes(), home, syntax)),
        };
        let ast = Stats::time(&self.stats.parse_time, Doing::Parse, parse);
        let ast = ast.map_err(|e| Error::new(ErrorKind::Parse, e.message.clone()).at(e.pos))?;
        self.note_places(|each| ast.each_path_beyond(each), base, text);
        self.warn_of(&ast)?;
        Ok(ast)
    }

    /// As [`Machine::parse`]; none where something is to be said of the text, be it an error or a warning.
    pub fn parse_unsaid(&self, file: &'static SourceFile, base: &AbsPath) -> Option<firn_syntax::Ast> {
        let text = file.text()?;
        let ast = self.at_home(&text, |home| firn_syntax::parse(file, base.as_bytes(), home, self.settings().syntax)).ok()?;
        ast.warnings().is_empty().then_some(ast)
    }

    /// Reads a registered text as a row of bindings over `scope`; `closed` reads it as if a semicolon followed.
    pub fn bindings(&self, file: &'static SourceFile, base: &AbsPath, scope: &[Symbol], closed: bool) -> Result<Bindings> {
        let syntax = self.settings().syntax;
        let text = file.text();
        let text = text.as_ref().map_or(&[][..], |text| &text[..]);
        match self.at_home(text, |home| firn_syntax::parse_bindings(file, base.as_bytes(), home, syntax, closed)) {
            Ok(ast) => {
                self.note_places(|each| ast.each_path_beyond(each), base, text);
                self.warn_of(&ast)?;
                self.lowered(ast, scope).map(Bindings::Set)
            }
            Err(firn_syntax::NoBindings::Incomplete) => Ok(Bindings::Incomplete),
            Err(firn_syntax::NoBindings::Other(_)) => Ok(Bindings::None),
        }
    }

    /// What `~` stands for while something is parsed.
    fn at_home<T, E>(
        &self,
        text: &[u8],
        parse: impl Fn(firn_syntax::Home<'_>) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        // What reads the same where nobody is at home does not name it: then it is not observed.
        if self.host().notes_places() {
            let without = parse(firn_syntax::Home::Pure);
            if without.is_ok() || !Machine::may_name_home(text) {
                return without;
            }
        }
        let home = self.host().home();
        parse(match &home {
            _ if self.settings().pure_eval => firn_syntax::Home::Pure,
            Ok(dir) => firn_syntax::Home::Dir(dir),
            Err(_) => firn_syntax::Home::Dir(b"/homeless-shelter"),
        })
    }

    fn warn_of(&self, ast: &firn_syntax::Ast) -> Result<()> {
        for warning in ast.warnings() {
            let diagnostic = Diagnostic { pos: warning.pos, ..Diagnostic::message(Level::Warning, &warning.message) };
            // NIX: only warnings that name a place have their lines aligned.
            let text = if warning.pos.is_some() { diagnostic.render(false) } else { diagnostic.unaligned() };
            self.log(&[text.as_slice(), b"\n"].concat())?;
        }
        Ok(())
    }

    /// The value of an expression given as text.
    pub fn eval_text(&self, text: &[u8], origin: Origin, base: &AbsPath) -> Result<Value> {
        let file = SourceFile::register(origin, text.to_vec());
        let program = self.compile(file, base, &[])?;
        self.in_instance(Stamp::NONE, || self.run(&program.body, &[])).0
    }
}
