//! The fuzz targets of the experiment file and of TCP's receiver, on a stable compiler.

#[path = "../../../fuzz/fuzz_targets/receiver.rs"]
mod receiver;
#[path = "../../../fuzz/fuzz_targets/scenario.rs"]
mod scenario;
#[path = "../../../fuzz/seeded.rs"]
mod seeded;

use inprofile_core::registry::Registry;
use inprofile_core::rng::Rng;
use seeded::{cases, run};

#[test]
fn any_experiment_file() {
    let registry = Registry::default();
    run("scenario", |bytes| scenario::run(bytes, &registry));
}

#[test]
fn any_segments() {
    run("receiver", receiver::run);
    let mut rng = Rng::for_component(cases(), "segments");
    for _ in 0..cases() {
        let bytes: Vec<u8> = (0..rng.below(300)).map(|_| rng.below(256) as u8).collect();
        receiver::run(&bytes);
    }
}
