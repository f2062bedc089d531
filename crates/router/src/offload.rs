//! Offloads of the two ports. A frame that is several packets in one, or whose checksum is still to be computed, can be neither
//! metered nor forwarded. So offloads are checked at the start and whenever an interface comes back; they are refused or
//! switched off, and restored at the end.
//!
//! Changes are noted in a file beside the control socket: if the process is killed, the next one restores it. A note
//! is for one interface by its index: if that interface is gone there is nothing to restore, whichever has its name now.

use std::io;
use std::path::{Path, PathBuf};

use inprofile_live::io::sys::interface_index;
use serde_json::{Value as Json, json};

use crate::files;
use crate::sys::{Account, Ethtool};

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

/// The offloads of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    interface: String,
    /// The interface's number.
    index: u32,
    /// As the kernel calls it.
    name: String,
}

/// The offloads switched off, restored on drop unless restored before.
#[derive(Debug)]
pub struct Offloads {
    fix: bool,
    changed: Vec<Feature>,
    /// Where that is noted, if it has to be.
    note: Option<PathBuf>,
}

/// The name that `ethtool -K` has for the offload of a feature; `None` if it does no harm.
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
/// The system's error.
pub fn on(interface: &str) -> io::Result<Vec<String>> {
    let all = Ethtool::open()?.features(interface).map_err(|e| named(interface, &e))?;
    Ok(all.into_iter().filter(|(name, on)| *on && offload(name).is_some()).map(|(name, _)| name).collect())
}

/// Switches features of one interface on or off, and sees whether they are.
fn switch(interface: &str, features: &[&str], to: bool) -> io::Result<()> {
    let ethtool = Ethtool::open()?;
    ethtool.switch(interface, features, to).map_err(|e| match e.kind() {
        io::ErrorKind::PermissionDenied => io::Error::new(
            e.kind(),
            format!("interface `{interface}`: switching offloads takes CAP_NET_ADMIN: run it as root, or switch them before"),
        ),
        _ => named(interface, &e),
    })?;
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

/// The offloads that are on and will be switched off; nothing is changed yet.
///
/// # Errors
/// `InvalidInput`, with what to do, if some are on and `fix` is false; else what the system says.
pub fn look(ports: &[String], fix: bool) -> io::Result<Vec<Feature>> {
    let (mut all, mut refused) = (Vec::new(), Vec::new());
    for port in ports {
        let (index, on) = (interface_index(port)?, on(port)?);
        let names = OFFLOADS.iter().map(|(name, _)| *name);
        let mut names: Vec<&str> =
            names.filter(|name| on.iter().any(|f| offload(f) == Some(*name))).collect();
        names.dedup();
        if !names.is_empty() && !fix {
            let off: Vec<String> = names.iter().map(|n| format!("{n} off")).collect();
            refused.push(format!(
                "interface `{port}`: {} on; `ethtool -K {port} {}`",
                names.join(", "),
                off.join(" ")
            ));
        }
        all.extend(on.into_iter().map(|name| Feature { interface: port.clone(), index, name }));
    }
    if refused.is_empty() {
        return Ok(all);
    }
    let how = "offloads merge packets and leave checksums unfinished: switch them off, or let fix_offloads = true (--fix-offloads) do it and restore them at the end";
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{}\n  {how}", refused.join("\n"))))
}

/// Switches them off. `note` is where that is noted, for `user`, whom the process becomes, to note more there; what a process
/// before us noted there and could not restore is ours too. With `fix` those of interfaces that come back will be as well.
///
/// # Errors
/// The system's error; offloads switched by then are switched back.
pub fn switch_off(
    ports: &[String; 2],
    fix: bool,
    features: &[Feature],
    note: &Path,
    user: Option<Account>,
) -> io::Result<Offloads> {
    let changed = noted(note, ports);
    let noted = (fix || !changed.is_empty()).then(|| note.to_owned());
    let mut offloads = Offloads { fix, changed, note: noted };
    offloads.switch_off(features)?;
    if let Some(note) = &offloads.note {
        files::give(note, user)?;
    }
    Ok(offloads)
}

fn of<'f>(features: &'f [Feature], port: &str) -> Vec<&'f str> {
    features.iter().filter(|f| f.interface == port).map(|f| f.name.as_str()).collect()
}

/// The offloads that an earlier process switched off and could not restore, of interfaces that still exist.
fn noted(note: &Path, ports: &[String; 2]) -> Vec<Feature> {
    // Without a note, or with one that can't be read, nothing is known to have been changed.
    let text = files::read(note).unwrap_or_default();
    let Ok(Json::Array(list)) = serde_json::from_str(&text) else { return Vec::new() };
    let one = |item: &Json| {
        let interface = item.get("port")?.as_str()?.to_owned();
        let index = u32::try_from(item.get("index")?.as_u64()?).ok()?;
        let name = item.get("feature")?.as_str().filter(|f| offload(f).is_some())?.to_owned();
        let feature = Feature { interface, index, name };
        (ports.contains(&feature.interface) && feature.there()).then_some(feature)
    };
    list.iter().filter_map(one).collect()
}

impl Feature {
    /// Whether its interface is still there.
    fn there(&self) -> bool {
        interface_index(&self.interface).is_ok_and(|index| index == self.index)
    }
}

impl Offloads {
    /// The changes: interface and feature.
    pub fn changed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.changed.iter().map(|f| (f.interface.as_str(), f.name.as_str()))
    }

    /// Looks at an interface that has come: its offloads are off then, or switched off; which.
    ///
    /// # Errors
    /// `InvalidInput`, with what to do, if some are on and may not be switched off; else what the system says.
    pub fn take_up(&mut self, port: &str) -> io::Result<Vec<String>> {
        let features = look(&[port.to_owned()], self.fix)?;
        self.switch_off(&features)?;
        Ok(features.into_iter().map(|f| f.name).collect())
    }

    /// Notes them first, then switches them off.
    fn switch_off(&mut self, features: &[Feature]) -> io::Result<()> {
        // What was switched off at an interface before of the same name has gone with it.
        self.changed
            .retain(|f| !features.iter().any(|new| new.interface == f.interface && new.index != f.index));
        let new: Vec<Feature> = features.iter().filter(|f| !self.changed.contains(f)).cloned().collect();
        self.changed.extend(new);
        if let Some(note) = &self.note {
            files::write(note, &self.json().to_string())?;
        }
        let mut ports: Vec<&str> = features.iter().map(|f| f.interface.as_str()).collect();
        ports.dedup();
        let outcome = ports.iter().try_for_each(|port| switch(port, &of(features, port), false));
        if outcome.is_err() {
            // What is still on was not switched, and is nothing to restore.
            self.changed.retain(|f| !on(&f.interface).is_ok_and(|on| on.contains(&f.name)));
        }
        outcome
    }

    fn json(&self) -> Json {
        let one = |f: &Feature| json!({ "port": f.interface, "index": f.index, "feature": f.name });
        Json::Array(self.changed.iter().map(one).collect())
    }

    /// Switches on again what was on, at both ports even if one fails; then the note stays for the next start. Once is enough.
    ///
    /// # Errors
    /// The first failure.
    pub fn restore(&mut self) -> io::Result<()> {
        let Some(note) = self.note.take() else { return Ok(()) };
        let mut changed = std::mem::take(&mut self.changed);
        changed.retain(Feature::there);
        let mut ports: Vec<&str> = changed.iter().map(|f| f.interface.as_str()).collect();
        ports.sort_unstable();
        ports.dedup();
        let switched = ports.iter().map(|p| switch(p, &of(&changed, p), true));
        switched.fold(Ok(()), io::Result::and).and_then(|()| files::forget(&note))
    }
}

impl Drop for Offloads {
    fn drop(&mut self) {
        if let Err(e) = self.restore() {
            eprintln!("inprofiled: offloads could not be restored: {e}");
        }
    }
}
