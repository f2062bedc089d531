//! Runs in the ns-2 profile against traces of ns-2 itself.
//!
//! `crates/sim/tests/golden/*.txt` hold, for a scenario, how many lines ns-2 2.35 wrote and their checksum,
//! without the column of flags. With `NS2_TRACES` set to a folder of whole traces (`*.tr`, that column
//! cut out), the first line that differs is shown.

mod support;

use support::{Dumbbell, Queue, compare};

#[test]
fn drop_tail_two_reno_flows() {
    compare("golden-droptail", &Dumbbell { queue: Queue::DropTail, limit: 10.0 });
}

#[test]
fn red_two_reno_flows() {
    compare("golden-red", &Dumbbell { queue: Queue::Red { min: 5.0, max: 15.0, p: 0.02 }, limit: 25.0 });
}
