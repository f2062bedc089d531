//! The programs at their ports: before all others there, at ingress and egress, so that nothing sees a frame that is ours. By tcx's links
//! where there are any, pinned so that they outlive this process; else as filters of clsact, which are the interface's.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::tc::TcAttachOptions;
use aya::programs::{LinkOrder, TcAttachType};
use aya::util::KernelVersion;
use inprofile_live::io::closed::Hook;
use inprofile_live::io::netlink::Netlink;
use inprofile_live::io::sys::interface_index;

use super::maps::{LEAVING, Maps, because};
use super::pins::Pins;
use crate::config::datapath::Attach;

/// Where a program is at a port, and which.
struct Place {
    program: usize,
    at: TcAttachType,
    hook: Hook,
}

/// Frames come in by the first, and leave by the second.
fn places(port: usize) -> [Place; 2] {
    [
        Place { program: port, at: TcAttachType::Ingress, hook: Hook::Ingress },
        Place { program: LEAVING, at: TcAttachType::Egress, hook: Hook::Egress },
    ]
}

fn refused(interface: &str, hook: Hook, e: &dyn std::error::Error) -> String {
    format!(
        "interface `{interface}`: the kernel puts no program at its hook ({hook:?}): {e}{}\n  it takes CAP_NET_ADMIN and, by attach = \"tcx\", Linux 6.6 or newer; or write datapath = \"user\"",
        because(e)
    )
}

/// By which of both programs are put at a port.
///
/// # Errors
/// The kernel is too old for either.
pub fn by_tcx(wanted: Attach) -> Result<bool, String> {
    let kernel = KernelVersion::current().map_err(|e| e.to_string())?;
    // Before, maps are written with the capability that is given up.
    if kernel < KernelVersion::new(5, 19, 0) {
        return Err(
            "the kernel's datapath takes Linux 5.19 or newer\n  write datapath = \"user\", or load what `inprofiled export bpf` writes"
                .into(),
        );
    }
    Ok(match wanted {
        Attach::Auto => kernel >= KernelVersion::new(6, 6, 0),
        Attach::Tcx => true,
        Attach::Clsact => false,
    })
}

/// Puts a port's programs at this interface: that by which frames leave first.
///
/// # Errors
/// What the kernel refuses.
pub fn attach(maps: &mut Maps, port: usize, interface: &str, pins: &Pins, tcx: bool) -> Result<(), String> {
    let links = pins.links(port);
    for (place, link) in places(port).iter().zip(&links).rev() {
        if tcx { put(maps, place, interface, link)? } else { put_filter(maps, place, interface)? }
    }
    // By the other way a process before this one may have put them there.
    if tcx {
        let take = || Netlink::open()?.take_programs(interface_index(interface)?);
        return take().map_err(|e| format!("interface `{interface}`: {e}"));
    }
    links.iter().try_for_each(|link| remove(link).map_err(|e| format!("{}: {e}", link.display())))
}

/// Whether programs are at this interface as filters, before all others.
///
/// # Errors
/// The system's error.
pub fn are_filters(index: u32) -> io::Result<bool> {
    let netlink = Netlink::open()?;
    Ok(netlink.has_program(index, Hook::Ingress)? && netlink.has_program(index, Hook::Egress)?)
}

fn put_filter(maps: &mut Maps, place: &Place, interface: &str) -> Result<(), String> {
    let refused = |e: &dyn std::error::Error| refused(interface, place.hook, e);
    let program = maps.program(place.program)?.fd().map_err(|e| refused(&e))?;
    let put = || Netlink::open()?.put_program(interface_index(interface)?, place.hook, program.as_fd());
    put().map_err(|e| refused(&e))
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

/// Takes a port's programs away, if they are there: also from the interface of this number.
///
/// # Errors
/// The system's error.
pub fn detach(port: usize, index: Option<u32>, pins: &Pins) -> io::Result<()> {
    pins.links(port).iter().try_for_each(|pin| remove(pin))?;
    match index.map(|index| Netlink::open()?.take_programs(index)) {
        // They went with the interface.
        Some(Err(e)) if e.raw_os_error() != Some(libc::ENODEV) => Err(e),
        _ => Ok(()),
    }
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
