//! The meaning of a strategy's bytes: who the attacker is, the router's file, his frames and their times.

use inprofile_core::rng::Rng;
use inprofile_core::units::{PS_PER_S, Time};

use crate::frames::{Frame, Ip, Wrap, control_frames, other};
use crate::leaky_bucket::LeakyBucket;

/// The attacker's contract for IN, in bits per second. His shaper has twice that, the link three times, EF a quarter.
pub const CONTRACTS: [u64; 4] = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
/// How deep buckets are, in bytes, and how long a packet may be.
pub const DEPTH: u64 = 9_000;
/// The bytes that a frame of this depth may have before and behind it on the wire.
pub const LONGEST_LINK: u64 = 14 + 4 * 6 + 8 + 4 * 9 + 24;
/// A reload may have made the bucket this much deeper.
pub const DEEPER: u64 = 100;
/// Rate of control frames: of each kind, and of all kinds together of those whom no circuit tells.
pub const CONTROL: u64 = 64_000;
/// Rate of each kind from a customer whom a circuit tells.
pub const CONTROL_SENDER: u64 = 16_000;
/// Of a strategy.
pub const FRAMES: u64 = 1_000;
/// Bytes of a strategy.
pub const GENES: usize = 48;

/// Meters, with what each lets a policer pass: rate in contracts, and buckets.
pub const METERS: [(&str, u64, u64); 4] = [
    ("kind = \"token_bucket\", depth = \"{d} B\"", 1, 1),
    ("kind = \"srtcm\", cbs = \"{d} B\", ebs = \"9000 B\"", 1, 2),
    ("kind = \"trtcm\", cbs = \"{d} B\", pbs = \"9000 B\", pir = \"{2} bit/s\"", 2, 1),
    ("kind = \"rfc4115\", cbs = \"{d} B\", ebs = \"9000 B\", eir = \"{1} bit/s\"", 2, 2),
];

/// Who the attacker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A prefix, in the assured queue of all.
    Prefix,
    /// VLAN 100, with a queue and a shaper.
    Shaped,
    /// VLAN 100, with a policer.
    Policed,
    /// A port of an address that he shares.
    Port,
}

/// Everything that the bytes of a strategy say, read from the front.
pub struct Genes<'a>(pub &'a [u8], pub usize);

impl Genes<'_> {
    pub fn next(&mut self, below: u64) -> u64 {
        let byte = self.0[self.1 % self.0.len()];
        self.1 += 1;
        u64::from(byte) % below
    }
}

/// How the router is set.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// It counts as Ethernet does.
    pub ethernet: bool,
    /// Unreadable frames are dropped: then nothing leaves that is not what it claims to be.
    pub drops_unread: bool,
    /// By the kernel's datapath, where nothing waits.
    pub kernel: bool,
}

pub fn file(who: Who, contract: u64, meter: usize, how: How, depth: u64, name: &str) -> String {
    let settings = METERS[meter].0.replace("{d}", &depth.to_string());
    let settings = settings.replace("{2}", &(contract * 2).to_string()).replace("{1}", &contract.to_string());
    let action = if who == Who::Policed { ", action = \"drop\"" } else { "" };
    let queue = if who == Who::Shaped && !how.kernel {
        format!(
            "queue = {{ aqm = \"drop_tail\", limit = \"200 packets\" }}\nrate = \"{} bit/s\"\nburst = \"{} B\"\n",
            contract * 2,
            2 * DEPTH
        )
    } else {
        String::new()
    };
    let (his, bobs) = match who {
        Who::Prefix => ("prefix = [\"10.0.0.1\", \"2001:db8::1\"]", None),
        Who::Shaped | Who::Policed => ("vlan = 100", Some("vlan = 200")),
        Who::Port => ("prefix = \"10.0.0.1\"\nport = 4000", Some("prefix = \"10.0.0.1\"\nport = 4001")),
    };
    let customer = |name: &str, whose: &str, services: &str| {
        format!(
            "[[upstream.customers]]\nname = \"{name}\"\n{whose}\ncontract = \"{contract} bit/s\"\nmarker = {{ {settings}{action} }}\n{services}{queue}"
        )
    };
    let ef = format!(
        "services = [{{ class = \"voice\", rate = \"{} bit/s\", burst = \"{DEPTH} B\" }}]\n",
        contract / 4
    );
    // As the wire counts, or as packets do.
    let counted = if how.ethernet {
        "packet = \"8962 B\"\noverhead = \"38 B\"\nmpu = \"84 B\""
    } else {
        "packet = \"9000 B\""
    };
    let unread = if how.drops_unread { "" } else { "\nframes.unreadable = \"best_effort\"" };
    let customers = customer(name, his, &ef) + &bobs.map_or_else(String::new, |b| customer("bob", b, ""));
    let datapath = if how.kernel { "\ndatapath = \"kernel\"" } else { "\nflows = 64" };
    let (link, waits) = if how.kernel {
        (String::new(), String::new())
    } else {
        (
            format!(
                "rate = \"{} bit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"1000 packets\" }}\nbest_effort = {{ aqm = \"drop_tail\", limit = \"100 packets\" }}\n",
                contract * 3
            ),
            format!("aqm = \"drop_tail\"\nlimit = \"100 packets\"\nrate = \"{contract} bit/s\"\n"),
        )
    };
    format!(
        "inside = \"a\"\noutside = \"b\"\n{counted}{unread}{datapath}\nframes.control = {{ rate = \"{CONTROL} bit/s\", burst = \"{DEPTH} B\" }}\n[upstream]\n{link}[[upstream.classes]]\nname = \"voice\"\ndscp = [\"EF\"]\n{waits}{customers}"
    )
}

/// A frame of the attacker's or the neighbour's: when it came, and what it is.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub at: Time,
    pub bytes: u64,
    pub bobs: bool,
    pub control: bool,
    /// It came in the attacker's VLAN.
    pub his: bool,
    /// A reader finds its DSCP where it is.
    pub plain: bool,
    pub left: Option<(Time, Option<u8>)>,
}

/// How the attacker makes a frame.
pub fn make(genes: &mut Genes<'_>, who: Who, n: u64, rng: &mut Rng) -> (Frame, Sent) {
    let below = |rng: &mut Rng, n: u64| (rng.uniform() * n as f64) as u64;
    let style = genes.next(16);
    let bytes = match genes.next(8) {
        0 => 1500,
        1 => 64 + n % 1400,
        2 => 9000,
        3 => 64,
        4 => [64, 1500][(n % 2) as usize],
        5 => 1499,
        6 => 60 + below(rng, 8_900),
        _ => 61 + 7 * genes.next(256),
    };
    let mut ip = Ip { bytes: bytes as usize, port: 4000, ..Ip::default() };
    ip.octet = match genes.next(6) {
        0 => 10 << 2,
        1 => 46 << 2,
        2 => (n % 256) as u8,
        3 => [0, 46 << 2][(n % 2) as usize],
        4 => 10 << 2 | 1,
        _ => 0,
    };
    match genes.next(8) {
        0 => ip.port = n as u16,
        1 => ip.port = 4000 + (n % 2) as u16,
        2 => ip.protocol = [6, 17, 50, 1][below(rng, 4) as usize],
        3 => ip.from = [1, 1, 77, 2][below(rng, 4) as usize],
        _ => {}
    }
    ip.v6 = style & 1 == 1;
    if !ip.v6 {
        ip.fragment = match genes.next(8) {
            0 => [0x2000, 0x00b9][(n % 2) as usize],
            1 => 0x0001,
            2 => below(rng, 65_536) as u16 & 0x3fff,
            _ => 0,
        };
        ip.options = [0, 0, 0, 10][genes.next(4) as usize];
    }
    ip.says = match genes.next(6) {
        0 => Some(28),
        1 => Some(below(rng, 65_536) as u16),
        _ => None,
    };
    let outer = match genes.next(8) {
        _ if who == Who::Prefix || who == Who::Port => vec![],
        0 => vec![],
        1 => vec![Wrap::Tag(0x8100, 300)],
        2 => vec![Wrap::Tag(0x88a8, 100), Wrap::Tag(0x8100, below(rng, 65_536) as u16)],
        _ => vec![Wrap::Tag(0x8100, (0xe000 * (n as u16 & 1)) | 100)],
    };
    let his = matches!(outer.first(), Some(Wrap::Tag(_, vlan)) if vlan & 0xfff == 100);
    let inner = match genes.next(10) {
        0 => vec![Wrap::Pppoe(below(rng, 65_536) as u16)],
        1 => vec![Wrap::Mpls(1 + below(rng, 9) as u8, 7)],
        3 => vec![Wrap::Snap],
        4 => vec![Wrap::Tag(0x9200, 300)],
        // Never the neighbour's VLAN, which is even: who may write that one is the neighbour.
        2 => vec![Wrap::Tag(0x9100, below(rng, 65_536) as u16 | 1); below(rng, 5) as usize],
        _ => vec![],
    };
    ip.wraps = [outer.clone(), inner].concat();
    if bytes == 64 && !ip.v6 && ip.options == 0 {
        ip.bytes = 20 + (n % 45) as usize;
    }
    let tags = ip.wraps.iter().filter(|w| matches!(w, Wrap::Tag(..))).count();
    let hidden = ip.wraps.iter().any(|w| matches!(w, Wrap::Snap | Wrap::Tag(0x9200, _)));
    let labels = ip.wraps.iter().map(|w| if let Wrap::Mpls(n, _) = w { *n } else { 0 }).sum::<u8>();
    let plain = tags <= 4 && !hidden && (labels == 0 || labels <= 8 && ip.says.is_none());
    let mut frame = ip.frame();
    let mut control = false;
    match genes.next(12) {
        // Control frames of one kind or all, in his circuit or outside, and what is no IP at all.
        0 | 3 | 4 => {
            let kind = if style & 4 == 4 { n / 3 } else { style };
            frame = control_frames((bytes as usize).saturating_sub(200))[(kind % 8) as usize].clone();
            if let Some(Wrap::Tag(tpid, tci)) = outer.first() {
                frame.0.splice(12..12, [tpid.to_be_bytes(), tci.to_be_bytes()].concat());
                frame.0[7] += 4;
            }
            control = true;
        }
        1 => frame = other(0x88b5, &vec![0x5a; bytes as usize]),
        2 if style & 2 == 2 => frame = ip.frame().padded(),
        _ => {}
    }
    let inside = frame.0[12..14] != [0x88, 0xb5];
    let sent = Sent {
        at: Time::ZERO,
        bytes: frame.bytes_unpadded(),
        bobs: false,
        control,
        his: his && inside,
        plain: plain && inside && !control,
        left: None,
    };
    (frame, sent)
}

/// When the next one comes, in picoseconds after the last. `full`: what its bytes take at the contract; `short`: how long his bucket
/// still takes until it holds them, by his own reckoning.
pub fn gap(genes: &mut Genes<'_>, n: u64, full: u64, short: u64, rng: &mut Rng) -> u64 {
    let near = genes.next(8);
    match genes.next(10) {
        0 => full * near / 8,
        1 => (full as f64 * 2.0 * rng.uniform()) as u64,
        2 => full * 100 * u64::from(n.is_multiple_of(100 + near)),
        3 => short,
        4 => short.saturating_sub(1),
        5 => short + 1,
        6 => short.saturating_sub(1 << near),
        7 if n.is_multiple_of(500) => 86_400 * PS_PER_S,
        8 => [1, full][(n % 2) as usize],
        _ => full / (1 + near),
    }
}

/// Tells which frame this is: the last three bytes of its source address.
pub fn stamp(frame: &mut Frame, n: u64) {
    frame.0[9..12].copy_from_slice(&(n as u32).to_be_bytes()[1..]);
}

/// The share of the contract that was delivered: 1 is all of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Got {
    /// The long-run rate of IN, beyond one bucket.
    pub green: f64,
    /// The most over any stretch, less what the promise lets pass, in bytes: above 0 somebody was cheated.
    pub over: [(&'static str, f64); 6],
    /// Frames with a DSCP that nobody bought.
    pub foreign: u64,
    /// Frames that the honest neighbour lost, or that lost their colour.
    pub bobs_loss: u64,
    pub seconds: f64,
    pub frames: u64,
}

pub fn people_have_circuits(who: Who) -> bool {
    matches!(who, Who::Shaped | Who::Policed)
}

/// Holds what left within so many seconds against what was bought, with buckets that reloads may have made so much deeper.
pub fn judge(
    who: Who,
    how: How,
    (contract, meter, deeper): (u64, usize, u64),
    sent: &[Sent],
    seconds: f64,
    link: f64,
    too_late: u64,
) -> Got {
    let (_, rates, buckets) = METERS[meter];
    let people = if who == Who::Port { 2 } else { 1 };
    let (mut green, mut ef) = (LeakyBucket::new(contract * people), LeakyBucket::new(contract / 4));
    // In his circuit he has a bucket a kind. All whom no circuit tells have one kind's rate, half of it where others are told by
    // theirs, and twice its burst for any kind and for those that each has kept.
    let circuits = if people_have_circuits(who) { 2 } else { 1 };
    let (mut control, mut his_control) =
        (LeakyBucket::new(CONTROL / circuits), LeakyBucket::new(8 * CONTROL_SENDER));
    // EF that was bought has its own policer before a shaper, beside another.
    let extra = contract / 4;
    let (rate, room) = match who {
        Who::Shaped => (2 * contract, 3 * DEPTH),
        Who::Policed => (rates * contract + extra, (buckets + 1) * DEPTH + deeper),
        // In the kernel there is no link that is full.
        Who::Prefix | Who::Port if how.kernel => (u64::MAX, 0),
        Who::Prefix | Who::Port => (3 * contract, DEPTH),
    };
    // By the time at which they left where they waited for it, else by when they came.
    let mut bought = LeakyBucket::new(rate);
    let mut got = Got { frames: sent.len() as u64, seconds, ..Got::default() };
    let mut all = 0;
    let mut his: Vec<(Time, u64)> = Vec::new();
    for s in sent {
        if s.bobs {
            got.bobs_loss += u64::from(s.left.is_none_or(|(_, dscp)| dscp != Some(10)));
            continue;
        }
        let Some((left, dscp)) = s.left else { continue };
        match dscp {
            Some(10) => {
                green.see(s.at, s.bytes);
                all += s.bytes;
            }
            Some(46) => ef.see(s.at, s.bytes),
            Some(0 | 12 | 14) | None => {}
            Some(_) => got.foreign += 1,
        }
        if s.control {
            if s.his { &mut his_control } else { &mut control }.see(s.at, s.bytes);
        } else if s.his && rate != u64::MAX {
            his.push((if who == Who::Shaped { left } else { s.at }, s.bytes));
        }
    }
    his.sort_by_key(|(at, _)| *at);
    his.iter().for_each(|(at, bytes)| bought.see(*at, *bytes));
    if too_late > 0 {
        // What a router threw away after a stall was nobody's fault.
        got.bobs_loss = 0;
    }
    let depth = (DEPTH + deeper) as f64 * people as f64;
    got.green = (all as f64 - depth).max(0.0) * 8.0 / seconds.max(1e-9) / (contract * people) as f64;
    got.over = [
        ("IN", green.most() - depth),
        ("EF", ef.most() - DEPTH as f64),
        ("shaper or policer", bought.most() - room as f64),
        (
            "control frames",
            (control.most() - (4 * DEPTH / circuits) as f64).max(his_control.most() - 8.0 * DEPTH as f64),
        ),
        ("link", link - (DEPTH + LONGEST_LINK) as f64),
        ("", 0.0),
    ];
    got
}
