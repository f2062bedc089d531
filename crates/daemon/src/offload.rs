//! Offloads of the two ports: what they hand over as one packet, or with a checksum still to be made, is no packet that
//! could be metered or sent on. They are looked at before the start, refused or switched off, and restored at the end.
//!
//! What was changed is noted in a file beside the control socket: if the process is killed, the next one restores it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use crate::sys::Ethtool;

/// A setting of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// As `ethtool -K` calls it.
    pub name: &'static str,
    /// The ioctl's numbers (linux/ethtool.h) to ask and to set; and the bit of the value, if it is one of several.
    get: u32,
    set: u32,
    bit: u32,
}

/// Those that matter: who merges on receipt, who splits or sums on sending.
pub const FEATURES: [Feature; 5] = [
    Feature { name: "gro", get: 0x2b, set: 0x2c, bit: 1 },
    Feature { name: "lro", get: 0x25, set: 0x26, bit: 1 << 15 },
    Feature { name: "gso", get: 0x23, set: 0x24, bit: 1 },
    Feature { name: "tso", get: 0x1e, set: 0x1f, bit: 1 },
    Feature { name: "tx", get: 0x16, set: 0x17, bit: 1 },
];

/// What was switched off, and is to be restored.
#[derive(Debug)]
pub struct Offloads {
    changed: Vec<(String, Feature)>,
    note: PathBuf,
}

/// Which of them are on. An interface that doesn't know a feature doesn't have it.
fn on(ethtool: &Ethtool, interface: &str) -> io::Result<Vec<Feature>> {
    let mut on = Vec::new();
    for feature in FEATURES {
        match ethtool.value(interface, feature.get, 0) {
            Ok(value) if value & feature.bit != 0 => on.push(feature),
            Err(e) if e.raw_os_error() != Some(libc::EOPNOTSUPP) => return Err(named(interface, &e)),
            _ => {}
        }
    }
    Ok(on)
}

fn named(interface: &str, e: &io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("interface `{interface}`: {e}"))
}

/// Switches one on or off.
fn switch(ethtool: &Ethtool, interface: &str, feature: Feature, on: bool) -> io::Result<()> {
    let data = if feature.bit == 1 {
        u32::from(on)
    } else {
        // One of several flags: the others stay.
        let now = ethtool.value(interface, feature.get, 0).map_err(|e| named(interface, &e))?;
        if on { now | feature.bit } else { now & !feature.bit }
    };
    ethtool.value(interface, feature.set, data).map(|_| ()).map_err(|e| {
        io::Error::new(e.kind(), format!("interface `{interface}`: {} can't be switched: {e}", feature.name))
    })
}

/// Sees to it that they are off. `note` is where the changes are noted.
///
/// # Errors
/// `InvalidInput`, with what to do, if some are on and `fix` is false; else what the system says.
pub fn prepare(ports: &[String; 2], fix: bool, note: &Path) -> io::Result<Offloads> {
    let ethtool = Ethtool::open()?;
    let mut changed = noted(note, ports);
    let mut refused = Vec::new();
    for port in ports {
        let on = on(&ethtool, port)?;
        if !on.is_empty() && !fix {
            let names: Vec<&str> = on.iter().map(|f| f.name).collect();
            let off: Vec<String> = names.iter().map(|n| format!("{n} off")).collect();
            refused.push(format!(
                "interface `{port}`: {} on; `ethtool -K {port} {}`",
                names.join(", "),
                off.join(" ")
            ));
        }
        changed.extend(
            on.into_iter()
                .filter(|f| !changed.iter().any(|(p, c)| p == port && c == f))
                .map(|f| (port.clone(), f))
                .collect::<Vec<_>>(),
        );
    }
    if !refused.is_empty() {
        let how = "offloads merge packets and leave checksums unfinished: switch them off, or let fix_offloads = true (--fix-offloads) do it and restore them at the end";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{}\n  {how}", refused.join("\n"))));
    }
    let offloads = Offloads { changed, note: note.to_owned() };
    if fix && !offloads.changed.is_empty() {
        fs::write(note, offloads.json().to_string())?;
        for (port, feature) in &offloads.changed {
            switch(&ethtool, port, *feature, false)?;
        }
    }
    Ok(offloads)
}

/// What a process before us switched off and could not restore.
fn noted(note: &Path, ports: &[String; 2]) -> Vec<(String, Feature)> {
    // Without a note, or with one that can't be read, nothing is known to have been changed.
    let Ok(text) = fs::read_to_string(note) else { return Vec::new() };
    let Ok(Json::Array(list)) = serde_json::from_str(&text) else { return Vec::new() };
    let one = |item: &Json| {
        let port = item.get("port")?.as_str()?.to_owned();
        let name = item.get("feature")?.as_str()?;
        let feature = FEATURES.into_iter().find(|f| f.name == name)?;
        ports.contains(&port).then_some((port, feature))
    };
    list.iter().filter_map(one).collect()
}

impl Offloads {
    /// What was changed: interface and feature.
    pub fn changed(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.changed.iter().map(|(p, f)| (p.as_str(), f.name))
    }

    fn json(&self) -> Json {
        Json::Array(self.changed.iter().map(|(p, f)| json!({ "port": p, "feature": f.name })).collect())
    }

    /// Switches on again what was on. Goes through all of them even if one fails.
    ///
    /// # Errors
    /// The first failure.
    pub fn restore(&self) -> io::Result<()> {
        if self.changed.is_empty() {
            return Ok(());
        }
        let ethtool = Ethtool::open()?;
        let mut result = Ok(());
        for (port, feature) in &self.changed {
            result = result.and(switch(&ethtool, port, *feature, true));
        }
        result.and(fs::remove_file(&self.note))
    }
}
