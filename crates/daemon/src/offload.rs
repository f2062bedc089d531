//! Offloads of the two ports: what they hand over as one packet, or with a checksum still to be made, is no packet that
//! could be metered or sent on. They are looked at before the start, refused or switched off, and restored at the end.
//!
//! What was changed is noted in a file beside the control socket: if the process is killed, the next one restores it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use crate::sys::Ethtool;

/// Those that matter: who merges on receipt, who splits or sums on sending. As `ethtool -K` calls it, and the kernel's
/// features it means; a `*` stands for anything.
const OFFLOADS: [(&str, &str); 7] = [
    ("gro", "rx-gro"),
    ("rx-gro-hw", "rx-gro-hw"),
    ("lro", "rx-lro"),
    ("gso", "tx-generic-segmentation"),
    ("tso", "tx-tcp*-segmentation"),
    ("tx", "tx-checksum-ip*"),
    ("tx", "tx-checksum-sctp"),
];

/// An interface, and the kernel's name of a feature.
pub type Feature = (String, String);

/// What was switched off, and is restored when this goes, if it wasn't before.
#[derive(Debug)]
pub struct Offloads {
    changed: Vec<Feature>,
    note: PathBuf,
}

/// What `ethtool -K` calls the offload that a feature belongs to; `None` if it does no harm.
fn offload(feature: &str) -> Option<&'static str> {
    let is = |pattern: &str| match pattern.split_once('*') {
        Some((begin, end)) => feature.strip_prefix(begin).is_some_and(|rest| rest.ends_with(end)),
        None => feature == pattern,
    };
    OFFLOADS.iter().find(|(_, pattern)| is(pattern)).map(|(name, _)| *name)
}

fn named(interface: &str, e: &io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("interface `{interface}`: {e}"))
}

/// The features of an interface that are on and do harm.
///
/// # Errors
/// What the system says.
pub fn on(interface: &str) -> io::Result<Vec<String>> {
    let all = Ethtool::open()?.features(interface).map_err(|e| named(interface, &e))?;
    Ok(all.into_iter().filter(|(name, on)| *on && offload(name).is_some()).map(|(name, _)| name).collect())
}

/// Switches features of one interface on or off, and sees whether they are.
fn switch(interface: &str, features: &[&str], to: bool) -> io::Result<()> {
    let ethtool = Ethtool::open()?;
    ethtool.switch(interface, features, to).map_err(|e| named(interface, &e))?;
    let now = ethtool.features(interface).map_err(|e| named(interface, &e))?;
    let stay: Vec<&str> = now
        .iter()
        .filter(|(name, on)| *on != to && features.contains(&name.as_str()))
        .map(|(name, _)| name.as_str())
        .collect();
    if stay.is_empty() {
        return Ok(());
    }
    let way = if to { "on" } else { "off" };
    Err(io::Error::other(format!("interface `{interface}`: {} can't be switched {way}", stay.join(", "))))
}

/// What is on and is to be switched off; nothing is changed yet.
///
/// # Errors
/// `InvalidInput`, with what to do, if some are on and `fix` is false; else what the system says.
pub fn look(ports: &[String; 2], fix: bool) -> io::Result<Vec<Feature>> {
    let (mut all, mut refused) = (Vec::new(), Vec::new());
    for port in ports {
        let on = on(port)?;
        let mut names: Vec<&str> = on.iter().filter_map(|f| offload(f)).collect();
        names.dedup();
        if !names.is_empty() && !fix {
            let off: Vec<String> = names.iter().map(|n| format!("{n} off")).collect();
            refused.push(format!(
                "interface `{port}`: {} on; `ethtool -K {port} {}`",
                names.join(", "),
                off.join(" ")
            ));
        }
        all.extend(on.into_iter().map(|f| (port.clone(), f)));
    }
    if refused.is_empty() {
        return Ok(all);
    }
    let how = "offloads merge packets and leave checksums unfinished: switch them off, or let fix_offloads = true (--fix-offloads) do it and restore them at the end";
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{}\n  {how}", refused.join("\n"))))
}

/// Switches them off. `note` is where that is noted; what a process before us noted there and could not restore is ours too.
///
/// # Errors
/// What the system says; what was switched by then is switched back.
pub fn switch_off(ports: &[String; 2], features: Vec<Feature>, note: &Path) -> io::Result<Offloads> {
    let mut changed = noted(note, ports);
    changed.extend(features.iter().filter(|f| !changed.contains(f)).cloned().collect::<Vec<_>>());
    let offloads = Offloads { changed, note: note.to_owned() };
    if !features.is_empty() {
        fs::write(note, offloads.json().to_string())
            .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", note.display())))?;
        for port in ports {
            switch(port, &of(&features, port), false)?;
        }
    }
    Ok(offloads)
}

fn of<'f>(features: &'f [Feature], port: &str) -> Vec<&'f str> {
    features.iter().filter(|(p, _)| p == port).map(|(_, f)| f.as_str()).collect()
}

/// What a process before us switched off and could not restore.
fn noted(note: &Path, ports: &[String; 2]) -> Vec<Feature> {
    // Without a note, or with one that can't be read, nothing is known to have been changed.
    let Ok(text) = fs::read_to_string(note) else { return Vec::new() };
    let Ok(Json::Array(list)) = serde_json::from_str(&text) else { return Vec::new() };
    let one = |item: &Json| {
        let port = item.get("port")?.as_str()?.to_owned();
        let feature = item.get("feature")?.as_str().filter(|f| offload(f).is_some())?.to_owned();
        ports.contains(&port).then_some((port, feature))
    };
    list.iter().filter_map(one).collect()
}

impl Offloads {
    /// What was changed: interface and feature.
    pub fn changed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.changed.iter().map(|(p, f)| (p.as_str(), f.as_str()))
    }

    fn json(&self) -> Json {
        Json::Array(self.changed.iter().map(|(p, f)| json!({ "port": p, "feature": f })).collect())
    }

    /// Switches on again what was on, at both ports even if one fails; then the note stays for the next start. Once is enough.
    ///
    /// # Errors
    /// The first failure.
    pub fn restore(&mut self) -> io::Result<()> {
        let changed = std::mem::take(&mut self.changed);
        if changed.is_empty() {
            return Ok(());
        }
        let mut ports: Vec<&str> = changed.iter().map(|(p, _)| p.as_str()).collect();
        ports.dedup();
        let switched = ports.iter().map(|p| switch(p, &of(&changed, p), true));
        switched.fold(Ok(()), io::Result::and).and_then(|()| fs::remove_file(&self.note))
    }
}

impl Drop for Offloads {
    fn drop(&mut self) {
        if let Err(e) = self.restore() {
            eprintln!("inprofiled: offloads could not be restored: {e}");
        }
    }
}
