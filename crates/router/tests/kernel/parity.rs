//! Every frame goes through the kernel's programs and through the router in user space, whose meters are the core's: what leaves, its
//! bytes and all counts are the same.

use std::collections::BTreeMap;

use inprofile_core::rng::Rng;
use inprofile_core::units::{Duration, Time};
use inprofile_router::kernel::places;

use crate::frames::{Ip, Wrap, below, control_frames, good, mutate, other, random};
use crate::tried::{Tried, User, can_be_tried, config, permitted};

/// An edge and a core, customers of every kind, each with a meter of his own, and what one can buy.
const MIXED: &str = r#"
frames.unreadable = "best_effort"
overhead = "38 B"
mpu = "84 B"
[upstream]
remap = { CS1 = "CS2", AF21 = "AF31" }
[[upstream.classes]]
name = "voice"
dscp = ["EF", "CS5"]
[[upstream.customers]]
name = "alice"
prefix = ["10.0.0.1", "2001:db8::1"]
contract = "200 kbit/s"
marker = { kind = "srtcm", cbs = "15 kB", ebs = "15 kB" }
services = [{ class = "voice", rate = "100 kbit/s", burst = "10 kB" }]
[[upstream.customers]]
name = "bob"
prefix = ["10.0.0.0/24", "2001:db8::/32"]
port = [4000, 5000, 53]
contract = "200 kbit/s"
marker = { kind = "trtcm", cbs = "10 kB", pbs = "15 kB", pir = "400 kbit/s", mode = "colour_aware" }
[[upstream.customers]]
name = "carol"
prefix = ["10.0.0.0/24", "2001:db8::/48"]
contract = "300 kbit/s"
marker = { kind = "rfc4115", cbs = "10 kB", ebs = "12 kB", eir = "100 kbit/s", mode = "colour_aware", boundary = "T>B", action = "drop" }
[[upstream.customers]]
name = "dave"
vlan = [5, "7.8"]
contract = "100 kbit/s"
marker = { kind = "token_bucket", depth = "12 kB", action = "drop" }
[[upstream.customers]]
name = "erin"
session = 3
prefix = ["10.0.0.0/8"]
contract = "100 kbit/s"
marker = { kind = "rfc4115", cbs = "10 kB", ebs = "12 kB", eir = "100 kbit/s" }
[[upstream.customers]]
name = "frank"
session = 3
vlan = 9
contract = "100 kbit/s"
marker = { kind = "trtcm", cbs = "10 kB", pbs = "15 kB", pir = "400 kbit/s" }
[downstream]
role = "core"
dscp = "bleach"
[[downstream.classes]]
name = "voice"
dscp = ["EF"]
[[downstream.customers]]
name = "all"
prefix = ["0.0.0.0/0", "::/0"]
contract = "300 kbit/s"
marker = { kind = "srtcm", cbs = "15 kB", ebs = "9 kB", mode = "colour_aware", action = "drop" }
[[downstream.customers]]
name = "port"
port = 9
contract = "300 kbit/s"
marker = { kind = "token_bucket", depth = "9039 B", conforms = "more_than" }
"#;

/// What is not read is dropped, and so are wrong lengths.
const STRICT: &str = r#"
frames.length_mismatch = "drop"
[upstream]
[[upstream.customers]]
name = "alice"
prefix = ["10.0.0.1", "2001:db8::1"]
contract = "1 Mbit/s"
marker = { kind = "token_bucket", depth = "30 kB" }
[downstream]
role = "core"
"#;

/// Frames of each kind.
fn cases() -> u64 {
    std::env::var("PACKETS").map_or(2_000, |n| n.parse().expect("PACKETS is a number"))
}

/// Both at once.
struct Both {
    kernel: Tried,
    user: User,
    config: inprofile_router::config::Config,
    now: Time,
    seen: u64,
    sent: u64,
    /// Frames that differ, and how.
    differ: Vec<String>,
}

impl Both {
    fn new(text: &str) -> Both {
        let config = config(text);
        let (kernel, user) = (Tried::new(&config), User::new(&config));
        Both { kernel, user, config, now: Time(1_000), seen: 0, sent: 0, differ: Vec::new() }
    }

    fn arrive(&mut self, gap: Duration, port: usize, frame: &[u8]) {
        self.now += Duration(gap.0 / 1_000 * 1_000);
        if !can_be_tried(frame) {
            return;
        }
        let (kernel, user) =
            (self.kernel.arrive(self.now, port, frame), self.user.arrive(self.now, port, frame));
        self.seen += 1;
        self.sent += u64::from(user.is_some());
        if kernel != user && self.differ.len() < 5 {
            let (head, kernel, user) = (hex(Some(frame)), hex(kernel.as_deref()), hex(user.as_deref()));
            self.differ.push(format!(
                "{} at port {port}, {} B\n  in     {head}\n  kernel {kernel}\n  user   {user}",
                self.seen,
                frame.len()
            ));
        }
    }

    /// All counts, by name.
    fn counts(&mut self) -> [BTreeMap<String, u64>; 2] {
        let mut both = [BTreeMap::new(), BTreeMap::new()];
        for i in 0..2 {
            let path = &self.user.0.lanes[i].path;
            let (user, kernel) = (path.totals(), self.kernel.maps.totals(i).unwrap());
            let mut put = |name: String, kernel: u64, user: u64| {
                both[0].insert(format!("{i} {name}"), kernel);
                both[1].insert(format!("{i} {name}"), user);
            };
            put("came".into(), kernel.came, user.came);
            put("policed".into(), kernel.policed, user.policed);
            put("sent".into(), kernel.sent, user.sent);
            put("length disagrees".into(), kernel.length_disagrees, user.length_disagrees);
            put("without first".into(), kernel.without_first, path.policy.fragments_without_first());
            for (n, (k, u)) in kernel.refused.into_iter().zip(user.refusals).enumerate() {
                put(format!("refused {n}"), k, u);
            }
            for (k, (name, u)) in kernel.census.into_iter().zip(path.census().iter()) {
                put(format!("census {name}"), k, u);
            }
            for (k, (name, u)) in kernel.excess.into_iter().zip(path.policy.control_excess()) {
                put(format!("excess {name}"), k, u);
            }
            let Some(direction) = &self.config.directions[i] else { continue };
            for (n, customer) in direction.customers.iter().enumerate() {
                let place = self.kernel.maps.places(i).get(&places::of_customer(&customer.name)).unwrap();
                let (account, marker) =
                    (self.kernel.maps.account(i, place).unwrap(), path.markers()[n].counts());
                let his = &path.customers()[customer.place as usize];
                let name = &customer.name;
                put(format!("{name} came"), account.came.packets, his.arrived);
                put(format!("{name} came bytes"), account.came.bytes, his.arrived_bytes);
                put(format!("{name} policed"), account.policed, his.dropped.iter().sum());
                for c in 0..3 {
                    put(format!("{name} sent {c}"), account.sent[c].packets, his.sent[c]);
                    put(format!("{name} sent bytes {c}"), account.sent[c].bytes, his.sent_bytes[c]);
                    put(format!("{name} arrived {c}"), account.arrived[c].packets, marker.arrived[c]);
                    put(format!("{name} left {c}"), account.left[c].packets, marker.left[c]);
                    put(format!("{name} left bytes {c}"), account.left[c].bytes, marker.left_bytes[c]);
                    put(format!("{name} dropped {c}"), account.dropped[c], marker.dropped[c]);
                }
            }
        }
        both
    }

    fn end(mut self, what: &str) {
        println!(
            "{what}: {} frames, {} sent by both alike, {} differ",
            self.seen,
            self.sent,
            self.differ.len()
        );
        let [kernel, user] = self.counts();
        let odd = kernel.iter().filter(|(name, n)| user[*name] != **n);
        let odd: Vec<_> = odd.map(|(name, n)| format!("{name}: kernel {n}, user {}", user[name])).collect();
        let differ = self.differ.join("\n");
        assert!(self.differ.is_empty() && odd.is_empty(), "{what}:\n{differ}\n{}", odd.join("\n"));
        assert!(self.sent > self.seen / 20 && self.sent < self.seen, "{what}: too few frames do anything");
    }
}

fn hex(frame: Option<&[u8]>) -> String {
    let Some(frame) = frame else { return "dropped".into() };
    frame.iter().take(90).map(|b| format!("{b:02x}")).collect()
}

/// So many frames, at both ports in turn.
fn flood(what: &str, text: &str, seed: u64, make: impl Fn(&mut Rng, u64) -> Vec<u8>) {
    if !permitted() {
        return;
    }
    let (mut rng, mut both) = (Rng::for_component(seed, "parity"), Both::new(text));
    for n in 0..cases() {
        let frame = make(&mut rng, n);
        let gap = Duration((rng.uniform() * 2e9) as u64);
        both.arrive(gap, (n % 2) as usize, &frame);
    }
    both.end(what);
}

#[test]
fn frames_of_every_encapsulation_are_treated_alike() {
    for (text, name) in [(MIXED, "mixed"), (STRICT, "strict")] {
        flood(&format!("good frames, {name}"), text, 1, |rng, _| good(rng));
    }
}

#[test]
fn mutated_frames_are_treated_alike() {
    for (text, name) in [(MIXED, "mixed"), (STRICT, "strict")] {
        flood(&format!("mutated frames, {name}"), text, 2, |rng, _| {
            let mut frame = good(rng);
            mutate(&mut frame, rng);
            frame
        });
    }
}

#[test]
fn random_frames_are_treated_alike() {
    flood("random frames", MIXED, 3, |rng, _| random(rng));
}

/// In circuits: VLANs, one in another, sessions, with owners and without.
#[test]
fn frames_in_circuits_are_treated_alike() {
    flood("circuits", MIXED, 4, |rng, n| {
        let tag = |rng: &mut Rng, vlans: &[u16]| {
            let kind = [0x8100, 0x88a8][below(rng, 2)];
            Wrap::Tag(kind, (below(rng, 16) as u16) << 12 | vlans[below(rng, vlans.len())])
        };
        let mut wraps = match below(rng, 4) {
            0 => vec![],
            1 => vec![tag(rng, &[5, 6, 7, 9])],
            _ => vec![tag(rng, &[5, 7, 9]), tag(rng, &[8, 5, 3])],
        };
        if below(rng, 2) == 0 {
            wraps.push(Wrap::Pppoe([3, 4][below(rng, 2)]));
        }
        if below(rng, 5) == 0 && !matches!(wraps.last(), Some(Wrap::Pppoe(_))) {
            wraps.push(Wrap::Mpls(1 + below(rng, 3) as u8, below(rng, 8) as u8));
        }
        if below(rng, 12) == 0 {
            let mut frame = other(0x0806, &[1; 46]).0;
            if let Some(Wrap::Tag(kind, tci)) = wraps.first() {
                let tag = [kind.to_be_bytes(), tci.to_be_bytes()].concat();
                frame.splice(12..12, tag);
            }
            return frame;
        }
        let from = [1, 2, 77][below(rng, 3)];
        let fragment = [0, 0, 0x2000, 0x0001][below(rng, 4)];
        let port = [4000, 5000, 6000][below(rng, 3)];
        let octet = ([0, 10, 12, 14, 46, 8, 18, 40][below(rng, 8)] << 2) | below(rng, 4) as u8;
        let bytes = 60 + below(rng, 1400);
        let mut frame =
            Ip { v6: n % 3 == 0, from, port, octet, bytes, fragment, wraps, ..Ip::default() }.frame().0;
        if below(rng, 3) == 0 {
            let at = usize::from(frame[7]);
            // A packet of its own, whose fragments are told by it.
            frame[at + 5] = below(rng, 8) as u8;
        }
        frame
    });
}

/// Control frames of each kind, from few senders and from many.
#[test]
fn floods_of_control_frames_are_treated_alike() {
    flood("control frames", STRICT, 5, |rng, n| {
        let kinds = control_frames(below(rng, 200));
        let mut frame = kinds[below(rng, 8)].0.clone();
        frame[11] = if n % 3 == 0 { below(rng, 200) as u8 } else { 1 };
        frame
    });
}
