//! `[tcp]` and a group's `tcp = { … }`: the keys are declared in `sim` (`tcp/config.rs`), whether they go together is looked at here.

use crate::text::Section;
use crate::text::mechanism;
use inprofile_core::params::{Params, Values};
use inprofile_sim::tcp::Config;
use inprofile_sim::tcp::config::Keys;

use checks::checked;

/// The table `[tcp]`, and the configuration that follows from it.
pub(crate) struct Base {
    given: Values,
    /// `None` if the values contradict each other.
    pub config: Option<Config>,
}

/// Reads `[tcp]`; `None` if a value could not be read.
pub(crate) fn base(root: &Section<'_, '_>) -> Option<Base> {
    let Some(entry) = root.get("tcp") else {
        return Some(Base { given: Values::default(), config: Some(Config::default()) });
    };
    let section = entry.section(&mechanism::known(&[], Keys::FIELDS))?;
    let given = mechanism::given(&section, Keys::FIELDS)?;
    let config = checked(&section, &given);
    Some(Base { given, config })
}

/// Reads a group's `tcp`, over `[tcp]`.
pub(crate) fn over(base: &Base, group: &Section<'_, '_>) -> Option<Config> {
    let Some(entry) = group.get("tcp") else { return base.config.clone() };
    let section = entry.section(&mechanism::known(&[], Keys::FIELDS))?;
    let mut values = mechanism::given(&section, Keys::FIELDS)?;
    let said = |name: &str, values: &Values| values.get(name).is_some();
    let inherited: Vec<_> = base.given.0.iter().filter(|(n, _)| !said(n, &values)).cloned().collect();
    values.0.extend(inherited);
    checked(&section, &values)
}

mod checks {
    //! Whether TCP's parameters go together: which profile has which control, and which control has which parameter.

    use crate::text::Section;
    use inprofile_core::params::{Params, Values};
    use inprofile_core::units::{Backlog, Duration};
    use inprofile_sim::tcp::config::{Keys, LARGEST_PACKET};
    use inprofile_sim::tcp::control::Kind;
    use inprofile_sim::tcp::negotiation::Ability;
    use inprofile_sim::tcp::{Config, Congestion, Feedback, Profile, Settings, SlowStart};

    /// The most bytes a window may hold: RFC 7323 §2.3.
    const LARGEST_WINDOW: u64 = 1 << 30;

    /// Fills in the defaults of what is given; `None` if the result contradicts itself, which is reported.
    pub(super) fn checked(section: &Section<'_, '_>, given: &Values) -> Option<Config> {
        let tcp = Keys::from_values(&given.filled(Keys::FIELDS));
        let config = tcp.clone().complete();
        let mut checks = Checks { section, given, tcp: &tcp, config: &config, good: true };
        checks.windows();
        checks.control();
        checks.delay_target();
        checks.scalable();
        checks.slow_start();
        checks.prr();
        checks.pacing();
        checks.accurate_ecn();
        checks.ns2();
        checks.sack();
        checks.sizes();
        checks.receiver_ecn();
        let good = checks.good;
        if good && config.ecn {
            warn_of_lost_feedback(section, &tcp, &config);
        }
        good.then_some(config)
    }

    /// Warns where the ends agree on less than the sender would have, and what it is then.
    fn warn_of_lost_feedback(section: &Section<'_, '_>, tcp: &Keys, config: &Config) {
        let name = config.congestion.name();
        let agreed = config.agreed();
        let key = if tcp.receiver_ecn.is_some() { "receiver_ecn" } else { "accurate_ecn" };
        let prague = config.congestion == Congestion::Linux(Kind::Prague);
        let problem = match agreed {
            None if config.congestion.is_scalable() => {
                format!("with a receiver that has no ECN {name}'s packets are not ECT, and its window is Reno's")
            }
            None => format!("with a receiver that has no ECN {name}'s packets are not ECT, and none is marked"),
            Some(Feedback::Counter) => return,
            Some(_) if prague => "with a receiver that lacks accurate feedback (RFC 9768) prague is no L4S sender: its packets are ECT(0), and its window Reno's".into(),
            Some(_) if config.accurate_ecn => {
                format!("with a receiver that lacks accurate feedback (RFC 9768) {name} is told of marks by ECN-Echo")
            }
            Some(Feedback::EachMark) if matches!(config.receiver_ecn, Some(Ability::Classic | Ability::Accurate)) => {
                format!("{name} takes ECN-Echo for what its own receiver tells (RFC 8257 §3.2), and one of RFC 3168 repeats it: it counts marks that were none")
            }
            Some(_) => return,
        };
        section.report().warning(
            &section.locate(key),
            problem,
            format!("remove {key}, unless this is what is studied"),
        );
    }

    /// Checks that report what they find.
    struct Checks<'a, 'd, 'r> {
        section: &'a Section<'d, 'r>,
        /// As given.
        given: &'a Values,
        /// The same, typed.
        tcp: &'a Keys,
        /// With all defaults.
        config: &'a Config,
        /// Nothing has been found yet.
        good: bool,
    }

    impl Checks<'_, '_, '_> {
        fn is_given(&self, key: &str) -> bool {
            self.given.get(key).is_some()
        }

        fn fault(&mut self, key: &str, problem: impl Into<String>, remedy: &str) {
            self.section.report().error(&self.section.locate(key), problem, remedy);
            self.good = false;
        }

        /// Windows are whole numbers of packets.
        fn windows(&mut self) {
            for (name, amount) in [("window", self.tcp.window), ("initial_window", self.tcp.initial_window)] {
                match amount {
                    None => {}
                    Some(Backlog::Packets(n)) if n >= 1.0 && n <= f64::from(u32::MAX) && n.fract() == 0.0 => {
                    }
                    Some(Backlog::Packets(_)) => self.fault(
                        name,
                        "a window is a whole number of packets, at least 1",
                        "write \"20 packets\"",
                    ),
                    Some(Backlog::Bytes(_)) => self.fault(
                        name,
                        "a window is counted in full packets, not in bytes",
                        "write \"20 packets\"",
                    ),
                }
            }
        }

        /// Which profile has the control, and which controls need ECN or do without.
        fn control(&mut self) {
            let config = self.config;
            if config.profile == Profile::Linux && self.tcp.sack == Some(false) {
                self.fault(
                    "sack",
                    "the linux profile recovers by selective acknowledgements",
                    "remove sack, or write profile = \"rfc\"",
                );
            } else if config.profile == Profile::Linux && !config.congestion.uses_sack() {
                self.fault(
                    "congestion",
                    "the linux profile recovers by selective acknowledgements",
                    "write congestion = \"sack\", which grows the window as Reno does, or \"cubic\"",
                );
            }
            if let Congestion::Linux(kind) = config.congestion {
                let name = kind.name();
                if config.profile != Profile::Linux {
                    self.fault(
                        "congestion",
                        format!("only the linux profile has {name}"),
                        "write profile = \"linux\"",
                    );
                }
                if !config.ecn && config.congestion.is_scalable() {
                    self.fault(
                        "ecn",
                        format!(
                            "{name} goes by the share of packets that queues mark, and has no other measure"
                        ),
                        "remove ecn, or write congestion = \"cubic\"",
                    );
                }
            }
            let why = match config.congestion {
                Congestion::Linux(Kind::Bbr) => "bbr has no answer to marks (draft-ietf-ccwg-bbr §3.7)",
                Congestion::Linux(Kind::Copa) => {
                    "copa has no answer to marks (NSDI 2018: it goes by delay alone)"
                }
                _ => return,
            };
            if config.ecn {
                self.fault(
                    "ecn",
                    format!("{why}, and its packets would be marked instead of dropped"),
                    "remove ecn",
                );
            }
        }

        /// The keys of LEDBAT alone.
        fn delay_target(&mut self) {
            for name in ["target", "gain"] {
                if self.is_given(name) && !self.config.congestion.measures_delay() {
                    self.fault(
                        name,
                        format!("is ledbat's; {} has none", self.config.congestion.name()),
                        "write congestion = \"ledbat\", or remove it",
                    );
                }
            }
            if self.config.settings.target > Settings::default().target {
                self.fault(
                    "target",
                    "LEDBAT's queueing delay must be 100 ms or less (RFC 6817 §2.5)",
                    "write \"100 ms\", or less",
                );
            }
        }

        /// The keys of one congestion control that answers marks.
        fn scalable(&mut self) {
            for (name, kind) in [
                ("rtt_virt", Kind::Prague),
                ("ect1", Kind::Dctcp),
                ("line_rate", Kind::Dcqcn),
                ("cnp_interval", Kind::Dcqcn),
                ("rate_timer", Kind::Dcqcn),
                ("rate_bytes", Kind::Dcqcn),
                ("rate_increase", Kind::Dcqcn),
            ] {
                if self.is_given(name) && self.config.congestion != Congestion::Linux(kind) {
                    self.fault(
                        name,
                        format!("is {}'s; {} has none", kind.name(), self.config.congestion.name()),
                        &format!("write congestion = \"{}\", or remove it", kind.name()),
                    );
                }
            }
        }

        fn slow_start(&mut self) {
            if self.tcp.slow_start.is_some()
                && let Some((problem, remedy)) = wrong_exit(self.config)
            {
                self.fault("slow_start", problem, remedy);
            }
        }

        fn prr(&mut self) {
            let config = self.config;
            if !self.is_given("prr") {
                return;
            }
            if config.profile != Profile::Linux {
                self.fault(
                    "prr",
                    "only the linux profile reduces its window in proportion to what arrives",
                    "write profile = \"linux\", or remove prr",
                );
            } else if config.congestion.has_rate() {
                self.fault(
                    "prr",
                    format!(
                        "{} sets its window itself, also while it recovers from losses",
                        config.congestion.name()
                    ),
                    "remove prr, or write congestion = \"cubic\"",
                );
            }
        }

        fn pacing(&mut self) {
            let config = self.config;
            if config.congestion.has_rate() && !config.pacing {
                self.fault(
                    "pacing",
                    format!("{} sets a rate, which is nothing without pacing", config.congestion.name()),
                    "remove pacing, or write congestion = \"cubic\"",
                );
            }
            let has_rate =
                config.profile == Profile::Linux || matches!(config.congestion, Congestion::Linux(_));
            if config.pacing && !has_rate {
                self.fault(
                    "pacing",
                    "pacing without a rate: only the linux profile has one, from the window and the round-trip time",
                    "write profile = \"linux\", or remove pacing",
                );
            } else if config.pacing && config.settings.jitter > Duration::ZERO {
                self.fault(
                    "pacing",
                    "does not go with jitter: each would delay the packets that the other has spaced",
                    "remove jitter, or write pacing = false",
                );
            }
        }

        fn accurate_ecn(&mut self) {
            if self.tcp.accurate_ecn != Some(true) {
                return;
            }
            if self.config.profile != Profile::Linux {
                self.fault(
                    "accurate_ecn",
                    "only the linux profile has accurate feedback of marks (RFC 9768)",
                    "write profile = \"linux\", or remove accurate_ecn",
                );
            } else if !self.config.ecn {
                self.fault(
                    "accurate_ecn",
                    "without ECN nothing is marked, and there is nothing to tell",
                    "write ecn = true, or remove accurate_ecn",
                );
            }
        }

        fn receiver_ecn(&mut self) {
            if self.tcp.receiver_ecn.is_some() && !self.config.ecn {
                self.fault(
                    "receiver_ecn",
                    "the sender asks for no ECN, and whatever its receiver can, they agree on none",
                    "write ecn = true, or remove receiver_ecn",
                );
            }
            if self.config.settings.accurate_ecn_option && !self.config.accurate_ecn {
                self.fault(
                    "accurate_ecn_option",
                    "is part of accurate feedback (RFC 9768), which the sender does not ask for",
                    "write accurate_ecn = true, or remove accurate_ecn_option",
                );
            }
        }

        /// The features that ns-2's one-way TCP lacks.
        fn ns2(&mut self) {
            if self.config.profile != Profile::Ns2 {
                return;
            }
            if let Congestion::Cubic { .. } = self.config.congestion {
                self.fault(
                    "congestion",
                    "the ns2 profile has no CUBIC",
                    "write profile = \"rfc\", or congestion = \"sack\"",
                );
            }
            if self.config.ecn {
                self.fault(
                    "ecn",
                    "the ns2 profile has no explicit congestion notification",
                    "write profile = \"rfc\", or remove ecn",
                );
            }
        }

        fn sack(&mut self) {
            let Some(sack) = self.tcp.sack.filter(|sack| *sack != self.config.congestion.uses_sack()) else {
                return;
            };
            let (name, with) = (self.config.congestion.name(), if sack { "without" } else { "with" });
            self.fault(
                "sack",
                format!("does not go with congestion = \"{name}\", which recovers {with} SACK"),
                if sack { "write congestion = \"sack\"" } else { "write congestion = \"newreno\"" },
            );
        }

        /// Packets fit into IP, and the window into TCP's header.
        fn sizes(&mut self) {
            let (tcp, config) = (self.tcp, self.config);
            let segment = tcp.segment.map_or(u64::from(config.segment), |b| b.0);
            let size = segment.saturating_add(tcp.settings.header.0);
            if size > LARGEST_PACKET {
                self.fault(
                    "segment",
                    format!("segment and header make packets of {size} B; IP allows {LARGEST_PACKET} B"),
                    "write a smaller segment, such as \"1460 B\"",
                );
            } else if u64::from(config.window) * u64::from(config.segment) > LARGEST_WINDOW {
                self.fault(
                    "window",
                    format!(
                        "a window of {} packets of {} B is more than TCP can offer (2^30 B)",
                        config.window, config.segment
                    ),
                    "write a smaller window",
                );
            }
        }
    }

    /// Why a slow start that was asked for is none of this sender's, and what to write instead.
    fn wrong_exit(config: &Config) -> Option<(String, &'static str)> {
        let (name, wanted) = (config.congestion.name(), config.slow_start);
        let ours = SlowStart::of(config.profile, config.congestion);
        match config.congestion {
            Congestion::Linux(Kind::Bbr | Kind::Ledbat | Kind::Copa | Kind::Dcqcn) => Some((
                format!("{name} has no slow start (RFC 5681) that could end so"),
                "remove it, or write congestion = \"cubic\"",
            )),
            Congestion::Linux(_) if wanted != ours => Some((
                format!(
                    "{} is for the windows of Reno and CUBIC; {name} leaves slow start at the first mark",
                    wanted.word()
                ),
                "remove it, or write congestion = \"cubic\"",
            )),
            _ if config.profile == Profile::Ns2 && wanted != ours => Some((
                "the ns2 profile has neither HyStart nor HyStart++".into(),
                "write profile = \"rfc\" or \"linux\", or remove it",
            )),
            _ if wanted == SlowStart::HyStart && wanted != ours => Some((
                "only cubic in the linux profile has Linux's HyStart".into(),
                "write \"hystart++\" (RFC 9406), or profile = \"linux\" and congestion = \"cubic\"",
            )),
            _ => None,
        }
    }
}
