//! The programs at their ports (tcx): before all others there, at ingress and egress, so that nothing sees a frame that is ours.

use std::fs;
use std::io;
use std::path::Path;

use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::tc::TcAttachOptions;
use aya::programs::{LinkOrder, TcAttachType};
use inprofile_live::io::sys::interface_index;

use super::maps::{LEAVING, Maps, because};
use super::pins::Pins;

/// Where a program is at a port, and which.
struct Place {
    program: usize,
    at: TcAttachType,
    hook: &'static str,
}

/// Frames come in by the first, and leave by the second.
fn places(port: usize) -> [Place; 2] {
    [
        Place { program: port, at: TcAttachType::Ingress, hook: "ingress" },
        Place { program: LEAVING, at: TcAttachType::Egress, hook: "egress" },
    ]
}

fn refused(interface: &str, hook: &str, e: &dyn std::error::Error) -> String {
    format!(
        "interface `{interface}`: the kernel puts no program at its {hook} hook: {e}{}\n  it takes Linux 6.6 or newer (tcx), and CAP_NET_ADMIN; or write datapath = \"user\"",
        because(e)
    )
}

/// Puts a port's programs at this interface: that by which frames leave first.
///
/// # Errors
/// What the kernel refuses.
pub fn attach(maps: &mut Maps, port: usize, interface: &str, pins: &Pins) -> Result<(), String> {
    let [ingress, egress] = places(port);
    let [coming, leaving] = pins.links(port);
    put(maps, &egress, interface, &leaving)?;
    put(maps, &ingress, interface, &coming)
}

/// A link that is pinned already is given the new program, and no frame passes between the two.
fn put(maps: &mut Maps, place: &Place, interface: &str, pin: &Path) -> Result<(), String> {
    let refused = |e: &dyn std::error::Error| refused(interface, place.hook, e);
    let program = maps.program(place.program)?;
    if let Ok(old) = PinnedLink::from_pin(pin) {
        let link = FdLink::from(old);
        // Another interface's is of no use here, and that of one that has gone takes no program.
        let here = interface_index(interface).is_ok_and(|index| interface_of(&link) == Some(index));
        let link = link.try_into().ok().filter(|_| here);
        if let Some(id) = link.and_then(|link| program.attach_to_link(link).ok()) {
            program.take_link(id).map_err(|e| refused(&e))?;
            return Ok(());
        }
    }
    remove(pin).map_err(|e| format!("{}: {e}", pin.display()))?;
    let first = TcAttachOptions::TcxOrder(LinkOrder::first());
    let id = program.attach_with_options(interface, place.at, first).map_err(|e| refused(&e))?;
    let link = program.take_link(id).map_err(|e| refused(&e))?;
    let link: FdLink = link.try_into().map_err(|e| refused(&e))?;
    link.pin(pin).map(drop).map_err(|e| refused(&e))
}

/// Takes a port's programs away, if they are there.
///
/// # Errors
/// The system's error.
pub fn detach(port: usize, pins: &Pins) -> io::Result<()> {
    pins.links(port).iter().try_for_each(|pin| remove(pin))
}

/// The interface that a link is at, by its number. To ask which programs are at an interface takes more than this process may.
fn interface_of(link: &FdLink) -> Option<u32> {
    let id = format!("link_id:\t{}", link.info().ok()?.id());
    let told =
        fs::read_dir("/proc/self/fdinfo").ok()?.filter_map(|e| fs::read_to_string(e.ok()?.path()).ok());
    let of_link = told.into_iter().find(|told| told.lines().any(|line| line == id))?;
    of_link.lines().find_map(|line| line.strip_prefix("ifindex:")?.trim().parse().ok())
}

fn remove(pin: &Path) -> io::Result<()> {
    match fs::remove_file(pin) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
