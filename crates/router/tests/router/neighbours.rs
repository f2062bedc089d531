//! Whoever is at the other end of a port's cable, as a machine of its own, and its ways to the router's machine.

use std::io;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use inprofile_core::units::Duration as Span;
use inprofile_live::io::Io;
use inprofile_live::io::afpacket::{AfPacket, PortOptions};
use inprofile_live::io::sys::{Clock, interface_index};
use inprofile_live::namespace::Namespace;
use inprofile_live::packet::checksum;

use crate::bench::Bench;
use crate::frames::{self, Udp};

/// The ports, inside and outside.
pub const PORTS: [&str; 2] = ["lan0", "wan0"];
/// A neighbour's own end of the cable.
const HOST: &str = "h0";
/// How long what should not come is waited for; and what should, while neighbours may still be looked for in vain.
const PATIENCE: [Duration; 2] = [Duration::from_millis(400), Duration::from_secs(8)];
/// A service of the router's machine.
pub const SERVICE: u16 = 7000;

/// A neighbour's ways to the machine, and whether each led there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ways {
    /// TCP to the port's own address: IPv4, and IPv6's link-local one.
    pub tcp: [bool; 2],
    /// A datagram to an address of another interface: IPv4, for which the machine answers ARP, and IPv6.
    pub datagram: [bool; 2],
    /// A router advertisement: gave the port an address, and the machine a default route.
    pub advertisement: [bool; 2],
}

/// All of them, or none.
pub fn all(open: bool) -> Ways {
    Ways { tcp: [open; 2], datagram: [open; 2], advertisement: [open; 2] }
}

/// A bench whose ends are two machines; the router's has a TCP and a UDP service at every address, and addresses at another
/// interface.
pub struct Street {
    pub bench: Bench,
    pub neighbours: [Namespace; 2],
    /// First bytes of the datagrams that the machine's service got.
    got: Arc<Mutex<Vec<u32>>>,
    sent: AtomicU32,
}

/// Runs `ip` with these words, a command each line.
fn ip(lines: &str) -> io::Result<()> {
    for line in lines.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let out = Command::new("ip").args(line.split_whitespace()).output()?;
        if !out.status.success() {
            return Err(io::Error::other(format!("ip {line}: {}", String::from_utf8_lossy(&out.stderr))));
        }
    }
    Ok(())
}

/// The output of `ip`.
fn ip_says(words: &str) -> io::Result<String> {
    let out = Command::new("ip").args(words.split_whitespace()).output()?;
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// No waiting for duplicates of an address.
fn addresses_at_once() -> io::Result<()> {
    std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "0")?;
    std::fs::write("/proc/sys/net/ipv6/conf/default/accept_dad", "0")
}

/// The Ethernet address of an interface in this thread's namespace.
fn mac(interface: &str) -> io::Result<[u8; 6]> {
    let says = ip_says(&format!("-o link show {interface}"))?;
    let text = says.split("link/ether ").nth(1).and_then(|t| t.split(' ').next());
    let bytes: Vec<u8> = text
        .into_iter()
        .flat_map(|t| t.split(':'))
        .filter_map(|byte| u8::from_str_radix(byte, 16).ok())
        .collect();
    bytes.try_into().map_err(|_| io::Error::other(says))
}

/// The link-local address that an interface of this Ethernet address gives itself (RFC 4291, appendix A).
fn link_local(mac: [u8; 6]) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac;
    let word = |high, low| u16::from_be_bytes([high, low]);
    Ipv6Addr::new(0xfe80, 0, 0, 0, word(a ^ 2, b), word(c, 0xff), word(0xfe, d), word(e, f))
}

impl Street {
    pub fn new(name: &str) -> Option<Street> {
        let bench = Bench::new(name)?;
        let neighbours = [0, 1].map(|_| Namespace::create().expect("the bench has one"));
        let got = Arc::new(Mutex::new(Vec::new()));
        let street = Street { bench, neighbours, got, sent: AtomicU32::new(0) };
        let within = |work: &(dyn Fn() -> io::Result<()> + Sync)| street.bench.namespace.within(work);
        within(&|| {
            addresses_at_once()?;
            // Those that a bench comes with have both ends here.
            ip("link del h0\n link del h1\n addr add 198.51.100.1/32 dev lo\n addr add 2001:db8:99::1/128 dev lo")?;
            let tcp = TcpListener::bind(("::", SERVICE))?;
            thread::spawn(move || tcp.incoming().for_each(drop));
            let udp = UdpSocket::bind(("::", SERVICE))?;
            let got = Arc::clone(&street.got);
            thread::spawn(move || {
                let mut bytes = [0; 4];
                while udp.recv(&mut bytes).is_ok() {
                    got.lock().unwrap().push(u32::from_be_bytes(bytes));
                }
            });
            Ok(())
        })
        .expect("a machine with services");
        (0..2).for_each(|side| street.plug(side));
        Some(street)
    }

    /// Lays the cable between a port and its neighbour.
    pub fn plug(&self, side: usize) {
        use std::os::fd::AsRawFd;
        let there = &self.neighbours[side];
        // Request, it says that it is a router (RFC 4861 §4.4).
        let router = || std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1");
        there.within(|| addresses_at_once().and_then(|()| router())).expect("namespaces work");
        let fd = there.descriptor().as_raw_fd();
        let (pid, port, net) = (std::process::id(), PORTS[side], side + 2);
        let lines = format!(
            "link add {port} type veth peer name {HOST} netns /proc/{pid}/fd/{fd}
             link set {port} up
             addr add 192.0.{net}.1/24 dev {port}"
        );
        self.bench.namespace.within(|| ip(&lines)).expect("a cable");
        let here = self.port_mac(side).map(|b| format!("{b:02x}")).join(":");
        let lines = format!(
            "link set lo up
             link set {HOST} up
             addr add 192.0.{net}.2/24 dev {HOST}
             addr add 2001:db8:99::{net}/64 dev {HOST}
             route add 198.51.100.1/32 dev {HOST}
             neigh add 2001:db8:99::1 lladdr {here} dev {HOST}"
        );
        there.within(|| ip(&lines)).expect("a neighbour");
    }

    pub fn port_mac(&self, side: usize) -> [u8; 6] {
        self.bench.namespace.within(|| mac(PORTS[side])).expect("the port is there")
    }

    /// Tries them all from this side, which should be `open` or not.
    pub fn ways(&self, side: usize, open: bool) -> Ways {
        let (port, there) = (self.port_mac(side), &self.neighbours[side]);
        self.advertise(side);
        let sent = ["198.51.100.1", "2001:db8:99::1"].map(|to| self.datagram(side, to));
        let own = [format!("192.0.{}.1:{SERVICE}", side + 2).parse().expect("an address"), {
            let scope = there.within(|| interface_index(HOST)).expect("it is there");
            SocketAddr::V6(SocketAddrV6::new(link_local(port), SERVICE, 0, scope))
        }];
        let tcp = own.map(|to| self.connects(side, to, open));
        let (port, prefix) = (PORTS[side], format!("2001:db8:77:{side}:"));
        let ways = || {
            let got = self.got.lock().unwrap().clone();
            let says = |words: String| self.bench.namespace.within(|| ip_says(&words)).expect("ip runs");
            let advertisement = [
                says(format!("-6 addr show dev {port}")).contains(&prefix),
                says(format!("-6 route show dev {port}")).contains("default"),
            ];
            Ways { tcp, datagram: sent.map(|number| got.contains(&number)), advertisement }
        };
        let until = Instant::now() + PATIENCE[usize::from(open)];
        while ways() != all(true) && Instant::now() < until {
            thread::sleep(Duration::from_millis(20));
        }
        let found = ways();
        let forget = format!("-6 addr flush dev {port} scope global\n -6 route flush dev {port} proto ra");
        self.bench.namespace.within(|| ip(&forget)).expect("it is forgotten");
        found
    }

    /// Whether a neighbour gets through to this address, which should be `open` to him or not.
    pub fn connects(&self, side: usize, to: SocketAddr, open: bool) -> bool {
        let patience = PATIENCE[usize::from(open)];
        self.neighbours[side].within(|| TcpStream::connect_timeout(&to, patience)).is_ok()
    }

    /// Sends one; its number.
    fn datagram(&self, side: usize, to: &str) -> u32 {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        let send = || {
            // What ARP said before is forgotten.
            ip(&format!("-4 neigh flush dev {HOST}"))?;
            let from = if to.contains(':') { "[::]:0" } else { "0.0.0.0:0" };
            UdpSocket::bind(from)?.send_to(&number.to_be_bytes(), (to, SERVICE))
        };
        self.neighbours[side].within(send).expect("it is sent");
        number
    }

    /// RFC 4861 §4.2, with a prefix to make addresses of (§4.6.2).
    fn advertise(&self, side: usize) {
        let there = &self.neighbours[side];
        let from = there.within(|| mac(HOST)).expect("it is there");
        let mut icmp = vec![134, 0, 0, 0, 64, 0];
        icmp.extend(1800u16.to_be_bytes());
        icmp.extend([0; 8]);
        icmp.extend([3, 4, 64, 0xc0]);
        icmp.extend([3600u32, 3600, 0].map(u32::to_be_bytes).concat());
        icmp.extend(Ipv6Addr::new(0x2001, 0xdb8, 0x77, side as u16, 0, 0, 0, 0).octets());
        let (source, all) = (link_local(from).octets(), Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1).octets());
        let pseudo = [&source[..], &all, &[0, 0, 0, icmp.len() as u8, 0, 0, 0, 58], &icmp].concat();
        let sum = checksum::check(&pseudo).to_be_bytes();
        icmp[2..4].copy_from_slice(&sum);
        let head = [&[0x33, 0x33, 0, 0, 0, 1], &from[..], &[0x86, 0xdd, 0x60, 0, 0, 0, 0, icmp.len() as u8]];
        let frame = [&head.concat()[..], &[58, 255], &source, &all, &icmp].concat();
        let mut io = self.wire(side);
        io.send(0, &frame).and_then(|()| io.flush()).expect("it is sent");
    }

    /// A neighbour's end, frame by frame.
    fn wire(&self, side: usize) -> AfPacket {
        let open = || AfPacket::open(&[PortOptions::new(HOST)], Clock::start());
        self.neighbours[side].within(open).expect("packet sockets")
    }

    /// How many of forty datagrams reach the neighbour at the other port.
    pub fn forwarded(&self, from: usize) -> usize {
        let (mut one, mut other) = (self.wire(from), self.wire(1 - from));
        (0..40).for_each(|n| one.send(0, &Udp::numbered(n).v4()).expect("it is sent"));
        one.flush().expect("it is sent");
        let (mut got, until) = (0, other.now() + Span::from_millis(PATIENCE[0].as_millis() as u64));
        while other.now() < until {
            other.wait(Some(until)).expect("the system waits");
            other.receive(&mut |_, _, f| got += usize::from(frames::read(f).is_some())).expect("it gives");
        }
        got
    }

    /// Frames that leave a port on behalf of the machine itself while `work` is done and a moment after, told by its
    /// Ethernet address.
    pub fn heard(&self, side: usize, work: impl FnOnce()) -> Vec<Vec<u8>> {
        let mut io = self.wire(side);
        let ours = self.port_mac(side);
        work();
        let (mut heard, until) = (Vec::new(), io.now() + Span::from_millis(2_000));
        while io.now() < until {
            io.wait(Some(until)).expect("the system waits");
            io.receive(&mut |_, _, frame| {
                if frame[6..12] == ours {
                    heard.push(frame.to_vec());
                }
            })
            .expect("the system gives");
        }
        heard
    }
}
