//! A packet-level simulator in virtual time: takes a [`network`], returns an [`outcome`].
//!
//! [`engine::run`] takes events from the [`calendar`] and hands them to the [`world`], where packets pass
//! markers, queues and [`link`]s, and to [`tcp`] senders and receivers. It is generic over its
//! [`clock`]: whole picoseconds, or ns-2's doubles with ns-2's order of events.

pub mod access;
pub mod account;
mod agenda;
pub mod calendar;
pub mod capacity;
pub mod classes;
pub mod clock;
pub mod drops;
pub mod ends;
pub mod engine;
pub mod event;
pub mod flow;
pub mod flow_control;
pub mod link;
mod link_queue;
pub mod marker_points;
pub mod measure;
pub mod monitor;
pub mod network;
pub mod ns2;
pub mod outcome;
pub mod packet;
pub mod parts;
pub mod path;
mod plan;
pub mod record;
pub mod route;
pub mod run_log;
pub mod senders;
pub mod signals;
pub mod stage;
pub mod tcp;
pub mod timer;
pub mod trace;
pub mod traffic;
pub mod view;
mod window_counts;
pub mod wire;
pub mod world;
