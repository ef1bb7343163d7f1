//! The grammar as data: rules and precedences, for the automaton only.

use crate::token::{Kind, TERMINALS};

/// A terminal (below [`FIRST_NONTERMINAL`]) or a nonterminal.
pub(super) type Sym = u8;

/// The terminal that only Nix's REPL produces; it takes part in the grammar but never in a text.
pub(super) const REPL: Sym = TERMINALS as Sym;
pub(super) const FIRST_NONTERMINAL: Sym = REPL + 1;

/// Terminals by the names of [`Kind`], nonterminals in lower case, `%X` the precedence of a rule that differs from
/// that of its last terminal. The first rule is the one that bison adds.
const RULES: &str = "
accept: start Eof
start: expr | REPL binds1
expr: function
function: Id Colon function
  | formal_set Colon function
  | formal_set At Id Colon function
  | Id At formal_set Colon function
  | Assert expr Semicolon function
  | With expr Semicolon function
  | Let binds In function
  | conditional
conditional: If expr Then expr Else expr | pipe_from | pipe_into | op
pipe_from: op PipeFrom pipe_from | op PipeFrom op
pipe_into: pipe_into PipeInto op | op PipeInto op
op: Bang op %NOT
  | Minus op %NEGATE
  | op Eq op | op NEq op
  | op Less op | op LEq op | op Greater op | op GEq op
  | op And op | op Or op | op Impl op | op Update op
  | op Question attrpath
  | op Plus op | op Minus op | op Star op | op Slash op
  | op Concat op
  | app
app: app select | select
select: simple Dot attrpath
  | simple Dot attrpath OrKw select
  | simple OrKw
  | simple
simple: Id | Int | Float
  | Quote string_parts Quote
  | IndOpen ind_parts IndClose
  | path_start PathEnd
  | path_start interpolated PathEnd
  | SPath | Uri
  | LParen expr RParen
  | Let LBrace binds RBrace
  | Rec LBrace binds RBrace
  | LBrace binds1 RBrace
  | LBrace RBrace
  | LBracket list RBracket
string_parts: Str | interpolated | 
interpolated: interpolated Str
  | interpolated DollarCurly expr RBrace
  | DollarCurly expr RBrace
  | Str DollarCurly expr RBrace
path_start: Path | HPath
ind_parts: ind_parts IndStr | ind_parts DollarCurly expr RBrace | 
binds: binds1 | 
binds1: binds1 attrpath Assign expr Semicolon
  | binds Inherit attrs Semicolon
  | binds Inherit LParen expr RParen attrs Semicolon
  | attrpath Assign expr Semicolon
attrs: attrs attr | attrs string_attr | 
attrpath: attrpath Dot attr | attrpath Dot string_attr | attr | string_attr
attr: Id | OrKw
string_attr: Quote string_parts Quote | DollarCurly expr RBrace
list: list select | 
formal_set: LBrace formals Comma Ellipsis RBrace
  | LBrace Ellipsis RBrace
  | LBrace formals Comma RBrace
  | LBrace formals RBrace
  | LBrace RBrace
formals: formals Comma formal | formal
formal: Id | Id Question expr
";

/// How operators of one precedence group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Assoc {
    Left,
    Right,
    None,
}

/// Precedence levels, the weakest first.
const LEVELS: [(Assoc, &[Kind]); 12] = [
    (Assoc::Right, &[Kind::Impl]),
    (Assoc::Left, &[Kind::Or]),
    (Assoc::Left, &[Kind::And]),
    (Assoc::None, &[Kind::Eq, Kind::NEq]),
    (Assoc::None, &[Kind::Less, Kind::Greater, Kind::LEq, Kind::GEq]),
    (Assoc::Right, &[Kind::Update]),
    (Assoc::Left, &[]), // NOT
    (Assoc::Left, &[Kind::Plus, Kind::Minus]),
    (Assoc::Left, &[Kind::Star, Kind::Slash]),
    (Assoc::Right, &[Kind::Concat]),
    (Assoc::None, &[Kind::Question]),
    (Assoc::None, &[]), // NEGATE
];
const NOT: usize = 7;
const NEGATE: usize = 12;

/// Precedence (0 for none) and grouping of a terminal.
pub(super) fn precedence(terminal: Sym) -> (usize, Assoc) {
    let level = LEVELS.iter().position(|(_, kinds)| kinds.iter().any(|&k| k as Sym == terminal));
    level.map_or((0, Assoc::None), |i| (i + 1, LEVELS[i].0))
}

/// A rule of the grammar.
pub(super) struct Rule {
    pub left: Sym,
    pub right: Vec<Sym>,
    pub precedence: usize,
}

pub(super) struct Grammar {
    pub rules: Vec<Rule>,
    /// How many symbols of both kinds there are.
    pub symbols: usize,
    /// Whether a symbol can stand for nothing.
    pub nullable: Vec<bool>,
}

impl Grammar {
    pub(super) fn read() -> Grammar {
        let mut names: Vec<&str> = Vec::new();
        let mut rules = Vec::new();
        let mut left = 0;
        for line in RULES.lines().filter(|line| !line.is_empty()) {
            let mut rest = line;
            if !line.starts_with(' ') {
                let (name, after) = line.split_once(':').unwrap_or((line, ""));
                left = symbol(name, &mut names);
                rest = after;
            }
            let rest = rest.strip_prefix("  |").unwrap_or(rest);
            for alternative in rest.split('|') {
                rules.push(rule(left, alternative, &mut names));
            }
        }
        let symbols = FIRST_NONTERMINAL as usize + names.len();
        let mut nullable = vec![false; symbols];
        while let Some(rule) =
            rules.iter().find(|r| !nullable[r.left as usize] && r.right.iter().all(|&s| nullable[s as usize]))
        {
            nullable[rule.left as usize] = true;
        }
        Grammar { rules, symbols, nullable }
    }
}

fn rule<'a>(left: Sym, text: &'a str, names: &mut Vec<&'a str>) -> Rule {
    let mut right = Vec::new();
    let mut given = None;
    for word in text.split_whitespace() {
        match word {
            "%NOT" => given = Some(NOT),
            "%NEGATE" => given = Some(NEGATE),
            _ => right.push(symbol(word, names)),
        }
    }
    let last = right.iter().rev().find(|&&s| s < FIRST_NONTERMINAL);
    let precedence = given.unwrap_or_else(|| last.map_or(0, |&t| precedence(t).0));
    Rule { left, right, precedence }
}

fn symbol<'a>(name: &'a str, names: &mut Vec<&'a str>) -> Sym {
    if name == "REPL" {
        return REPL;
    }
    if let Some(kind) = Kind::ALL.iter().find(|k| format!("{k:?}") == name) {
        return *kind as Sym;
    }
    let index = names.iter().position(|n| *n == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    });
    FIRST_NONTERMINAL + index as Sym
}
