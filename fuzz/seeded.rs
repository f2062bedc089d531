//! A fuzz target's body on a stable compiler: its seeds, and those changed at random, INPROFILE_CASES times.

use std::ops::Range;
use std::path::Path;

use inprofile_core::rng::Rng;

/// How many inputs.
pub fn cases() -> u64 {
    match std::env::var("INPROFILE_CASES") {
        Ok(text) => text.parse().expect("INPROFILE_CASES is a number"),
        Err(_) => 1000,
    }
}

/// Those in the target's corpus.
pub fn seeds(of: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(of);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 2, "no seeds for {of}");
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// What takes a number's place.
const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "-1",
    "0.5",
    "1e-9",
    "65536",
    "4294967295",
    "4294967296",
    "1000000000000",
    "18446744073709551615",
    "1e300",
    "nan",
];

/// Some bytes changed, put in, taken out, repeated, or followed by part of another seed; a number or a word changed for
/// another.
fn changed(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let any = |n: usize, rng: &mut Rng| rng.below(n.max(1) as u32) as usize;
    let mut bytes = seeds[any(seeds.len(), rng)].clone();
    for _ in 0..1 + rng.below(8) {
        let at = any(bytes.len(), rng).min(bytes.len());
        let byte = rng.below(256) as u8;
        let other = &seeds[any(seeds.len(), rng)];
        match rng.below(7) {
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
                bytes.truncate(at);
                bytes.extend(&other[any(other.len(), rng)..]);
            }
            4 => {
                let number = run_behind(&bytes, at, u8::is_ascii_digit);
                bytes.splice(number, NUMBERS[any(NUMBERS.len(), rng)].bytes());
            }
            5 => {
                let word = run_behind(&bytes, at, u8::is_ascii_graphic);
                let instead = run_behind(other, any(other.len(), rng), u8::is_ascii_graphic);
                bytes.splice(word, other[instead].iter().copied());
            }
            _ => bytes.insert(at, byte),
        }
    }
    bytes
}

/// The first run of such bytes from `at` on; empty, at the end, if there is none.
fn run_behind(bytes: &[u8], at: usize, such: fn(&u8) -> bool) -> Range<usize> {
    let from = (at..bytes.len()).find(|i| such(&bytes[*i])).unwrap_or(bytes.len());
    let to = (from..bytes.len()).find(|i| !such(&bytes[*i])).unwrap_or(bytes.len());
    from..to
}

/// A body with its seeds and with what becomes of them; prints how many.
pub fn run(of: &str, body: impl Fn(&[u8])) {
    let seeds = seeds(of);
    seeds.iter().for_each(|seed| body(seed));
    let mut rng = Rng::for_component(cases(), of);
    for _ in 0..cases() {
        body(&changed(&seeds, &mut rng));
    }
    println!("fuzz {of}: {} seeds, {} inputs", seeds.len(), cases());
}
