//! The tests of the crate from outside, in one program, a file for each subject.

mod parity;
mod service;
mod support;
mod tcp;
mod windows;
