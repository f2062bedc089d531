//! The router's configuration, checked and complete. [`read`] makes it from TOML, [`describe`] shows it.

mod advice;
mod classes;
mod customers;
pub mod datapath;
pub mod describe;
pub mod frames;
mod read;
pub mod role;
mod templates;

mod values {
    //! Values that many tables have: names, and DSCPs.

    use inprofile_experiment::text::Entry;
    use inprofile_experiment::text::problem::Wrong;
    use inprofile_live::code_points::Dscp;

    /// The longest name of an interface (IFNAMSIZ, less the end).
    const LONGEST_INTERFACE: usize = 15;

    /// Whether an interface can be called so.
    ///
    /// # Errors
    /// That it can't, and what to write.
    pub(crate) fn interface_name(name: &str) -> Result<(), Wrong> {
        let odd = |c: char| c.is_whitespace() || c == '/' || c.is_control();
        if name.is_empty() || name.len() > LONGEST_INTERFACE || name.contains(odd) {
            let remedy =
                format!("write one of those that `ip link` shows, at most {LONGEST_INTERFACE} bytes");
            return Err(Wrong::new("no interface can be called so", remedy));
        }
        Ok(())
    }

    /// A short name without blanks.
    pub(super) fn name(entry: &Entry<'_, '_>, example: &str) -> Option<String> {
        let name = entry.text(example)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            let remedy =
                format!("write at most 64 letters, digits, \"_\", \"-\" or \".\", such as {example}");
            return entry.wrong(Wrong::new("not a name", remedy));
        }
        Some(name.to_owned())
    }

    /// A DSCP: a number, or a name in quotes.
    pub(super) fn dscp(entry: &Entry<'_, '_>) -> Option<Dscp> {
        let example = "a DSCP such as \"AF11\", \"EF\" or 10";
        match entry.as_text() {
            Some(text) => Dscp::parse(text).or_else(|| {
                entry.wrong(Wrong::new(
                    "no such DSCP",
                    "write AF11 to AF43, EF, CS0 to CS7, BE, or a number from 0 to 63",
                ))
            }),
            None if entry.is_list() || entry.is_table() => entry.text(example).and(None),
            None => entry.count_in(0..=63).and_then(|n| Dscp::new(n as u8)),
        }
    }
}

#[cfg(test)]
mod tests;

use classes::queues;
use customers::customer_file;
use read::direction;

pub use customers::services;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use inprofile_core::marker::Action;
use inprofile_core::params::{Context, Value};
use inprofile_core::registry::{AnyAqm, AnyMarker};
use inprofile_core::units::{Backlog, Bytes, Rate};
use inprofile_experiment::text::named::Mechanism;
use inprofile_live::code_points::{CodePoints, Dscp};
use inprofile_live::datapath::Charge;
use inprofile_live::packet::Control;

use datapath::{Attach, Datapath};
use frames::{Frames, Policing};
use role::{Role, Unsold};
use services::Service;

pub use queues::{Own, Share};
pub use read::{parse, parse_for};
pub(crate) use values::interface_name;

/// Where the control socket is, if the file doesn't say.
pub const SOCKET: &str = "/run/inprofiled/control.sock";
/// Where the kernel's datapath is pinned, if the file doesn't say.
pub const PINS: &str = "/sys/fs/bpf/inprofiled";
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
    /// Where packets are handled.
    pub datapath: Datapath,
    /// The treatment of packets if the router finds itself at fault.
    pub fail: Fail,
    /// Size of a full IP packet: turns packets into bytes, and is the longest that passes.
    pub packet: Bytes,
    /// Bytes each packet takes on the link beside its IP packet.
    pub overhead: u32,
    /// The fewest bytes a packet counts for, overhead included.
    pub mpu: u32,
    /// The treatment of frames that cannot be metered as a customer's packets.
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
    /// How the kernel's datapath is put at the ports.
    pub attach: Attach,
    /// Where the kernel's datapath is pinned.
    pub pins: PathBuf,
    /// The group that may use the control socket, besides the user himself and root.
    pub group: Option<String>,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// Customers of a direction who have series of their own in metrics; the others are added up.
    pub most_customer_series: usize,
    /// Logs.
    pub log: Log,
    /// The policies from inside to outside, and from outside to inside. `None`: everything passes unchanged.
    pub directions: [Option<Direction>; 2],
}

/// The reaction when something cannot be trusted any more.
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

/// The reaction when the link at one port goes down.
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
    /// Lines of less importance are omitted.
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
    /// The code point that replaces those nobody has bought.
    pub unsold: Unsold,
    /// How much of each kind of control frames is let through.
    pub control: Policing,
    /// How much of that each sender may have.
    pub control_sender: Policing,
    /// Classes, first served first: that of control frames, those before the assured one, the assured one, best effort if it
    /// has its own.
    pub classes: Vec<Class>,
    /// The place of the assured class.
    pub assured: usize,
    /// Customers, in the order of the file.
    pub customers: Vec<Customer>,
    /// Names under which customers are counted together.
    pub groups: Vec<String>,
    /// The part of the link of those who have no queue of their own.
    pub shared: Share,
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
    /// Ports on the inside: any of these. None: whatever the port.
    pub ports: Vec<u16>,
    /// DSCPs that are metered; other packets of the customer's are nobody's.
    pub dscp: Vec<Dscp>,
    /// The contract.
    pub contract: Option<Rate>,
    /// Its meter.
    pub marker: Mechanism<AnyMarker>,
    /// Classes he may use beside the assured one.
    pub services: Vec<Service>,
    /// The circuits he is known by: any of these. None: whatever the circuit.
    pub circuits: Vec<Circuit>,
    /// The place of his group.
    pub group: Option<usize>,
    /// His own queues, if he has any.
    pub own: Option<Own>,
    /// The place where his counts and queues are kept, the same as long as he stays: below [`Direction::places`].
    pub place: u32,
}

impl Customer {
    /// Whether his marker drops what is out of profile.
    #[must_use]
    pub fn is_policed(&self) -> bool {
        matches!(self.marker.values.get("action"), Some(Value::Choice(word)) if *word == Action::Drop.word())
    }
}

/// The encapsulation of a customer's packets: a VLAN, one in another (QinQ), a PPPoE session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Circuit {
    /// The outer VLAN, and the one in it.
    pub vlans: [Option<u16>; 2],
    /// The session.
    pub session: Option<u16>,
}

impl std::fmt::Display for Circuit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.vlans {
            [Some(outer), Some(inner)] => write!(f, "VLAN {outer}.{inner}")?,
            [Some(outer), None] => write!(f, "VLAN {outer}")?,
            _ => {}
        }
        let between = if self.vlans[0].is_some() { ", " } else { "" };
        self.session.map_or(Ok(()), |session| write!(f, "{between}session {session}"))
    }
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
    /// The bytes charged for a packet beside its own.
    #[must_use]
    pub fn charge(&self) -> Charge {
        Charge { overhead: self.overhead, mpu: self.mpu }
    }

    /// Size of a full packet on the link.
    #[must_use]
    pub fn full_packet(&self) -> Bytes {
        Bytes(self.packet.0 + u64::from(self.overhead))
    }
}

impl Direction {
    /// The place of the class of control frames.
    pub const CONTROL: usize = 0;

    /// Places of customers are below this.
    #[must_use]
    pub fn places(&self) -> usize {
        self.customers.iter().map(|c| c.place as usize + 1).max().unwrap_or(0)
    }

    /// Gives customers the places they had in another configuration; those who come, places that nobody had there.
    pub fn keep_places(&mut self, before: Option<&Direction>) {
        let Some(before) = before else { return };
        let had: std::collections::HashMap<&str, u32> =
            before.customers.iter().map(|c| (c.name.as_str(), c.place)).collect();
        let mut taken = vec![false; before.places()];
        had.values().for_each(|place| taken[*place as usize] = true);
        let mut free = (0u32..).filter(|place| !taken.get(*place as usize).copied().unwrap_or(false));
        for customer in &mut self.customers {
            let new = || free.next().unwrap_or(u32::MAX);
            customer.place = had.get(customer.name.as_str()).copied().unwrap_or_else(new);
        }
    }

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

    /// Whether frames that are not IP or can't be read are dropped: by default where code points are bleached, which theirs would
    /// not be.
    #[must_use]
    pub fn drops_unreadable(&self, frames: &Frames) -> bool {
        frames.drop_unreadable.unwrap_or(self.unsold.bleach)
    }

    /// Whether circuits tell some customers.
    #[must_use]
    pub fn has_circuits(&self) -> bool {
        self.customers.iter().any(|c| !c.circuits.is_empty())
    }

    /// How much of all kinds of control frames together is let through of those whom no circuit tells: as much as of one kind, half
    /// of that where circuits tell customers. The burst is larger, so that some senders' bursts leave the others theirs.
    #[must_use]
    pub fn control_of_addresses(&self) -> Policing {
        let Policing { rate, burst } = if self.has_circuits() { self.control.half() } else { self.control };
        Policing { rate, burst: Bytes(burst.0 * 2) }
    }

    /// The sum of all customers' contracts; `None` without any.
    #[must_use]
    pub fn promised(&self) -> Option<Rate> {
        let contracts: Vec<u64> = self.customers.iter().filter_map(|c| c.contract).map(|r| r.0).collect();
        (!contracts.is_empty()).then(|| Rate(contracts.iter().fold(0, |a, b| a.saturating_add(*b))))
    }
}
