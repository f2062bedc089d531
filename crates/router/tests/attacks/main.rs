//! Attempts to cheat the meter, the queues and the shaper: what a customer may send, and what comes of it.

mod bench;
mod circuits;
mod classes;
mod frames;
mod generate;
mod long_run;
mod meter;
mod mutated;
mod oracle;
mod search;
mod table;
