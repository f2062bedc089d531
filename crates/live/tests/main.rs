//! The tests of the crate from outside, in one program, a file for each subject.

mod capture;
mod drivers;
mod emulate;
mod flow_numbers;
mod packets;
mod stage;
mod support;
