//! The text of syntax errors: `syntax error, unexpected X, expecting Y or Z`.
//!
//! Nix's parser is made by bison, and which tokens its message names depends on the LALR(1) tables (default
//! reductions come before the error is seen). The hand-written parser has no such tables, so the first syntax error of
//! a process builds the automaton of the same grammar, by bison's rules, and each error replays its tokens through it.
//!
//! 1. [`grammar`]: the rules, in Nix's order. 2. [`lr0`]: states. 3. [`lookahead`]: which tokens may follow a
//! reduction. 4. [`tables`]: precedence settles conflicts, the commonest reduction of a state becomes its default.

mod grammar;
mod lookahead;
mod lr0;
mod tables;

use crate::token::{Kind, Token};
use std::sync::LazyLock;
use tables::Tables;

static TABLES: LazyLock<Tables> = LazyLock::new(Tables::build);

/// Finds the first token that does not fit, and says so. The caller has found that there is one.
#[cold]
pub(crate) fn syntax_error(tokens: &[Token]) -> (usize, String) {
    let tables = &*TABLES;
    let mut stack = vec![0u16];
    let mut at = 0;
    loop {
        let state = *stack.last().unwrap_or(&0);
        let kind = tokens[at].kind;
        if kind == Kind::Failed {
            return (at, message(tables, state, kind));
        }
        match tables.action(state, kind) {
            tables::Action::Shift(next) => {
                stack.push(next);
                if at + 1 < tokens.len() {
                    at += 1;
                } else {
                    return (at, message(tables, state, kind));
                }
            }
            tables::Action::Reduce(rule) => {
                let (left, len) = tables.rule(rule);
                stack.truncate(stack.len() - len);
                let below = *stack.last().unwrap_or(&0);
                stack.push(tables.goto(below, left));
            }
            tables::Action::Error => return (at, message(tables, state, kind)),
        }
    }
}

fn message(tables: &Tables, state: u16, found: Kind) -> String {
    /// NIX: bison names no expected token when there are more than this many.
    const MOST: usize = 4;
    let name = |kind: Kind| Kind::NAMES.get(kind as usize).copied().unwrap_or("invalid token");
    let mut text = format!("syntax error, unexpected {}", name(found));
    let expected = tables.expected(state);
    if expected.len() <= MOST {
        for (i, kind) in expected.iter().enumerate() {
            text.push_str(if i == 0 { ", expecting " } else { " or " });
            text.push_str(name(*kind));
        }
    }
    text
}
