//! The rules of the house, by what they look at.

mod docs;
mod files;
mod rooms;
mod tree;
