//! The programs at their ports (tcx): before all others there, at ingress and egress, so that nothing sees a frame that is ours.

use std::fs;
use std::io;
use std::path::Path;

use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::tc::TcAttachOptions;
use aya::programs::{LinkOrder, ProgramError, SchedClassifier, TcAttachType};

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
        let link = FdLink::from(old).try_into().ok();
        let taken = link.and_then(|link| program.attach_to_link(link).ok());
        let at = taken.map(|id| program.take_link(id)).transpose().map_err(|e| refused(&e))?;
        // One of an interface that has gone takes no program, and another's is of no use here.
        if at.is_some() && is_at(program, interface, place.at).map_err(|e| refused(&e))? {
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

/// Whether this program is among those at an interface.
fn is_at(program: &SchedClassifier, interface: &str, at: TcAttachType) -> Result<bool, ProgramError> {
    let id = program.info()?.id();
    let (_, there) = SchedClassifier::query_tcx(interface, at)?;
    Ok(there.iter().any(|p| p.id() == id))
}

fn remove(pin: &Path) -> io::Result<()> {
    match fs::remove_file(pin) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
