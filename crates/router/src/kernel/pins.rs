//! Where maps and links are pinned, so that they outlive this process: a folder for each pair of ports in a file system of the kernel's
//! (bpffs). What is there forwards; what is removed is gone with its last user.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use inprofile_live::io::netlink::Netlink;
use inprofile_live::io::sys::interface_index;

/// The number of the maps' layout: maps of another are not taken over.
const LAYOUT: u32 = 4;
/// The links of the two ports, at ingress and egress.
const LINKS: [[&str; 2]; 2] =
    [["link_inside", "link_inside_egress"], ["link_outside", "link_outside_egress"]];
/// BPF_FS_MAGIC.
const BPFFS: i64 = 0xcafe_4a11;

/// The pins of one pair of ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pins {
    /// The folder of both.
    pub folder: PathBuf,
}

/// A name as bpffs takes it, which keeps the dot for itself, and as a part between plus signs; no two names become the same.
fn plain(name: &str) -> String {
    name.replace('%', "%25").replace('.', "%2e").replace('+', "%2b")
}

/// The name that became this.
fn name_of(plain: &str) -> String {
    plain.replace("%2b", "+").replace("%2e", ".").replace("%25", "%")
}

impl Pins {
    /// Those of these ports; the folder is made.
    ///
    /// # Errors
    /// There is no bpffs, with what to do; else what the system says.
    pub fn open(root: &Path, ports: &[String; 2]) -> Result<Pins, String> {
        let at = |path: &Path, e: &io::Error| format!("{}: {e}{}", path.display(), crate::files::remedy(e));
        let parent = root.parent().unwrap_or(root);
        let there = [root, parent].into_iter().find(|p| p.exists()).unwrap_or(parent);
        if crate::sys::file_system(there).map_err(|e| at(there, &e))? != BPFFS {
            let place = there.display();
            return Err(format!(
                "{place} is no bpffs, in which the kernel's datapath outlives this process\n  `mount -t bpf bpf {place}`; or name another folder in `pins`"
            ));
        }
        let [inside, outside] = ports.each_ref().map(|p| plain(p));
        let folder = root.join(format!("{LAYOUT}+{inside}+{outside}"));
        fs::create_dir_all(&folder).map_err(|e| at(&folder, &e))?;
        Ok(Pins { folder })
    }

    /// The links of a port, at ingress and egress.
    #[must_use]
    pub fn links(&self, port: usize) -> [PathBuf; 2] {
        LINKS[port].map(|name| self.folder.join(name))
    }

    /// Whether programs forward by what is pinned here.
    #[must_use]
    pub fn taken(&self) -> bool {
        self.folder.join("state").exists()
    }

    /// Removes what is pinned for one of the ports by a layout or pairing of before, now that these are in place: it would come back
    /// when these go. How many pairs that were.
    ///
    /// # Errors
    /// The system's error.
    pub fn remove_earlier(&self, ports: &[String; 2]) -> io::Result<usize> {
        let mut removed = 0;
        let root = self.folder.parent().unwrap_or(&self.folder);
        for entry in fs::read_dir(root)? {
            let folder = entry?.path();
            if folder != self.folder {
                removed += usize::from(release_from(folder, ports, ports)?);
            }
        }
        Ok(removed)
    }

    /// Removes all: links first, so that nothing forwards that is half there.
    ///
    /// # Errors
    /// The system's error.
    pub fn remove(&self) -> io::Result<()> {
        for link in [0, 1].into_iter().flat_map(|port| self.links(port)) {
            match fs::remove_file(link) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        for entry in fs::read_dir(&self.folder)? {
            fs::remove_file(entry?.path())?;
        }
        fs::remove_dir(&self.folder)
    }
}

/// Removes what a process that was killed has left pinned for an interface, as either port; how many pairs that were.
///
/// # Errors
/// The system's error.
pub fn release(root: &Path, interface: &str) -> io::Result<usize> {
    let mut released = 0;
    let entries = match fs::read_dir(root) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    for entry in entries {
        released += usize::from(release_from(entry?.path(), &[interface.into()], &[])?);
    }
    Ok(released)
}

/// Removes a folder if it is of one of these ports, and the programs that are filters of its ports but for those that are kept; whether
/// it was.
fn release_from(folder: PathBuf, ports: &[String], kept: &[String]) -> io::Result<bool> {
    let name = folder.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
    let its: Vec<String> = name.split('+').skip(1).map(name_of).collect();
    let ours = its.iter().any(|port| ports.contains(port));
    if ours {
        let there = its.iter().filter(|port| !kept.contains(port));
        for index in there.filter_map(|port| interface_index(port).ok()) {
            Netlink::open()?.take_programs(index)?;
        }
        Pins { folder }.remove()?;
    }
    Ok(ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_pinned_for_a_port_before_goes() {
        let root = std::env::temp_dir().join(format!("inprofiled-pins-{}", std::process::id()));
        for folder in ["1+a+b", "2+a+b", "2+b+a", "2+c+d", "2+b%2e10+c", "2+c%2bb+d"] {
            fs::create_dir_all(root.join(folder)).unwrap();
            fs::write(root.join(folder).join("link_inside"), "").unwrap();
        }
        let pins = Pins { folder: root.join("2+a+b") };
        let removed = pins.remove_earlier(&["a".into(), "b".into()]);
        let mut left: Vec<_> = fs::read_dir(&root).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(
            (removed.unwrap(), left),
            (2, ["2+a+b", "2+b%2e10+c", "2+c%2bb+d", "2+c+d"].map(Into::into).to_vec())
        );
    }

    #[test]
    fn names_stay_apart() {
        let names = ["a.b", "a+b", "a%2eb", "a%2bb", "a%252eb", "ab"].map(plain);
        assert!(names.iter().all(|n| !n.contains(['.', '+'])), "{names:?}");
        let apart: std::collections::HashSet<_> = names.iter().collect();
        assert_eq!(apart.len(), names.len(), "{names:?}");
        assert_eq!(names.each_ref().map(|n| name_of(n)), ["a.b", "a+b", "a%2eb", "a%2bb", "a%252eb", "ab"]);
    }
}
