//! Text to typed values, and errors a person can act on.
//!
//! A [`Document`] is a TOML text with the place of every value and the
//! overrides of the command line applied, and what it [`extends`] merged in. A [`Section`] reads one of its tables:
//! it refuses unknown keys and turns text with units ([`quantity`]) into typed values, and writes
//! every [`Problem`] it meets into a [`Report`] instead of stopping at the first.
//! [`mechanism`] reads what a marker or discipline declares about its own parameters;
//! [`named`] reads a mechanism by its name in the registry; [`schema`] and [`show`] print the same declarations.
//!
//! Non-goal: knowing what an experiment is. The rest of the crate does.

pub mod csv;
pub mod document;
pub mod extends;
pub mod file;
pub mod mechanism;
pub mod named;
pub mod nearest;
mod overrides;
pub mod problem;
pub mod quantity;
pub mod report;
pub mod schema;
pub mod section;
pub mod show;
pub mod tree;
mod written;

pub use document::Document;
pub use problem::{Problem, Severity};
pub use report::{Location, Report};
pub use section::{Entry, Section};
