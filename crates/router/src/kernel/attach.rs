//! The programs at their ports (tcx): before all others there, so that nothing sees a frame that is ours.

use std::fs;
use std::io;

use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::tc::TcAttachOptions;
use aya::programs::{LinkOrder, ProgramError, SchedClassifier, TcAttachType};

use super::maps::{Maps, because};
use super::pins::Pins;

fn refused(interface: &str, e: &dyn std::error::Error) -> String {
    format!(
        "interface `{interface}`: the kernel puts no program at its ingress hook: {e}{}\n  it takes Linux 6.6 or newer (tcx), and CAP_NET_ADMIN; or write datapath = \"user\"",
        because(e)
    )
}

/// Puts the program of a port at this interface. A link that is pinned already is given the new program, and no frame passes between
/// the two.
///
/// # Errors
/// What the kernel refuses.
pub fn attach(maps: &mut Maps, port: usize, interface: &str, pins: &Pins) -> Result<(), String> {
    let pin = pins.link(port);
    let program = maps.program(port)?;
    if let Ok(old) = PinnedLink::from_pin(&pin) {
        let link = FdLink::from(old).try_into().ok();
        let taken = link.and_then(|link| program.attach_to_link(link).ok());
        let at = taken.map(|id| program.take_link(id)).transpose().map_err(|e| refused(interface, &e))?;
        // One of an interface that has gone takes no program, and another's is of no use here.
        if at.is_some() && is_at(program, interface).map_err(|e| refused(interface, &e))? {
            return Ok(());
        }
    }
    remove(&pin).map_err(|e| format!("{}: {e}", pin.display()))?;
    let first = TcAttachOptions::TcxOrder(LinkOrder::first());
    let id = program
        .attach_with_options(interface, TcAttachType::Ingress, first)
        .map_err(|e| refused(interface, &e))?;
    let link = program.take_link(id).map_err(|e| refused(interface, &e))?;
    let link: FdLink = link.try_into().map_err(|e| refused(interface, &e))?;
    link.pin(&pin).map(drop).map_err(|e| refused(interface, &e))
}

/// Takes a port's program away, if it is there.
///
/// # Errors
/// The system's error.
pub fn detach(port: usize, pins: &Pins) -> io::Result<()> {
    remove(&pins.link(port))
}

/// Whether this program is among those at an interface.
fn is_at(program: &SchedClassifier, interface: &str) -> Result<bool, ProgramError> {
    let id = program.info()?.id();
    let (_, there) = SchedClassifier::query_tcx(interface, TcAttachType::Ingress)?;
    Ok(there.iter().any(|p| p.id() == id))
}

fn remove(pin: &std::path::Path) -> io::Result<()> {
    match fs::remove_file(pin) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
