//! `JobLine`: what is printed for a job. A line that is remembered is printed as it was, and taken apart only where somebody looks into it.

use firn_text::json::Tree;
use std::borrow::Cow;

/// The line of a job.
#[derive(Clone, Debug)]
pub(super) enum JobLine {
    /// It was just made.
    Made(Tree),
    /// Its text, as this program printed it.
    // PERF: reading lines and printing them again took a tenth of an unchanged run.
    Printed(Vec<u8>),
}

impl JobLine {
    /// The line taken apart; null if a text is none.
    pub fn tree(&self) -> Cow<'_, Tree> {
        match self {
            JobLine::Made(tree) => Cow::Borrowed(tree),
            JobLine::Printed(text) => Cow::Owned(Tree::parse(text).unwrap_or(Tree::Null)),
        }
    }

    /// The text.
    pub fn text(&self) -> Result<Cow<'_, [u8]>, String> {
        match self {
            JobLine::Made(tree) => tree.print(None).map(Cow::Owned),
            JobLine::Printed(text) => Ok(Cow::Borrowed(text)),
        }
    }

    /// The derivation that it is about.
    pub fn drv_path(&self) -> Option<Vec<u8>> {
        self.tree().get("drvPath").and_then(Tree::as_text).map(|path| path.as_bytes().to_vec())
    }
}
