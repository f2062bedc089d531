//! A host: a network namespace with one end of a TUN device, whose other end is in this process.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use crate::io::netlink::{Metrics, Netlink};
use crate::io::{sys, tun};
use crate::namespace::Namespace;

/// The device's name inside every host.
const DEVICE: &str = "host0";

/// The settings of a host's TCP that can differ between namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Timestamps (RFC 7323): twelve bytes in every header.
    pub timestamps: bool,
    /// Asks for ECN; every host agrees to it if asked.
    pub ecn: bool,
}

/// A route to another host.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Our address on it.
    pub own: Ipv4Addr,
    /// The other's.
    pub other: Ipv4Addr,
    /// The settings of TCP on it.
    pub metrics: Metrics,
}

/// A host.
#[derive(Debug)]
pub struct Host {
    /// Where it lives.
    pub namespace: Namespace,
}

impl Host {
    /// Makes one; our end of its device comes with it.
    ///
    /// # Errors
    /// The system's error, and the step in which it arose.
    pub fn create(stack: Stack, mtu: u32, routes: &[Route]) -> io::Result<(Host, OwnedFd)> {
        let namespace = Namespace::create()?;
        let device = namespace.within(|| {
            set("ipv6/conf/default/disable_ipv6", "1")?;
            set("ipv4/tcp_sack", flag(stack.sack))?;
            set("ipv4/tcp_timestamps", flag(stack.timestamps))?;
            set("ipv4/tcp_ecn", if stack.ecn { "1" } else { "2" })?;
            // Otherwise a connection starts with what the one before it to the same host had found out.
            set("ipv4/tcp_no_metrics_save", "1")?;
            let device = tun::create(DEVICE).map_err(while_doing("making a TUN device"))?;
            let index = sys::interface_index(DEVICE)?;
            let netlink = Netlink::open()?;
            netlink.up(index, mtu).map_err(while_doing("setting the device up"))?;
            for route in routes {
                netlink.address(index, route.own).map_err(while_doing("giving an address"))?;
                netlink
                    .route(index, route.other, route.own, &route.metrics)
                    .map_err(while_doing("setting a route"))?;
            }
            Ok(OwnedFd::from(device))
        })?;
        Ok((Host { namespace }, device))
    }
}

fn flag(on: bool) -> &'static str {
    if on { "1" } else { "0" }
}

/// Sets one of the namespace's own settings.
fn set(what: &'static str, value: &str) -> io::Result<()> {
    fs::write(format!("/proc/sys/net/{what}"), value).map_err(while_doing(what))
}

fn while_doing(what: &'static str) -> impl Fn(io::Error) -> io::Error {
    move |e| {
        // The error should also say what to do, and the number of the error is lost with its text.
        let full = matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
        io::Error::new(e.kind(), format!("{what}: {e}{}", if full { sys::MORE_FILES } else { "" }))
    }
}
