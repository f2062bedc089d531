//! What a TCP is set to. A key of `[tcp]` is declared here, once: file reader, schema, `inprofile list`, `check` and the canonical form
//! take it from here, and senders read it from [`Config`]. One whose default is the same everywhere is a line of [`Settings`]; one whose
//! default follows from the profile or the control is a line of [`Keys`] and one of [`Keys::complete`].

use inprofile_core::packet::Ecn;
use inprofile_core::params::{Params, Values};
use inprofile_core::units::{Backlog, Bytes, Duration, Rate};

use super::control::Kind;
use super::linux::PrrRules;
use super::negotiation::{self, Ability};
use super::{Congestion, Feedback};

inprofile_core::choice! {
    /// Which implementation's rules.
    pub enum Profile {
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
        /// Copa (Arun and Balakrishnan, NSDI 2018), its default mode: two packets of each flow wait in the queue; linux only, paced.
        Copa = "copa",
        /// DCQCN (Zhu et al., SIGCOMM 2015), of RDMA over Converged Ethernet: notifications cut its rate, timer and byte counter raise it;
        /// linux only, always paced, and with ECN.
        Dcqcn = "dcqcn",
    }
}

inprofile_core::choice! {
    /// The rule that ends slow start before something is lost or marked.
    pub enum SlowStart {
        /// Nothing (RFC 5681).
        Standard = "standard",
        /// HyStart, as Linux's CUBIC has it: acknowledgements that span half a round trip, or a longer round trip; linux only, with cubic.
        HyStart = "hystart",
        /// HyStart++ (RFC 9406): longer round trips, first with growth a quarter as fast; rfc and linux, with reno, newreno, sack or cubic.
        HyStartPlusPlus = "hystart++",
    }
}

impl SlowStart {
    /// The profile's default with this control.
    #[must_use]
    pub fn of(profile: Profile, congestion: Congestion) -> SlowStart {
        match congestion {
            Congestion::Cubic { .. } if profile == Profile::Linux => SlowStart::HyStart,
            _ => SlowStart::Standard,
        }
    }
}

inprofile_core::params! {
    /// The keys of `[tcp]` whose default is the same in every profile and with every control.
    pub struct Settings {
        /// Headers of every packet.
        header: Bytes [POSITIVE] = Bytes(40);
        /// A random delay of up to this long before each send (Floyd and Jacobson 1992, §5). 0 s: none.
        jitter: Duration = Duration::ZERO;
        /// Whether the first two duplicate acknowledgements send a new segment each (RFC 3042).
        limited_transmit: bool = true;
        /// Which text's proportional rate reduction brings the window down during recovery; linux only, and not with bbr.
        prr: PrrRules = PrrRules::Linux;
        /// Whether acknowledgements also tell how many bytes have arrived with each code point (the AccECN Option, RFC 9768 §3.2.3), and are 8 or
        /// 12 B longer for it; with accurate_ecn.
        accurate_ecn_option: bool = false;
        /// The queueing delay that ledbat aims at. RFC 6817 §2.5 allows up to 100 ms.
        target: Duration [POSITIVE] = Duration::from_millis(100);
        /// By how many packets a round trip ledbat's window grows where there is no queue. RFC 6817 §2.5 allows up to 1; RFC 7928 tries
        /// with 10.
        gain: f64 [POSITIVE] = 1.0;
        /// Where the round-trip time is shorter, prague's rate grows and shrinks as if it were this (RTT independence). 0 s: by the round-trip
        /// time that there is, as in Linux's prague of 2020.
        rtt_virt: Duration [NON_NEGATIVE] = Duration::from_millis(25);
        /// Whether dctcp's packets are ECT(1), which queues with L4S take for L4S traffic (RFC 9331 §4.1), instead of ECT(0) (RFC 8257); for
        /// networks under one administration.
        ect1: bool = false;
        /// The rate of dcqcn's port, at which a flow starts and which it never exceeds. Default: that of its host's port, or of its first link.
        line_rate: Option<Rate> [POSITIVE];
        /// The least time between two congestion notifications to a dcqcn sender.
        cnp_interval: Duration [NON_NEGATIVE] = Duration::from_micros(50);
        /// How often dcqcn's timer raises its rate (the paper's deployment: 55 us; QCN: 1.5 ms).
        rate_timer: Duration [POSITIVE] = Duration::from_micros(55);
        /// After how much that is delivered dcqcn's byte counter raises its rate (the paper's deployment: 10 MB; QCN: 150 kB).
        rate_bytes: Bytes [POSITIVE] = Bytes(10_000_000);
        /// By how much additive increase raises the rate to which dcqcn returns (R_AI); hyper increase begins with ten times that.
        rate_increase: Rate [POSITIVE] = Rate(40_000_000);
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::from_values(&Values::default().filled(Settings::FIELDS))
    }
}

inprofile_core::params! {
    /// The keys of `[tcp]`.
    pub struct Keys {
        /// Which implementation's rules and defaults a connection follows. Default: `rfc`.
        profile: Option<Profile>;
        /// Loss recovery and growth of the window. Default: `reno`; linux: `cubic`.
        congestion: Option<Control>;
        /// Whether recovery is by selective acknowledgements; cubic can do without, and then recovers as newreno.
        /// Default: as congestion has it (cubic: true).
        sack: Option<bool>;
        /// Whether the sender asks for explicit congestion notification (RFC 3168); rfc and linux only. Queues mark where their `ecn`
        /// is true. Default: false; dctcp, dcqcn, prague: true.
        ecn: Option<bool>;
        /// Whether the sender asks for acknowledgements that tell how many packets were marked (AccECN, RFC 9768), instead of ECN-Echo; linux
        /// only, with ecn. Default: false; prague: true.
        accurate_ecn: Option<bool>;
        /// The receiver's support of ECN, with ecn. Default: as the sender asks.
        receiver_ecn: Option<Ability>;
        /// Payload of a full packet. Default: 1460 B (rfc, linux), 1000 B (ns2).
        segment: Option<Bytes> [POSITIVE];
        /// The receiver's window. Default: 1000 packets (rfc, linux), 20 packets (ns2).
        window: Option<Backlog> [POSITIVE];
        /// How long an acknowledgement may wait for a second packet; 0 s: every packet is acknowledged at once.
        /// Default: 100 ms (rfc), 40 ms (linux), 0 s (ns2, dcqcn).
        delayed_ack: Option<Duration>;
        /// The minimum retransmission timeout (RTO). Default: 1 s (rfc, RFC 6298 §2.4), 200 ms (linux, ns2).
        min_rto: Option<Duration> [POSITIVE];
        /// Congestion window at the start. Default: 10 packets of up to 1460 B, fewer of larger ones (rfc, linux; RFC 6928), 2
        /// packets (ns2, ledbat).
        initial_window: Option<Backlog> [POSITIVE];
        /// The rule that ends slow start before something is lost or marked. Default: `standard`; linux with cubic: `hystart`.
        slow_start: Option<SlowStart>;
        /// Whether packets leave at a rate that follows from the window and the round-trip time, in trains of about a millisecond, and
        /// not as fast as the window allows; linux only. Default: false, as in Linux without the fq discipline; bbr, copa, dcqcn, prague: true.
        pacing: Option<bool>;
        ..settings: Settings;
    }
}

/// The largest packet on the wire, in bytes: IPv4's total length.
pub const LARGEST_PACKET: u64 = 65_535;

/// RFC 6928, Eq. (1), in whole segments: min(10 MSS, max(2 MSS, 14600 B)).
fn initial_window(segment: u32) -> u32 {
    (14_600 / segment).clamp(2, 10)
}

impl Keys {
    /// The configuration, with the defaults of profile and control. Sizes beyond [`LARGEST_PACKET`] are cut to it.
    #[must_use]
    pub fn complete(self) -> Config {
        let profile = self.profile.unwrap_or(Profile::Rfc);
        let by_profile = |rfc: u32, linux: u32, ns2: u32| match profile {
            Profile::Rfc => rfc,
            Profile::Linux => linux,
            Profile::Ns2 => ns2,
        };
        let millis = |rfc, linux, ns2| Duration::from_millis(u64::from(by_profile(rfc, linux, ns2)));
        let packets = |b: Option<Backlog>| b.map(|b| b.amount() as u32);
        let control = self.congestion.unwrap_or(match profile {
            Profile::Linux => Control::Cubic,
            Profile::Rfc | Profile::Ns2 => Control::Reno,
        });
        let congestion = match control {
            Control::Cubic => Congestion::Cubic { sack: self.sack.unwrap_or(true) },
            Control::Reno => Congestion::Reno,
            Control::NewReno => Congestion::NewReno,
            Control::Sack => Congestion::Sack,
            Control::Dctcp => Congestion::Linux(Kind::Dctcp),
            Control::Prague => Congestion::Linux(Kind::Prague),
            Control::Bbr => Congestion::Linux(Kind::Bbr),
            Control::Ledbat => Congestion::Linux(Kind::Ledbat),
            Control::Copa => Congestion::Linux(Kind::Copa),
            Control::Dcqcn => Congestion::Linux(Kind::Dcqcn),
        };
        let prague = control == Control::Prague;
        let delay = if control == Control::Dcqcn { Duration::ZERO } else { millis(100, 40, 0) };
        let segment = self.segment.map_or(by_profile(1460, 1460, 1000), |b| b.0.min(LARGEST_PACKET) as u32);
        let first_window = match congestion.measures_delay() {
            // RFC 6817 §2.5, INIT_CWND.
            true => 2,
            false => by_profile(initial_window(segment), initial_window(segment), 2),
        };
        Config {
            profile,
            congestion,
            segment,
            window: packets(self.window).unwrap_or(by_profile(1000, 1000, 20)),
            delayed_ack: Some(self.delayed_ack.unwrap_or(delay)).filter(|d| *d > Duration::ZERO),
            min_rto: self.min_rto.unwrap_or(millis(1000, 200, 200)),
            initial_window: packets(self.initial_window).unwrap_or(first_window),
            slow_start: self.slow_start.unwrap_or(SlowStart::of(profile, congestion)),
            pacing: self.pacing.unwrap_or(congestion.has_rate() || prague),
            ecn: self.ecn.unwrap_or(congestion.is_scalable()),
            accurate_ecn: self.accurate_ecn.unwrap_or(prague),
            receiver_ecn: self.receiver_ecn,
            settings: self.settings,
        }
    }
}

/// Which TCP a flow speaks: every key of `[tcp]` with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Which implementation's rules.
    pub profile: Profile,
    /// Loss recovery and window growth.
    pub congestion: Congestion,
    /// Payload of a full segment in bytes.
    pub segment: u32,
    /// The receiver's window, in segments.
    pub window: u32,
    /// Delayed acknowledgements (RFC 5681 §4.2): the longest delay; `None`: every segment is acknowledged at once.
    pub delayed_ack: Option<Duration>,
    /// The minimum retransmission timeout.
    pub min_rto: Duration,
    /// Initial window, in segments.
    pub initial_window: u32,
    /// Whether segments leave at a rate, and not as fast as the window allows; [`Profile::Linux`] only.
    pub pacing: bool,
    /// How slow start ends where nothing is lost.
    pub slow_start: SlowStart,
    /// Whether the sender asks for explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// Whether the sender asks for accurate feedback (RFC 9768); with `ecn`, and only in the linux profile.
    pub accurate_ecn: bool,
    /// The receiver's abilities, where they are not the sender's.
    pub receiver_ecn: Option<Ability>,
    /// The keys whose default is the same everywhere.
    pub settings: Settings,
}

impl Default for Config {
    /// That of a file without `[tcp]`.
    fn default() -> Config {
        Keys::from_values(&Values::default()).complete()
    }
}

impl Config {
    /// The plainest TCP: Reno by the RFCs, segments of 1,000 B, each acknowledged at once, an RTO of at least 200 ms. A start for those who
    /// set the rest.
    #[must_use]
    pub fn plain() -> Config {
        Config { segment: 1000, delayed_ack: None, min_rto: Duration::from_millis(200), ..Config::default() }
    }

    /// Headers of every packet in bytes.
    #[must_use]
    pub fn header(&self) -> u32 {
        self.settings.header.0.min(LARGEST_PACKET) as u32
    }

    /// A full segment on the wire, in bytes.
    #[must_use]
    pub fn packet(&self) -> u32 {
        self.segment + self.header()
    }

    /// Whether a key has an effect in this configuration: some are of one profile or control.
    #[must_use]
    pub fn concerns(&self, key: &str) -> bool {
        let kind = match self.congestion {
            Congestion::Linux(kind) => Some(kind),
            _ => None,
        };
        match key {
            "target" | "gain" => kind == Some(Kind::Ledbat),
            "rtt_virt" => kind == Some(Kind::Prague),
            "ect1" => kind == Some(Kind::Dctcp),
            "line_rate" | "cnp_interval" | "rate_timer" | "rate_bytes" | "rate_increase" => {
                kind == Some(Kind::Dcqcn)
            }
            "slow_start" => !matches!(kind, Some(Kind::Bbr | Kind::Ledbat | Kind::Copa | Kind::Dcqcn)),
            "prr" => self.profile == Profile::Linux && !self.congestion.has_rate(),
            "accurate_ecn" | "receiver_ecn" => self.ecn,
            "accurate_ecn_option" => self.ecn && self.accurate_ecn,
            _ => true,
        }
    }

    /// The protocol that the receiver speaks.
    #[must_use]
    pub fn receiver_speaks(&self) -> Option<Feedback> {
        self.receiver_ecn.map_or(self.speaks(), Ability::speaks)
    }

    /// How the sender would have marks told.
    #[must_use]
    pub fn speaks(&self) -> Option<Feedback> {
        let own = if self.accurate_ecn { Feedback::Counter } else { self.classic() };
        self.ecn.then_some(own)
    }

    /// The same with a receiver that knows no more than RFC 3168's flags: DCTCP takes it for one of its own (RFC 8257 §3.2).
    #[must_use]
    pub fn classic(&self) -> Feedback {
        match self.congestion {
            Congestion::Linux(Kind::Dctcp | Kind::Dcqcn) => Feedback::EachMark,
            _ => Feedback::Echo,
        }
    }

    /// Whether acknowledgements may have the AccECN Option.
    #[must_use]
    pub fn tells_bytes(&self) -> bool {
        self.settings.accurate_ecn_option && self.agreed() == Some(Feedback::Counter)
    }

    /// The agreement of the two ends where no SYN is lost and no code point mangled; `None`: there is no ECN.
    #[must_use]
    pub fn agreed(&self) -> Option<Feedback> {
        let (own, sent) = (self.speaks(), self.code_point_in(self.speaks()));
        let server = negotiation::server(self.receiver_speaks(), negotiation::syn(own, 0));
        negotiation::client(own, self.classic(), sent, negotiation::syn_ack(server, sent)).mode
    }

    /// The code point of its data where no SYN is lost and no code point mangled.
    #[must_use]
    pub fn code_point(&self) -> Ecn {
        self.code_point_in(self.agreed())
    }

    /// The code point of its data in a mode: L4S senders' is ECT(1) (RFC 9331 §4.1), and they need accurate feedback (§4.2). RFC 9768 §3.1.5:
    /// without ECN none.
    #[must_use]
    pub fn code_point_in(&self, mode: Option<Feedback>) -> Ecn {
        match (self.congestion, mode) {
            (_, None) => Ecn::NotCapable,
            (Congestion::Linux(Kind::Prague), Some(Feedback::Counter)) => Ecn::Ect1,
            (Congestion::Linux(Kind::Dctcp), _) if self.settings.ect1 => Ecn::Ect1,
            _ => Ecn::Ect0,
        }
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
