//! Logs of a run in the formats of others.

pub mod ns2;
