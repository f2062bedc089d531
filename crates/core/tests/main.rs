//! The tests of the crate from outside, in one program.

mod meters;
mod ns2;
mod ns2_queues;
