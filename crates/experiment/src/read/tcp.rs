//! `[tcp]` and a group's `tcp = { … }`; defaults follow from the profile.

mod checks;

use crate::text::Section;
use crate::text::mechanism;
use inprofile_core::params::{Params, Values};
use inprofile_core::units::{Backlog, Bytes, Duration};
use inprofile_sim::tcp::control::Kind;
use inprofile_sim::tcp::negotiation::Ability;
use inprofile_sim::tcp::{Config, Congestion, DelayTarget, L4s, Profile, PrrRules, SlowStart};

use checks::checked;

inprofile_core::choice! {
    /// Which implementation's rules.
    pub enum Rules {
        /// The RFCs.
        Rfc = "rfc",
        /// Linux's sender: RACK and tail loss probes (RFC 8985), proportional rate reduction (RFC 9937), HyStart with cubic.
        Linux = "linux",
        /// The one-way TCP of ns-2 2.35.
        Ns2 = "ns2",
    }
}

inprofile_core::choice! {
    /// Loss recovery and growth of the window.
    pub enum Control {
        /// RFC 5681.
        Reno = "reno",
        /// RFC 6582: recovery lasts until everything outstanding at its start is acknowledged.
        NewReno = "newreno",
        /// RFC 2018: recovery by selective acknowledgements (rfc: RFC 6675).
        Sack = "sack",
        /// RFC 9438, with recovery as for sack; rfc and linux only.
        Cubic = "cubic",
        /// RFC 8257: the window is reduced by half the share of marked packets; linux only, always with ECN.
        Dctcp = "dctcp",
        /// draft-briscoe-iccrg-prague-congestion-control: DCTCP for the Internet, whose packets are L4S traffic, ECT(1); linux only,
        /// always with ECN.
        Prague = "prague",
        /// BBR version 3 (draft-ietf-ccwg-bbr): a model of the path's rate and round-trip time sets rate and window; linux only, paced.
        Bbr = "bbr",
        /// LEDBAT (RFC 6817): the window follows the queueing delay, and yields to others; linux only.
        Ledbat = "ledbat",
    }
}

inprofile_core::choice! {
    /// The rule that ends slow start before something is lost or marked.
    pub enum Exit {
        /// Nothing (RFC 5681).
        Standard = "standard",
        /// HyStart, as Linux's CUBIC has it: acknowledgements that span half a round trip, or a longer round trip; linux only, with cubic.
        HyStart = "hystart",
        /// HyStart++ (RFC 9406): longer round trips, first with growth a quarter as fast; rfc and linux, with reno, newreno, sack or cubic.
        HyStartPlusPlus = "hystart++",
    }
}

inprofile_core::choice! {
    /// Proportional rate reduction: how the window comes down during recovery.
    pub enum Reduction {
        /// As in Linux: from the window, with the bounds of RFC 9937.
        Linux = "linux",
        /// RFC 9937: from what is in flight; slow start towards the threshold only while nothing more is lost.
        Rfc9937 = "rfc9937",
        /// RFC 6937, its predecessor: slow start towards the threshold whatever is lost.
        Rfc6937 = "rfc6937",
    }
}

inprofile_core::choice! {
    /// A receiver's support of ECN.
    pub enum Speaks {
        /// RFC 9768: counts of what was marked; and ECN-Echo with senders that ask for no more.
        Accurate = "accurate",
        /// RFC 8257 §3.2: ECN-Echo of each mark.
        Dctcp = "dctcp",
        /// RFC 3168: ECN-Echo until the sender has reduced its window.
        Classic = "classic",
        /// Nothing: no packet is ECT.
        None = "none",
    }
}

inprofile_core::params! {
    /// TCP's parameters.
    pub struct Tcp {
        /// Which implementation's rules and defaults a connection follows. Default: `rfc`.
        profile: Option<Rules>;
        /// Loss recovery and growth of the window. Default: `reno`; linux: `cubic`.
        congestion: Option<Control>;
        /// Whether recovery is by selective acknowledgements; cubic can do without, and then recovers as newreno.
        /// Default: as congestion has it (cubic: true).
        sack: Option<bool>;
        /// Whether the sender asks for explicit congestion notification (RFC 3168); rfc and linux only. Queues mark where their `ecn`
        /// is true. Default: false; dctcp, prague: true.
        ecn: Option<bool>;
        /// Whether the sender asks for acknowledgements that tell how many packets were marked (AccECN, RFC 9768), instead of ECN-Echo; linux
        /// only, with ecn. Default: false; prague: true.
        accurate_ecn: Option<bool>;
        /// The receiver's support of ECN, with ecn. Default: as the sender asks.
        receiver_ecn: Option<Speaks>;
        /// Whether acknowledgements also tell how many bytes have arrived with each code point (the AccECN Option, RFC 9768 §3.2.3), and are 8 or
        /// 12 B longer for it; with accurate_ecn. Default: false.
        accurate_ecn_option: Option<bool>;
        /// Payload of a full packet. Default: 1460 B (rfc, linux), 1000 B (ns2).
        segment: Option<Bytes> [POSITIVE];
        /// Headers of every packet. Default: 40 B.
        header: Option<Bytes> [POSITIVE];
        /// The receiver's window. Default: 1000 packets (rfc, linux), 20 packets (ns2).
        window: Option<Backlog> [POSITIVE];
        /// A random delay of up to this long before each send. Default: none.
        jitter: Option<Duration>;
        /// How long an acknowledgement may wait for a second packet; 0 s: every packet is acknowledged at once.
        /// Default: 100 ms (rfc), 40 ms (linux), 0 s (ns2).
        delayed_ack: Option<Duration>;
        /// The minimum retransmission timeout (RTO). Default: 1 s (rfc, RFC 6298 §2.4), 200 ms (linux, ns2).
        min_rto: Option<Duration> [POSITIVE];
        /// Congestion window at the start. Default: 10 packets of up to 1460 B, fewer of larger ones (rfc, linux; RFC 6928), 2
        /// packets (ns2, ledbat).
        initial_window: Option<Backlog> [POSITIVE];
        /// Whether the first two duplicate acknowledgements send a new segment each (RFC 3042). Default: true.
        limited_transmit: Option<bool>;
        /// The rule that ends slow start before something is lost or marked. Default: `standard`; linux with cubic: `hystart`.
        slow_start: Option<Exit>;
        /// Which text's proportional rate reduction brings the window down during recovery; linux only, and not with bbr. Default: `linux`.
        prr: Option<Reduction>;
        /// Whether packets leave at a rate that follows from the window and the round-trip time, in trains of about a millisecond, and
        /// not as fast as the window allows; linux only. Default: false, as in Linux without the fq discipline; bbr, prague: true.
        pacing: Option<bool>;
        /// The queueing delay that ledbat aims at. RFC 6817 §2.5 allows up to 100 ms. Default: 100 ms.
        target: Option<Duration> [POSITIVE];
        /// By how many packets a round trip ledbat's window grows where there is no queue. RFC 6817 §2.5 allows up to 1; RFC 7928 §5.4 tries
        /// with 10. Default: 1.
        gain: Option<f64> [POSITIVE];
        /// Where the round-trip time is shorter, prague's rate grows and shrinks as if it were this (RTT independence). 0 s: by the round-trip
        /// time that there is, as in Linux's prague of 2020. Default: 25 ms.
        rtt_virt: Option<Duration> [NON_NEGATIVE];
        /// Whether dctcp's packets are ECT(1), which queues with L4S take for L4S traffic (RFC 9331 §4.1), instead of ECT(0) (RFC 8257); for
        /// networks under one administration. Default: false.
        ect1: Option<bool>;
    }
}

/// The largest packet on the wire, in bytes: IPv4's total length.
const LARGEST_PACKET: u64 = 65_535;

/// The table `[tcp]`, and the configuration that follows from it.
pub(crate) struct Base {
    given: Values,
    /// `None` if the values contradict each other.
    pub config: Option<Config>,
}

/// Reads `[tcp]`; `None` if a value could not be read.
pub(crate) fn base(root: &Section<'_, '_>) -> Option<Base> {
    let Some(entry) = root.get("tcp") else {
        let given = Values::default();
        let config = Some(complete(&Tcp::from_values(&given)));
        return Some(Base { given, config });
    };
    let section = entry.section(&mechanism::known(&[], Tcp::FIELDS))?;
    let given = mechanism::read(&section, Tcp::FIELDS)?;
    let config = checked(&section, &given);
    Some(Base { given, config })
}

/// Reads a group's `tcp`, over `[tcp]`.
pub(crate) fn over(base: &Base, group: &Section<'_, '_>) -> Option<Config> {
    let Some(entry) = group.get("tcp") else { return base.config.clone() };
    let section = entry.section(&mechanism::known(&[], Tcp::FIELDS))?;
    let mut values = mechanism::read(&section, Tcp::FIELDS)?;
    let said = |name: &str, values: &Values| values.get(name).is_some();
    let inherited: Vec<_> = base.given.0.iter().filter(|(n, _)| !said(n, &values)).cloned().collect();
    values.0.extend(inherited);
    checked(&section, &values)
}

/// RFC 6928, Eq. (1), in whole segments: min(10 MSS, max(2 MSS, 14600 B)).
fn initial_window(segment: u32) -> u32 {
    (14_600 / segment).clamp(2, 10)
}

/// Fills in what the profile says.
fn complete(tcp: &Tcp) -> Config {
    let rules = tcp.profile.unwrap_or(Rules::Rfc);
    let (ns2, linux) = (rules == Rules::Ns2, rules == Rules::Linux);
    let by_profile = |rfc: u32, for_ns2: u32| if ns2 { for_ns2 } else { rfc };
    let delayed = tcp
        .delayed_ack
        .unwrap_or(Duration::from_millis(u64::from(by_profile(if linux { 40 } else { 100 }, 0))));
    let packets = |b: Option<Backlog>| b.map(|b| b.amount() as u32);
    let bytes = |b: Option<Bytes>| b.map(|b| b.0.min(LARGEST_PACKET) as u32);
    let segment = bytes(tcp.segment).unwrap_or(by_profile(1460, 1000));
    let congestion = match tcp.congestion.unwrap_or(if linux { Control::Cubic } else { Control::Reno }) {
        Control::Cubic => Congestion::Cubic { sack: tcp.sack.unwrap_or(true) },
        Control::Reno => Congestion::Reno,
        Control::NewReno => Congestion::NewReno,
        Control::Sack => Congestion::Sack,
        Control::Dctcp => Congestion::Linux(Kind::Dctcp),
        Control::Prague => Congestion::Linux(Kind::Prague),
        Control::Bbr => Congestion::Linux(Kind::Bbr),
        Control::Ledbat => Congestion::Linux(Kind::Ledbat),
    };
    let profile = match rules {
        Rules::Rfc => Profile::Rfc,
        Rules::Linux => Profile::Linux,
        Rules::Ns2 => Profile::Ns2,
    };
    Config {
        profile,
        congestion,
        segment,
        header: bytes(tcp.header).unwrap_or(40),
        window: packets(tcp.window).unwrap_or(by_profile(1000, 20)),
        jitter: tcp.jitter.unwrap_or(Duration::ZERO),
        delayed_ack: (delayed > Duration::ZERO).then_some(delayed),
        min_rto: tcp
            .min_rto
            .unwrap_or(Duration::from_millis(u64::from(by_profile(if linux { 200 } else { 1000 }, 200)))),
        initial_window: packets(tcp.initial_window).unwrap_or(if congestion.measures_delay() {
            // RFC 6817 §2.5, INIT_CWND.
            2
        } else {
            by_profile(initial_window(segment), 2)
        }),
        ledbat: DelayTarget {
            target: tcp.target.unwrap_or(DelayTarget::default().target),
            gain: tcp.gain.unwrap_or(DelayTarget::default().gain),
        },
        l4s: L4s {
            ect1: tcp.ect1.unwrap_or(false),
            rtt_virt: tcp.rtt_virt.unwrap_or(L4s::default().rtt_virt),
        },
        limited_transmit: tcp.limited_transmit.unwrap_or(true),
        slow_start: match tcp.slow_start {
            None => SlowStart::of(profile, congestion),
            Some(Exit::Standard) => SlowStart::Standard,
            Some(Exit::HyStart) => SlowStart::HyStart,
            Some(Exit::HyStartPlusPlus) => SlowStart::HyStartPlusPlus,
        },
        prr: match tcp.prr {
            None | Some(Reduction::Linux) => PrrRules::Linux,
            Some(Reduction::Rfc9937) => PrrRules::Rfc9937,
            Some(Reduction::Rfc6937) => PrrRules::Rfc6937,
        },
        pacing: tcp.pacing.unwrap_or(congestion.has_rate() || congestion == Congestion::Linux(Kind::Prague)),
        ecn: tcp.ecn.unwrap_or(congestion.is_scalable()),
        accurate_ecn: tcp.accurate_ecn.unwrap_or(congestion == Congestion::Linux(Kind::Prague)),
        receiver_ecn: match tcp.receiver_ecn {
            None => Ability::Same,
            Some(Speaks::Accurate) => Ability::Accurate,
            Some(Speaks::Dctcp) => Ability::EachMark,
            Some(Speaks::Classic) => Ability::Classic,
            Some(Speaks::None) => Ability::None,
        },
        accurate_ecn_option: tcp.accurate_ecn_option.unwrap_or(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6928, Eq. (1), in bytes, against whole segments; its own examples: ten of 1460 B, two of jumbo frames.
    #[test]
    fn the_initial_window_is_ten_segments_or_14600_bytes() {
        assert_eq!([1, 1460, 1461, 2000, 7300, 8960, 65_495].map(initial_window), [10, 10, 9, 7, 2, 2, 2]);
        for mss in 1..65_536 {
            assert_eq!(initial_window(mss), (10 * mss).min((2 * mss).max(14_600)) / mss, "{mss} B");
        }
    }
}
