//! The drivers on real devices, in namespaces of the test's own.
#![cfg(target_os = "linux")]

use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::Duration;

use crate::support::namespace;
use inprofile_core::units::{Duration as Span, Time};
use inprofile_live::io::afpacket::{AfPacket, PortOptions};
use inprofile_live::io::replay::Frames;
use inprofile_live::io::sys::{Clock, interface_index};
use inprofile_live::io::tun::{self, Tun};
use inprofile_live::io::{Io, Port};
use inprofile_live::packet::{Layer, Transport, checksum, parse};

/// Runs `ip` in the calling thread's namespace.
fn ip(arguments: &str) {
    let run = Command::new("ip").args(arguments.split_whitespace()).output().expect("iproute2 is installed");
    assert!(run.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&run.stderr));
}

/// Keeps the kernel's own neighbour discovery out of the calling thread's namespace. Devices made later have none.
fn no_ipv6() {
    std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").expect("the namespace is ours");
}

/// The frames that come in until `n` of them are `wanted`, or two seconds have passed.
fn gather(driver: &mut dyn Io, n: usize, wanted: impl Fn(&[u8]) -> bool) -> Vec<(Port, Vec<u8>)> {
    let (end, mut seen) = (driver.now() + Span::from_millis(2_000), Vec::new());
    while seen.len() < n && driver.now() < end {
        driver.wait(Some(end)).expect("the system waits");
        driver
            .receive(&mut |_, port, frame| {
                if wanted(frame) {
                    seen.push((port, frame.to_vec()));
                }
            })
            .expect("the system gives");
    }
    seen
}

/// Frames of an experimental EtherType (RFC 9542), so that nobody else's traffic is taken for ours.
fn frame(number: u8, length: usize, tag: bool) -> Vec<u8> {
    let mut f = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8];
    if tag {
        f.extend([0x81, 0, 0x60, 42]);
    }
    f.extend([0x88, 0xb5, number]);
    f.resize(length, number);
    f
}

fn ours(f: &[u8]) -> bool {
    f[12..14] == [0x88, 0xb5] || (f[12..14] == [0x81, 0] && f[16..18] == [0x88, 0xb5])
}

#[test]
fn frames_cross_a_pair_of_interfaces_unchanged() {
    let Some(ns) = namespace() else { return };
    ns.within(|| {
        no_ipv6();
        ip("link add va type veth peer name vb");
        ip("link set va up");
        ip("link set vb up");
        let clock = Clock::start();
        let mut a = AfPacket::open(&[PortOptions::new("va")], clock).expect("va");
        let mut b =
            AfPacket::open(&[PortOptions { frames: 64, ..PortOptions::new("vb") }], clock).expect("vb");

        let frames: Vec<_> =
            (0..20).map(|i| frame(i, if i == 7 { 1514 } else { 60 + usize::from(i) }, i % 3 == 0)).collect();
        for (i, f) in frames.iter().enumerate() {
            a.send(0, f)?;
            if i == 10 {
                // Longer than the interface takes: it alone is lost.
                a.send(0, &frame(99, 3000, false))?;
            }
        }
        a.flush()?;
        // To look takes nothing away; tags are not put back yet.
        let (end, mut peeked) = (b.now() + Span::from_millis(2_000), Vec::new());
        while peeked.len() < frames.len() && b.now() < end {
            peeked.clear();
            b.peek(&mut |_, frame| peeked.push(frame.to_vec()));
        }
        let untagged =
            |f: &Vec<u8>| if f[12..14] == [0x81, 0] { [&f[..12], &f[16..]].concat() } else { f.clone() };
        assert_eq!(peeked, frames.iter().map(untagged).collect::<Vec<_>>());
        let seen = gather(&mut b, frames.len(), ours);
        let seen: Vec<_> = seen.into_iter().map(|(_, f)| f).collect();
        assert_eq!(seen, frames);
        assert_eq!((a.counts(0).sent, a.counts(0).refused), (20, 1));
        assert_eq!((b.oddities(0).tagged, b.oddities(0).unfinished_checksum), (7, 0));
        // What it sent itself it does not see.
        assert!(gather(&mut a, 1, ours).is_empty());

        // The ring fills, forwarding goes on, and what is missing has been counted.
        let missed = b.counts(0).missed;
        for _ in 0..20 {
            for f in &frames {
                a.send(0, f)?;
            }
        }
        a.flush()?;
        let got = gather(&mut b, 400, ours).len() as u64;
        assert!((64..400).contains(&got), "{got} of 400 in a ring of at least 64");
        // The kernel tells with the next frame that there is room for.
        a.send(0, &frames[0])?;
        a.flush()?;
        assert_eq!(gather(&mut b, 1, ours).len(), 1);
        assert_eq!(b.counts(0).missed - missed, 400 - got);

        // What waits to go out may take more memory than the system's default of 208 KiB, which holds 90 full frames: all that
        // the system grants, which is at least twice as much.
        let sockets = Command::new("ss").args(["-0", "-m"]).output()?;
        let sockets = String::from_utf8_lossy(&sockets.stdout).into_owned();
        let granted = |s: &str| s.split(',').find_map(|w| w.strip_prefix("tb")?.parse::<u64>().ok());
        let granted: Vec<u64> = sockets.lines().filter(|l| l.contains("p_raw")).filter_map(granted).collect();
        // Those that send, one a port.
        assert_eq!(granted.iter().filter(|bytes| **bytes >= 2 * 212_992).count(), 2, "{sockets}");

        // The port goes down and up.
        ip("link set va down");
        let refused = a.counts(0).refused;
        a.send(0, &frames[0])?;
        a.flush()?;
        assert_eq!(a.counts(0).refused, refused + 1);
        assert!(gather(&mut b, 1, ours).is_empty());
        ip("link set va up");
        std::thread::sleep(Duration::from_millis(50));
        a.send(0, &frames[1])?;
        a.flush()?;
        assert_eq!(gather(&mut b, 1, ours), [(0, frames[1].clone())]);
        Ok(())
    })
    .expect("namespaces work");
}

/// A frame that was cut off, as it was longer than a place of the ring, is neither looked at nor handed over.
#[test]
fn a_frame_that_was_cut_off_is_shown_to_nobody() {
    let Some(ns) = namespace() else { return };
    ns.within(|| {
        no_ipv6();
        ip("link add va type veth peer name vb");
        ip("link set va up");
        ip("link set vb up");
        let clock = Clock::start();
        let mut a = AfPacket::open(&[PortOptions::new("va")], clock).expect("va");
        let options = PortOptions { longest: 200, frames: 64, ..PortOptions::new("vb") };
        let mut b = AfPacket::open(&[options], clock).expect("vb");
        let frames =
            [frame(1, 100, false), frame(2, 1000, false), frame(3, 1000, true), frame(4, 100, false)];
        for f in &frames {
            a.send(0, f)?;
        }
        a.flush()?;
        let (end, mut peeked) = (b.now() + Span::from_millis(2_000), Vec::new());
        while peeked.last().is_none_or(|f: &Vec<u8>| f[14] != 4) && b.now() < end {
            peeked.clear();
            b.peek(&mut |_, frame| peeked.push(frame.to_vec()));
        }
        let whole = [frames[0].clone(), frames[3].clone()];
        assert_eq!(peeked.iter().map(Vec::len).collect::<Vec<_>>(), [100, 100]);
        let seen: Vec<_> = gather(&mut b, 2, ours).into_iter().map(|(_, f)| f).collect();
        assert!(peeked == whole && seen == whole);
        assert_eq!(b.oddities(0).too_long, 2);
        Ok(())
    })
    .expect("namespaces work");
}

/// A segment of a TCP connection with its checksums right, from the byte `seq` on.
fn segment(seq: u32, id: u16, flags: u8, payload: usize) -> Vec<u8> {
    let mut f = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0, 0x45, 0x28];
    f.extend((40 + payload as u16).to_be_bytes());
    f.extend(id.to_be_bytes());
    f.extend([0x40, 0, 64, 6, 0, 0, 10, 1, 0, 11, 10, 2, 0, 12, 0x13, 0x88, 0, 80]);
    f.extend(seq.to_be_bytes());
    f.extend([0, 0, 0, 1, 0x50, flags, 1, 0, 0, 0, 0, 0]);
    f.extend((0..payload).map(|i| (seq as usize + i) as u8));
    let check = checksum::check(&f[14..34]);
    f[24..26].copy_from_slice(&check.to_be_bytes());
    let pseudo = [&f[26..34], &[0, 6], &(20 + payload as u16).to_be_bytes()].concat();
    let check = !checksum::add(checksum::sum(&pseudo), checksum::sum(&f[34..]));
    f[50..52].copy_from_slice(&check.to_be_bytes());
    f
}

fn kernel_is_since(version: (u32, u32)) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("the kernel has a version");
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|n| n.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= version
}

/// A UDP datagram of the flow that `segment` has too.
fn datagram(id: u16, payload: usize) -> Vec<u8> {
    let mut f = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0, 0x45, 0x28];
    f.extend((28 + payload as u16).to_be_bytes());
    f.extend(id.to_be_bytes());
    f.extend([0x40, 0, 64, 17, 0, 0, 10, 1, 0, 11, 10, 2, 0, 12, 0x13, 0x88, 0, 80]);
    f.extend((8 + payload as u16).to_be_bytes());
    f.extend([0, 0]);
    f.extend((0..payload).map(|i| (usize::from(id) + i) as u8));
    let check = checksum::check(&f[14..34]);
    f[24..26].copy_from_slice(&check.to_be_bytes());
    let pseudo = [&f[26..34], &[0, 17], &(8 + payload as u16).to_be_bytes()].concat();
    let check = !checksum::add(checksum::sum(&pseudo), checksum::sum(&f[34..]));
    f[40..42].copy_from_slice(&check.to_be_bytes());
    f
}

/// Switches off the port's transmit checksums, scattered buffers, TSO, GSO and GRO, as `ethtool -K` does.
#[expect(unsafe_code, reason = "an ioctl")]
fn without_offloads(port: &str) -> std::io::Result<()> {
    // linux/ethtool.h: ETHTOOL_STXCSUM, ETHTOOL_SSG, ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO.
    const SETS: [u32; 5] = [0x17, 0x19, 0x1f, 0x24, 0x2c];
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    for set in SETS {
        let mut command = [set, 0];
        // SAFETY: all bits zero are an ifreq.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(port.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = command.as_mut_ptr().cast();
        // SAFETY: these commands read the two words behind the request; both live through the call.
        if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
    }
    Ok(())
}

/// A connection's segments, among them short ones, PSH, gaps, wrong checksums, and frames of others; the kernel cuts trains
/// into what came.
#[test]
fn trains_arrive_as_the_frames_they_are_made_of() {
    let Some(ns) = namespace() else { return };
    ns.within(|| {
        no_ipv6();
        ip("link add va type veth peer name vb");
        // As behind ports that have no offloads: the kernel has to do all the cutting.
        for port in ["va", "vb"] {
            without_offloads(port)?;
            ip(&format!("link set {port} up"));
        }
        let (mut seq, mut id, mut sent) = (u32::MAX - 100_000, 65_500u16, Vec::new());
        for n in 0..3_000u32 {
            let payload = if n % 29 == 28 { 700 } else { 1_448 };
            let mut f = segment(seq, id, if n % 37 == 36 { 0x18 } else { 0x10 }, payload);
            match n % 101 {
                50 => f[60] ^= 1,
                51 => sent.push(frame(n as u8, 100, false)),
                52 => seq = seq.wrapping_add(1_000),
                _ => {}
            }
            (seq, id) = (seq.wrapping_add(payload as u32), id.wrapping_add(1));
            sent.push(f);
        }
        let open = |port| AfPacket::open(&[PortOptions::new(port)], Clock::start());
        let wanted = |f: &[u8]| f[..6] == [2, 0, 0, 0, 0, 9];
        let pass = |a: &mut AfPacket, b: &mut AfPacket, sent: &[Vec<u8>]| -> std::io::Result<()> {
            // No more at a time than the other end's input queue takes.
            for some in sent.chunks(500) {
                let mut frames = Frames::default();
                some.iter().for_each(|f| frames.push(Time::ZERO, f));
                a.send_all(0, &frames)?;
                let seen: Vec<_> = gather(b, some.len(), wanted).into_iter().map(|(_, f)| f).collect();
                assert!(seen == some, "{} of {} frames, or others", seen.len(), some.len());
            }
            Ok(())
        };
        let (mut a, mut b) = (open("va")?, open("vb")?);
        pass(&mut a, &mut b, &sent)?;
        let odd = a.oddities(0);
        assert_eq!((a.counts(0).sent, a.counts(0).refused), (sent.len() as u64, 0));
        assert!(
            odd.in_trains > 2_500 && odd.trains < 400 && b.oddities(0).unfinished_checksum == 0,
            "{odd:?}"
        );

        // Datagrams: small and full ones, shorter ones between, wrong and missing checksums, a segment.
        let mut udp: Vec<Vec<u8>> = (0..1_000u16)
            .map(|n| datagram(65_000u16.wrapping_add(n), if n % 29 == 28 { 5 } else { 22 }))
            .chain((0..500).map(|n| datagram(n, 1_472)))
            .collect();
        udp[100][60] ^= 1;
        udp[200][40..42].fill(0);
        udp[300] = segment(seq, id, 0x10, 22);
        pass(&mut a, &mut b, &udp)?;
        let trains = [odd, a.oddities(0)].map(|o| (o.in_trains, o.trains));
        let [segments, both] = trains;
        // An older kernel cuts no datagrams: it refuses one train, and then has each by itself.
        let least = if kernel_is_since((6, 2)) { 1_400 } else { 0 };
        assert!(both.0 - segments.0 >= least && both.1 - segments.1 < 100, "{trains:?}");
        let before = a.counts(0);
        assert_eq!((before.sent, before.refused), ((sent.len() + udp.len()) as u64, 0));

        // Longer than the port lets out by now: none goes, and each is counted.
        ip("link set va mtu 1400");
        let mut frames = Frames::default();
        sent[..20].iter().for_each(|f| frames.push(Time::ZERO, f));
        a.send_all(0, &frames)?;
        assert_eq!((a.counts(0).sent, a.counts(0).refused), (before.sent, before.refused + 20));
        ip("link set va mtu 1500");

        // A port with a queue of its own is sent to past it, so frame by frame.
        let queue = "qdisc add dev va root pfifo limit 10".split(' ');
        let run = Command::new("tc").args(queue).output().expect("iproute2 is installed");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let mut a = open("va")?;
        pass(&mut a, &mut b, &sent[..500])?;
        assert_eq!((a.oddities(0).trains, a.counts(0).sent), (0, 500));

        // A port is bound to none, and to another: by whether that has a queue it is sent trains or frames.
        let (va, vb) = (interface_index("va")?, interface_index("vb")?);
        ip("link add ua type veth peer name ub");
        for port in ["ua", "ub"] {
            without_offloads(port)?;
            ip(&format!("link set {port} up"));
        }
        let (ua, ub) = (interface_index("ua")?, interface_index("ub")?);
        let (to_a, to_b) = (a.binding(0)?, b.binding(0)?);
        assert_eq!((to_a.index()?, to_b.index()?), (Some(va), Some(vb)));
        a.bind(0, None)?;
        assert_eq!(to_a.index()?, None);
        let mut frames = Frames::default();
        sent[..70].iter().for_each(|f| frames.push(Time::ZERO, f));
        a.send_all(0, &frames)?;
        assert_eq!((a.counts(0).sent, a.counts(0).refused), (500, 70));
        a.bind(0, Some(ua))?;
        b.bind(0, Some(ub))?;
        assert_eq!((to_a.index()?, to_b.index()?), (Some(ua), Some(ub)));
        let trains = |a: &AfPacket| a.oddities(0).trains;
        pass(&mut a, &mut b, &sent[..500])?;
        assert!(trains(&a) > 0);
        a.bind(0, Some(va))?;
        b.bind(0, Some(vb))?;
        let before = trains(&a);
        pass(&mut a, &mut b, &sent[..500])?;
        assert_eq!(trains(&a), before);
        // One that isn't there: bound to none.
        ip("link del ua");
        assert_eq!(a.bind(0, Some(ua)).unwrap_err().raw_os_error(), Some(libc::ENODEV));
        assert_eq!(to_a.index()?, None);
        // One that goes lets go of the port, and what came before is still there.
        a.bind(0, Some(va))?;
        let mut frames = Frames::default();
        sent[..20].iter().for_each(|f| frames.push(Time::ZERO, f));
        a.send_all(0, &frames)?;
        std::thread::sleep(Duration::from_millis(50));
        ip("link del va");
        assert_eq!((to_a.index()?, to_b.index()?), (None, None));
        a.send_all(0, &frames)?;
        assert_eq!(a.counts(0).refused, 90);
        assert_eq!(gather(&mut b, 20, wanted).len(), 20);
        Ok(())
    })
    .expect("namespaces work");
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    let Some(ns) = namespace() else { return };
    let e =
        ns.within(|| AfPacket::open(&[PortOptions::new("nosuch0")], Clock::start()).map(|_| ())).unwrap_err();
    assert_eq!(
        e.to_string(),
        "interface `nosuch0`: there is no interface `nosuch0`: `ip link` shows those there are"
    );
}

/// A layer-3 tunnel's packets would be read as Ethernet, wrongly.
#[test]
fn an_interface_without_ethernet_is_refused() {
    let Some(ns) = namespace() else { return };
    let (first, later) = ns
        .within(|| {
            let _device = tun::create("tunnel0")?;
            ip("link add va type veth peer name vb");
            let first = AfPacket::open(&[PortOptions::new("tunnel0")], Clock::start()).map(|_| ());
            let mut io = AfPacket::open(&[PortOptions::new("va")], Clock::start())?;
            let later = io.bind(0, Some(interface_index("tunnel0")?));
            assert_eq!(io.binding(0)?.index()?, None);
            Ok((first, later))
        })
        .expect("namespaces work");
    let text = first.unwrap_err().to_string();
    assert!(
        text.starts_with("interface `tunnel0`: its frames have no Ethernet header (link type 65534)"),
        "{text}"
    );
    assert_eq!(later.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn a_tun_device_is_a_host_on_a_wire() {
    let Some(ns) = namespace() else { return };
    ns.within(|| {
        let device = tun::create("host0")?;
        ip("addr add 10.9.0.1/24 dev host0");
        ip("link set host0 up mtu 1040");
        let mut wire = Tun::new(vec![device.into()], Clock::start())?;
        let socket = UdpSocket::bind("10.9.0.1:4000")?;
        socket.set_read_timeout(Some(Duration::from_secs(2)))?;
        let udp = |f: &[u8]| matches!(parse(Layer::Ip, f), Ok(h) if h.transport == (Transport::Udp { ports: (4000, 5000) }));
        // Larger than the MTU: it must come as fragments, none longer.
        socket.send_to(&[7; 100], "10.9.0.2:5000")?;
        let seen = gather(&mut wire, 1, udp);
        assert_eq!((seen.len(), seen[0].1.len()), (1, 128));

        // Back: addresses and ports the other way round; UDP without a checksum is allowed over IPv4.
        let mut back = seen[0].1.clone();
        back[12..20].copy_from_slice(&[10, 9, 0, 2, 10, 9, 0, 1]);
        back[20..28].copy_from_slice(&[5000u16.to_be_bytes(), 4000u16.to_be_bytes(), 108u16.to_be_bytes(), [0, 0]].concat());
        wire.send(0, &back)?;
        let mut room = [0; 200];
        let (n, from) = socket.recv_from(&mut room)?;
        assert_eq!((n, from.to_string().as_str()), (100, "10.9.0.2:5000"));
        // What is no packet is refused and counted.
        wire.send(0, &[0xff; 20])?;
        assert_eq!((wire.counts(0).sent, wire.counts(0).refused), (1, 1));
        // Waiting ends when it should, and not before.
        let until = wire.now() + Span::from_millis(3);
        while wire.now() < until {
            wire.wait(Some(until))?;
            wire.receive(&mut |_, _, _| {})?;
        }
        assert!(wire.now() < until + Span::from_millis(500) && until > Time::ZERO);
        Ok(())
    })
    .expect("namespaces work");
}
