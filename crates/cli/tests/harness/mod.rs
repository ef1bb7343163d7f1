//! What the proof tests share: finding and running the tools, the corpus format, outcomes and their comparison.
//! Each test binary of this directory includes this module and uses a part of it.
#![allow(dead_code, reason = "every test binary compiles the whole harness and uses a part")]

pub mod compare;
pub mod corpus;
pub mod outcome;
pub mod parallel;
pub mod text;
pub mod tool;
