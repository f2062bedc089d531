//! What the router's file says: checked and complete. [`read`] makes it from TOML, [`describe`] shows it.

mod advice;
mod customers;
pub mod describe;
mod direction;
pub mod frames;
mod read;
pub mod role;
pub mod services;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use inprofile_config::named::Mechanism;
use inprofile_core::params::Context;
use inprofile_core::registry::{AnyAqm, AnyMarker};
use inprofile_core::units::{Backlog, Bytes, Rate};
use inprofile_live::code_points::{CodePoints, Dscp};
use inprofile_live::packet::Control;

use frames::{Frames, Policing};
use role::{Role, Unsold};
use services::Service;

pub(crate) use read::interface_name;
pub use read::parse;

/// Where the control socket is, if the file doesn't say.
pub const SOCKET: &str = "/run/inprofiled/control.sock";
/// The names of the directions, by the port where packets come in.
pub const DIRECTIONS: [&str; 2] = ["upstream", "downstream"];
/// The most customers of one direction.
pub const MOST_CUSTOMERS: usize = 10_000;
/// The most classes of one direction.
pub const MOST_CLASSES: usize = 16;

/// The whole file.
#[derive(Clone, Debug)]
pub struct Config {
    /// Interfaces: inside, outside.
    pub ports: [String; 2],
    /// What happens to packets if the router finds itself at fault.
    pub fail: Fail,
    /// Size of a full IP packet: turns packets into bytes, and is the longest that passes.
    pub packet: Bytes,
    /// Bytes each packet takes on the link beside its IP packet.
    pub overhead: u32,
    /// The fewest bytes a packet counts for, overhead included.
    pub mpu: u32,
    /// What becomes of frames that can't be metered as somebody's packets.
    pub frames: Frames,
    /// DSCPs of the three colours.
    pub points: CodePoints,
    /// Flows that can be told apart at a time.
    pub flows: u32,
    /// Whether the loss of a link at one port is passed on to the other.
    pub link_loss: LinkLoss,
    /// Whether offloads of the ports are switched off at the start and restored at the end.
    pub fix_offloads: bool,
    /// Whom to become once everything is open.
    pub user: Option<String>,
    /// Path of the control socket.
    pub socket: PathBuf,
    /// The group that may use the control socket, besides the user himself and root.
    pub group: Option<String>,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// Logs.
    pub log: Log,
    /// What is done from inside to outside, and from outside to inside. `None`: everything passes as it is.
    pub directions: [Option<Direction>; 2],
}

/// What to do when something can't be trusted any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fail {
    /// Forward everything, unmarked and unshaped.
    Open,
    /// Forward nothing, and end.
    Closed,
}

impl Fail {
    /// As in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["open", "closed"][self as usize]
    }
}

/// What to do when the link at one port goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLoss {
    /// The other port stays as it is.
    Ignore,
    /// The other port is switched off for as long, as its neighbour would see at the end of a cable.
    PassOn,
}

impl LinkLoss {
    /// As in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["ignore", "pass_on"][self as usize]
    }
}

/// How important a line of the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something failed.
    Error,
    /// Something is odd.
    Warn,
    /// Something was done.
    Info,
}

impl Level {
    /// As in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["error", "warn", "info"][self as usize]
    }
}

/// Where the log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Lines of less importance are left out.
    pub level: Level,
    /// The file; `None`: standard error.
    pub file: Option<PathBuf>,
}

/// One way through the router.
#[derive(Clone, Debug)]
pub struct Direction {
    /// The shaped rate.
    pub rate: Rate,
    /// Whether code points of what comes in are believed.
    pub role: Role,
    /// What code points that nobody has bought become.
    pub unsold: Unsold,
    /// How much of each kind of control frames is let through.
    pub control: Policing,
    /// Classes, first served first: that of control frames, those before the assured one, the assured one, best effort if it
    /// has its own.
    pub classes: Vec<Class>,
    /// The place of the assured class.
    pub assured: usize,
    /// Customers, in the order of the file.
    pub customers: Vec<Customer>,
    /// The marker of all assured packets together, after their customers'.
    pub aggregate: Option<Mechanism<AnyMarker>>,
}

/// A queue of its own.
#[derive(Clone, Debug)]
pub struct Class {
    /// Its name in metrics.
    pub name: String,
    /// DSCPs that belong to it; none for the assured class and best effort.
    pub dscp: Vec<Dscp>,
    /// Its discipline.
    pub aqm: Mechanism<AnyAqm>,
    /// Its hard limit.
    pub limit: Backlog,
    /// The most it is given of the link; `None`: whatever classes before it leave.
    pub rate: Option<Rate>,
}

/// Whose packets are metered.
#[derive(Clone, Debug)]
pub struct Customer {
    /// The name in metrics.
    pub name: String,
    /// Addresses on the inside: any of these. None: whatever the address.
    pub prefixes: Vec<Prefix>,
    /// Ports, at either end: any of these. None: whatever the port.
    pub ports: Vec<u16>,
    /// DSCPs that are metered; other packets of the customer's are nobody's.
    pub dscp: Vec<Dscp>,
    /// What was promised.
    pub contract: Option<Rate>,
    /// What meters it.
    pub marker: Mechanism<AnyMarker>,
    /// Classes he may use beside the assured one.
    pub services: Vec<Service>,
}

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// The first of them.
    pub address: IpAddr,
    /// How many bits are the same.
    pub bits: u8,
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Config {
    /// Size of a full packet on the link.
    #[must_use]
    pub fn full_packet(&self) -> Bytes {
        Bytes(self.packet.0 + u64::from(self.overhead))
    }
}

impl Direction {
    /// The place of the class of control frames.
    pub const CONTROL: usize = 0;

    /// How many markers and policers there are: customers', the aggregate's, services', and of control frames.
    #[must_use]
    pub fn most_markers(&self) -> usize {
        let services: usize = self.customers.iter().map(|c| c.services.len()).sum();
        self.customers.len() + 1 + services + Control::ALL.len()
    }

    /// Where a class's discipline is.
    #[must_use]
    pub fn place_of(&self, class: &Class, packet: Bytes) -> Context {
        let link_rate = Some(class.rate.unwrap_or(self.rate));
        Context { link_rate, contract: None, packet, limit: Some(class.limit) }
    }

    /// Where a customer's marker is.
    #[must_use]
    pub fn place_of_customer(&self, customer: &Customer, packet: Bytes) -> Context {
        Context { link_rate: None, contract: customer.contract, packet, limit: None }
    }

    /// Where the aggregate's marker is: its contract is the sum of the customers'.
    #[must_use]
    pub fn place_of_aggregate(&self, packet: Bytes) -> Context {
        Context { link_rate: Some(self.rate), contract: self.promised(), packet, limit: None }
    }

    /// What all customers together were promised; `None` if nothing was.
    #[must_use]
    pub fn promised(&self) -> Option<Rate> {
        let contracts: Vec<u64> = self.customers.iter().filter_map(|c| c.contract).map(|r| r.0).collect();
        (!contracts.is_empty()).then(|| Rate(contracts.iter().fold(0, |a, b| a.saturating_add(*b))))
    }
}
