//! The rules of the house, by what they look at.

mod docs;
mod files;
mod profile;
mod rooms;
mod tree;
