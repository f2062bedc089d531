//! The bodies of the fuzz targets on a stable compiler: their seeds, and those changed at random, INPROFILE_CASES times.

#[path = "../../../fuzz/bodies/receiver.rs"]
mod receiver;
#[path = "../../../fuzz/bodies/scenario.rs"]
mod scenario;

use std::path::Path;

use inprofile_core::registry::Registry;
use inprofile_core::rng::Rng;

fn cases() -> u64 {
    match std::env::var("INPROFILE_CASES") {
        Ok(text) => text.parse().expect("INPROFILE_CASES is a number"),
        Err(_) => 1000,
    }
}

fn seeds(of: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(of);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 2, "no seeds for {of}");
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// Some bytes changed, put in, taken out, repeated, or followed by part of another seed.
fn changed(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let any = |n: usize, rng: &mut Rng| rng.below(n.max(1) as u32) as usize;
    let mut bytes = seeds[any(seeds.len(), rng)].clone();
    for _ in 0..1 + rng.below(8) {
        let at = any(bytes.len(), rng).min(bytes.len());
        let byte = rng.below(256) as u8;
        match rng.below(5) {
            0 if at < bytes.len() => bytes[at] = byte,
            1 if at < bytes.len() => {
                bytes.remove(at);
            }
            2 => {
                let to = (at + any(80, rng)).min(bytes.len());
                let part = bytes[at..to].to_vec();
                bytes.splice(at..at, part);
            }
            3 => {
                let other = &seeds[any(seeds.len(), rng)];
                bytes.truncate(at);
                bytes.extend(&other[any(other.len(), rng)..]);
            }
            _ => bytes.insert(at, byte),
        }
    }
    bytes
}

fn run(of: &str, body: impl Fn(&[u8])) {
    let seeds = seeds(of);
    seeds.iter().for_each(|seed| body(seed));
    let mut rng = Rng::for_component(cases(), of);
    for _ in 0..cases() {
        body(&changed(&seeds, &mut rng));
    }
    println!("fuzz {of}: {} seeds, {} inputs", seeds.len(), cases());
}

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
