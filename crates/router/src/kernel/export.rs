//! `inprofiled export bpf`: the programs, what their maps hold, and a script that loads both with bpftool and tc, for a machine that
//! has no inprofiled. Nothing answers there but the script; what needs a process (reload, ports that come back) is not in it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use aya::Pod;
use inprofile_live::io::closed::MARK;

use super::layout::{Account, AllKinds, Bucket, CLASSES, Name, Powers, Terms, VirtualBacklog, bytes_of};
use super::maps::{EXPORTED_ACCOUNTS, OBJECT};
use super::places::Places;
use super::tables::Tables;
use crate::config::{Config, DIRECTIONS};

/// The bank that is in force.
const BANK: u32 = 1;
/// The script, whose words in `@` are the file's.
const SCRIPT: &str = include_str!("export/load.sh");
const README: &str = include_str!("export/README.md");

/// The entries of all maps, as lines of bpftool's batch files.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn set<V: Pod>(&mut self, map: &str, key: &[u8], value: &V) {
        let _ = write!(self.0, "map update pinned @PINS@/maps/{map} key hex");
        hex(&mut self.0, key);
        self.0.push_str(" value hex");
        hex(&mut self.0, bytes_of(value));
        self.0.push('\n');
    }

    fn at<V: Pod>(&mut self, map: &str, index: u32, value: &V) {
        self.set(map, &index.to_ne_bytes(), value);
    }
}

fn hex(out: &mut String, bytes: &[u8]) {
    bytes.iter().for_each(|b| {
        let _ = write!(out, " {b:02x}");
    });
}

/// Writes the folder, which must not be there yet.
///
/// # Errors
/// More accounts than there is room for, buckets that begin empty, or what the system says.
pub fn bpf(config: &Config, folder: &Path) -> Result<(), String> {
    let at = |e: std::io::Error| format!("{}: {e}", folder.display());
    let (mut lines, mut accounts) = (Lines::default(), String::new());
    for (i, name) in DIRECTIONS.into_iter().enumerate() {
        direction(config, i, name, &mut lines, &mut accounts)?;
    }
    let mut powers = String::new();
    hex(&mut powers, bytes_of(&Powers::default()));
    fs::create_dir(folder).map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => {
            format!("{} is there already: name another folder", folder.display())
        }
        _ => at(e),
    })?;
    let [inside, outside] = &config.ports;
    let filled = |text: &str| {
        text.replace("@INSIDE@", inside)
            .replace("@OUTSIDE@", outside)
            .replace("@BANK@", &BANK.to_string())
            .replace("@CAPACITY@", &EXPORTED_ACCOUNTS.to_string())
            .replace("@MARK@", &MARK.to_string())
    };
    for (name, text) in [
        ("contracts.bpf.o", OBJECT.to_vec()),
        ("maps.batch", lines.0.into()),
        ("powers.hex", powers.into()),
        ("accounts.txt", accounts.into()),
        ("load.sh", filled(SCRIPT).into()),
        ("README.md", filled(README).into()),
    ] {
        fs::write(folder.join(name), text).map_err(at)?;
    }
    Ok(())
}

fn direction(
    config: &Config,
    i: usize,
    name: &str,
    lines: &mut Lines,
    listed: &mut String,
) -> Result<(), String> {
    let (d, set) = (config.directions[i].as_ref(), BANK * 2 + i as u32);
    let assigned = Places::default().assign(d);
    let needed = assigned.places.end();
    if needed > EXPORTED_ACCOUNTS {
        return Err(format!(
            "the exported programs have room for {EXPORTED_ACCOUNTS} customers and policers in each direction, and {name} needs {needed}\n  give fewer, or run inprofiled, which makes as much room as it needs"
        ));
    }
    let tables = Tables::of(d, config, &assigned.places, set, 0);
    lines.at("rules", set, &tables.rules);
    for (place, terms) in &tables.terms {
        lines.at("terms", set * EXPORTED_ACCOUNTS + place, terms);
    }
    for (class, queue) in &tables.queues {
        lines.at("queues", set * CLASSES as u32 + class, queue);
    }
    for (key, circuit) in &tables.circuits {
        lines.set("circuits", bytes_of(key), circuit);
    }
    for (key, owner) in &tables.owners {
        lines.set("owners", bytes_of(key), owner);
    }
    for (bits, key, owner) in &tables.prefixes {
        lines.set("prefixes", &[&bits.to_ne_bytes(), bytes_of(key)].concat(), owner);
    }
    let terms: std::collections::HashMap<u32, &Terms> = tables.terms.iter().map(|(p, t)| (*p, t)).collect();
    for (place, whose) in &assigned.new {
        let terms = terms.get(place).copied().copied().unwrap_or_default();
        if !terms.starts_full() {
            return Err(format!(
                "{whose} in {name} has starts_full = false, and a file knows no time from which its bucket would fill\n  leave starts_full out, or run inprofiled"
            ));
        }
        let index = i as u32 * EXPORTED_ACCOUNTS + place;
        lines.at("accounts", index, &Account::opened(&terms, true, 0));
        lines.at("names", index, &Name::of(whose));
        let _ = writeln!(listed, "{index} {name} {whose}");
    }
    for class in 0..CLASSES as u32 {
        lines.at("backlogs", i as u32 * CLASSES as u32 + class, &VirtualBacklog::default());
    }
    let [any, kept] = tables.rules.addresses.map(|p| Bucket { tokens: p.depth, at: 0 });
    lines.at("together", i as u32, &AllKinds { any, kept: [kept; 8], ..AllKinds::default() });
    Ok(())
}
