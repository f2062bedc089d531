//! The tests of the crate in one program: our own mechanisms, and those that a new crate starts with.

mod parity;
mod template;
