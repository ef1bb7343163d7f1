//! Tokens: what the lexer hands to the parser and to the syntax-error automaton.
//!
//! Invariant: the order of [`Kind`] is the order in which Nix's grammar first mentions its terminals, because the
//! `expecting …` part of a syntax error lists them in that order.

/// The terminals of the grammar.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    Eof,
    Invalid,
    Id,
    Str,
    IndStr,
    Int,
    Float,
    Path,
    HPath,
    SPath,
    PathEnd,
    Uri,
    If,
    Then,
    Else,
    Assert,
    With,
    Let,
    In,
    Rec,
    Inherit,
    Eq,
    NEq,
    LEq,
    GEq,
    Update,
    Concat,
    And,
    Or,
    Impl,
    OrKw,
    PipeFrom,
    PipeInto,
    DollarCurly,
    IndOpen,
    IndClose,
    Ellipsis,
    Less,
    Greater,
    Plus,
    Minus,
    Star,
    Slash,
    Question,
    Colon,
    At,
    Semicolon,
    Bang,
    Dot,
    Quote,
    LParen,
    RParen,
    LBrace,
    RBrace,
    LBracket,
    RBracket,
    Assign,
    Comma,
    /// Not a terminal: the lexer failed here, with the error kept beside the tokens.
    Failed,
}

/// How many terminals there are, [`Kind::Failed`] excluded.
pub(crate) const TERMINALS: usize = Kind::Failed as usize;

impl Kind {
    /// Every terminal, by number.
    #[rustfmt::skip]
    pub(crate) const ALL: [Kind; TERMINALS] = {
        use Kind::*;
        [
            Eof, Invalid, Id, Str, IndStr, Int, Float, Path, HPath, SPath, PathEnd, Uri, If, Then, Else, Assert, With,
            Let, In, Rec, Inherit, Eq, NEq, LEq, GEq, Update, Concat, And, Or, Impl, OrKw, PipeFrom, PipeInto,
            DollarCurly, IndOpen, IndClose, Ellipsis, Less, Greater, Plus, Minus, Star, Slash, Question, Colon, At,
            Semicolon, Bang, Dot, Quote, LParen, RParen, LBrace, RBrace, LBracket, RBracket, Assign, Comma,
        ]
    };

    /// The terminal's name in syntax errors.
    #[rustfmt::skip]
    pub(crate) const NAMES: [&'static str; TERMINALS] = [
        "end of file", "invalid token", "identifier", "string", "indented string", "integer",
        "floating-point literal", "path", "'~/…' path", "'<…>' path", "end of path", "URI", "'if'", "'then'", "'else'",
        "'assert'", "'with'", "'let'", "'in'", "'rec'", "'inherit'", "'=='", "'!='", "'<='", "'>='", "'//'", "'++'",
        "'&&'", "'||'", "'->'", "'or'", "'<|'", "'|>'", "'${'", "start of an indented string",
        "end of an indented string", "'...'", "'<'", "'>'", "'+'", "'-'", "'*'", "'/'", "'?'", "':'", "'@'", "';'",
        "'!'", "'.'", "'\"'", "'('", "')'", "'{'", "'}'", "'['", "']'", "'='", "','",
    ];

    /// Whether an operand (and so a further argument of a call, or an element of a list) can start with this token.
    #[inline]
    pub(crate) fn starts_operand(self) -> bool {
        const SET: u64 = bit(Kind::Id)
            | bit(Kind::Int)
            | bit(Kind::Float)
            | bit(Kind::Quote)
            | bit(Kind::IndOpen)
            | bit(Kind::Path)
            | bit(Kind::HPath)
            | bit(Kind::SPath)
            | bit(Kind::Uri)
            | bit(Kind::LParen)
            | bit(Kind::Let)
            | bit(Kind::Rec)
            | bit(Kind::LBrace)
            | bit(Kind::LBracket);
        SET >> (self as u8) & 1 != 0
    }

    /// Whether an expression that this token follows is complete.
    #[inline]
    pub(crate) fn ends_expr(self) -> bool {
        matches!(self, Kind::Semicolon | Kind::RParen | Kind::RBrace | Kind::Comma)
    }
}

const fn bit(kind: Kind) -> u64 {
    1 << kind as u8
}

/// How the text of a string token becomes the string.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Form {
    /// As it stands in the source. In an indented string, its lines take part in the indentation.
    Verbatim,
    /// With backslash escapes and carriage returns to undo.
    Escaped,
    /// `$`, from `''$` or a lone dollar.
    Dollar,
    /// `''`, from `'''`.
    TwoQuotes,
    /// `'`.
    OneQuote,
}

/// A token and its stretch of the source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub start: u32,
    pub end: u32,
    pub kind: Kind,
    pub form: Form,
}

const _: () = assert!(std::mem::size_of::<Token>() == 12);
