//! Experiments of `validation/ns2` against what ns-2 2.35 made of them: how many events, and their checksum.
//!
//! Both stand in `docs/validation.json`, which `make validate` writes from ns-2's own traces. Here ns-2 is not needed.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use inprofile_sim::ns2;

/// Every transport, discipline and option that is compared, once.
const SCENARIOS: [&str; 12] = [
    "drop-tail-sack-10-delack",
    "drop-tail-reno-2-delack",
    "many-timeouts-drop-tail-newreno-10",
    "jitter-red-sack-5",
    "red-reno-2",
    "red-newreno-10-delack-3hops",
    "red-gentle-wait-reno-10",
    "red-bytes-reno-5",
    "rio-tagger-sack-10",
    "dsred-rio-c-tsw3cm-newreno-5-delack",
    "dsred-rio-d-token-bucket-newreno-5",
    "dsred-wred-tsw2cm-reno-10",
];

/// Drop-tail, RED and dsRED with a marker.
const TIED: [&str; 3] = ["drop-tail-newreno-2", "red-reno-2", "dsred-rio-c-token-bucket-reno-1"];

/// Counts lines, and takes CRC-32 (IEEE 802.3, reflected) of all bytes.
struct Sum {
    table: [u32; 256],
    crc: u32,
    lines: u64,
}

impl Default for Sum {
    fn default() -> Sum {
        let step = |c: u32, _| if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 };
        let table = std::array::from_fn(|byte| (0..8).fold(byte as u32, step));
        Sum { table, crc: u32::MAX, lines: 0 }
    }
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Sum>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut s = self.0.lock().expect("nobody panicked");
        for &byte in bytes {
            s.crc = s.table[usize::from(byte ^ s.crc as u8)] ^ (s.crc >> 8);
            s.lines += u64::from(byte == b'\n');
        }
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps the whole trace.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// An entry of the grid: its base with the keys in which it differs, and these besides.
fn experiment(name: &str, besides: &[(String, String)]) -> Scenario {
    let folder = root().join("validation/ns2");
    let text = std::fs::read_to_string(folder.join("grid.toml")).expect("the grid");
    let grid: toml::Table = text.parse().expect("TOML");
    let entry = &grid[name];
    let file = format!("{}.toml", entry["base"].as_str().expect("a name"));
    let changed = entry.get("set").and_then(toml::Value::as_table);
    let mut set: Vec<(String, String)> = changed
        .into_iter()
        .flat_map(|keys| keys.iter().map(|(key, value)| (key.clone(), value.to_string())))
        .collect();
    set.extend_from_slice(besides);
    let bytes = std::fs::read(folder.join(&file)).expect("the base");
    Scenario::parse_bytes(&bytes, &file, &set, &Registry::default()).expect("a good one")
}

#[test]
fn the_checksum_is_the_usual_one() {
    let mut sum = Shared::default();
    sum.write_all(b"123456789").expect("memory takes everything");
    assert_eq!(!sum.0.lock().expect("nobody panicked").crc, 0xcbf4_3926);
}

#[test]
fn events_are_ns2s() {
    let text = std::fs::read_to_string(root().join("docs/validation.json")).expect("make validate writes it");
    let found: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let rows = found["scenarios"].as_array().expect("a list");
    for name in SCENARIOS {
        let row = rows.iter().find(|r| r["name"] == *name).expect("every scenario has a row");
        let scenario = experiment(name, &[]);
        let seed = row["seed"].as_u64().expect("a number");
        let sum = Shared::default();
        ns2::run(scenario.network(seed, false), &Arc::new(AtomicBool::new(false)), sum.clone())
            .expect("a whole trace");
        let sum = sum.0.lock().expect("nobody panicked");
        assert_eq!(
            (sum.lines, format!("{:08x}", !sum.crc)),
            (row["events"].as_u64().expect("a number"), row["checksum"].as_str().expect("a text").into()),
            "{name}: events and checksum"
        );
    }
}

/// The lines before the first printed microsecond that differs.
fn common(ours: &str, theirs: &str) -> u64 {
    let (mut begun, mut moment) = (0, "");
    for (n, (a, b)) in ours.lines().zip(theirs.lines()).enumerate() {
        let now = a.split(' ').nth(1).expect("every line has a time");
        if now != moment {
            (begun, moment) = (n as u64, now);
        }
        if a != b {
            return begun;
        }
    }
    ours.lines().count().min(theirs.lines().count()) as u64
}

/// Each exact profile is the ns-2 profile for as long as `make validate` found.
#[test]
fn the_exact_profiles_are_tied_to_ns2s() {
    let text = std::fs::read_to_string(root().join("docs/validation.json")).expect("make validate writes it");
    let found: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for name in TIED {
        let rows = found["scenarios"].as_array().expect("a list");
        let row = rows.iter().find(|r| r["name"] == *name).expect("every scenario has a row");
        let trace = |profile: &str| {
            let scenario = experiment(name, &[("engine.profile".to_owned(), format!("\"{profile}\""))]);
            let kept = Kept::default();
            let seed = row["seed"].as_u64().expect("a number");
            ns2::run(scenario.network(seed, false), &Arc::new(AtomicBool::new(false)), kept.clone())
                .expect("a whole trace");
            let bytes = std::mem::take(&mut *kept.0.lock().expect("nobody panicked"));
            String::from_utf8(bytes).expect("text")
        };
        let proved = trace("ns2");
        for tied in row["profiles"].as_array().expect("a list") {
            let profile = tied["profile"].as_str().expect("a word");
            let events = tied["events"].as_u64().expect("a number");
            assert_eq!(common(&trace(profile), &proved), events, "{name} in {profile}");
        }
    }
}
