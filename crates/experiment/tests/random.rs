//! Experiments drawn at random: one to three hops, whatever mechanisms the registry has, every kind of traffic and TCP.

use std::fmt::Write as _;

use inprofile_core::params::{Bounds, Default as Fallback, Field, Kind, Value, Values};
use inprofile_core::registry::{Entry, Registry};
use inprofile_core::rng::Rng;
use inprofile_core::units::{Backlog, Bytes, Duration, Rate};
use inprofile_experiment::Scenario;
use inprofile_experiment::text::show;

/// TCP's profiles, and the congestion controls each has.
pub const CONTROLS: [(&str, &[&str]); 3] = [
    ("rfc", &["reno", "newreno", "sack", "cubic"]),
    ("linux", &["sack", "cubic", "dctcp", "prague", "bbr", "ledbat", "copa", "dcqcn"]),
    ("ns2", &["reno", "newreno", "sack"]),
];

/// The traffic; COUNT stands for the group's number of flows.
pub const TRAFFIC: [(&str, &str); 14] = [
    ("bulk", ""),
    ("bulk", ""),
    ("bulk", ""),
    ("transfer", ", size = \"20 kB\""),
    ("transfer", ", size = \"10 packets\", sizes = \"pareto\""),
    ("cbr", ", rate = \"300 kbit/s\", packet = \"200 B\""),
    ("cbr", ", rate = \"1 Mbit/s\", dither = 1.0"),
    ("cbr", ", rate = \"500 kbit/s\", ecn = \"ect1\""),
    ("on_off", ", peak = \"1 Mbit/s\", on = \"50 ms\", off = \"50 ms\""),
    ("on_off", ", peak = \"2 Mbit/s\", on = \"20 ms\", off = \"80 ms\", periods = \"exponential\""),
    ("poisson", ", rate = \"500 kbit/s\", sizes = \"exponential\", packet = \"400 B\", largest = \"1500 B\""),
    ("web", ", connections = COUNT, objects = 6, object = \"4 kB\", sizes = \"pareto\", think = \"50 ms\""),
    (
        "video",
        ", lowest = \"50 kbit/s\", highest = \"800 kbit/s\", levels = 4, chunk = \"200 ms\", buffer = \"600 ms\"",
    ),
    ("voice", ", talk = \"300 ms\", silence = \"200 ms\""),
];

/// How links of the field come to send; nothing most often.
const TURNS: [&str; 6] = [
    "",
    "",
    "",
    "access = { kind = \"slots\", every = \"40 ms\", length = \"30 ms\", request = \"5 ms\" }",
    "access = { kind = \"bursts\", overhead = \"300 us\", contention = \"1 ms\", most = 5 }",
    "trace = \"3\\n3\\n8\\n20\\n21\\n40\\n\"",
];
/// How their delays vary.
const DELAYS: [&str; 6] = [
    "",
    "",
    "jitter = { kind = \"uniform\", to = \"4 ms\" }",
    "jitter = { kind = \"exponential\", mean = \"2 ms\", reorder = true }",
    "jitter = { kind = \"share\", share = 0.1, delay = \"7 ms\", hold = \"30 ms\" }",
    "delays = { steps = [{ at = \"300 ms\", delay = \"25 ms\" }], repeat = \"700 ms\" }",
];
/// What they lose.
const LOSSES: [&str; 4] = [
    "",
    "",
    "loss = { kind = \"independent\", share = 0.01 }",
    "loss = { kind = \"gilbert_elliott\", to_bad = 0.01, to_good = 0.4, in_bad = 0.8 }",
];

/// An experiment, and what was put in: mechanisms, congestion controls, kinds of traffic.
pub struct Drawn {
    pub text: String,
    pub parts: Vec<&'static str>,
    pub scenario: Scenario,
}

/// The experiment of this number. What the reader refuses (thresholds that don't go together) is drawn again.
pub fn draw(number: u64, registry: &Registry) -> Drawn {
    let mut rng = Rng::for_component(number, "random scenario");
    for attempt in 0.. {
        // Of their own, so that all else is what it would be without.
        let field = Rng::for_component(number, "links in the field");
        let mut draft =
            Draft { rng: &mut rng, field, registry, text: String::new(), parts: Vec::new(), classes: false };
        draft.whole(number);
        let Draft { text, parts, .. } = draft;
        match Scenario::parse(&text, "random", &[], registry) {
            Ok(scenario) => return Drawn { text, parts, scenario },
            Err(problems) if attempt == 200 => panic!("{}\n{text}", problems[0]),
            Err(_) => {}
        }
    }
    unreachable!("the loop ends in a scenario or a panic")
}

struct Draft<'a> {
    rng: &'a mut Rng,
    field: Rng,
    registry: &'a Registry,
    text: String,
    parts: Vec<&'static str>,
    /// Whether there are schedulers, and flows have classes.
    classes: bool,
}

impl Draft<'_> {
    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.rng.below(from.len() as u32) as usize].clone()
    }

    fn chance(&mut self, p: f64) -> bool {
        self.rng.uniform() < p
    }

    fn line(&mut self, text: &str) {
        writeln!(self.text, "{text}").expect("a string takes everything");
    }

    fn whole(&mut self, number: u64) {
        self.line(&format!("title = \"random {number}\""));
        self.line("duration = \"3 s\"\nmeasure = { from = \"1 s\", to = \"2.5 s\" }");
        let ns2_engine = self.chance(0.15);
        if ns2_engine {
            self.line("[engine]\nprofile = \"ns2\"");
        }
        self.classes = !ns2_engine && self.chance(0.25);
        let tcp = self.tcp();
        self.line(&format!("[tcp]\n{}", tcp.replace(", ", "\n")));
        let hops = 1 + self.rng.below(3) as usize;
        let field = !ns2_engine && self.field.below(2) == 0;
        for hop in 0..hops {
            self.link(hop, field);
        }
        let groups = 1 + self.rng.below(4);
        for group in 0..groups {
            self.group(group, hops);
        }
        let edges: Vec<usize> = (0..=hops).filter(|_| self.rng.uniform() < 0.4).collect();
        for node in &edges {
            let marker = self.marker(true);
            self.line(&format!("[[edges]]\nnode = \"N{node}\"\nmarker = {marker}"));
        }
        if let Some(node) = edges.first()
            && self.chance(0.6)
        {
            let loss = self.pick(&[0.0, 0.3, 1.0]);
            let hop = self.rng.below(hops as u32);
            self.line(&format!("[[signals]]\nfrom = \"N{node}\"\nto = \"hop{hop}\"\nloss = {loss:?}"));
        }
    }

    fn tcp(&mut self) -> String {
        let (profile, controls) = self.pick(&CONTROLS);
        let congestion = self.pick(controls);
        self.parts.push(congestion);
        let (rfc, linux) = (profile == "rfc", profile == "linux");
        let (always_paced, always_marked) = (
            matches!(congestion, "bbr" | "prague" | "dcqcn"),
            matches!(congestion, "dctcp" | "prague" | "dcqcn"),
        );
        let paced = always_paced || linux && self.chance(0.3);
        let marked =
            always_marked || (rfc || linux && !matches!(congestion, "bbr" | "copa")) && self.chance(0.3);
        let delayed = self.pick(&["0 s", "100 ms", "40 ms"]);
        let window = self.pick(&[1, 2, 5, 20, 100, 1000, 10_000]);
        let segment = self.pick(&[100, 536, 1000, 1460, 8960]);
        let mut text = format!(
            "profile = \"{profile}\", congestion = \"{congestion}\", delayed_ack = \"{delayed}\", \
             window = \"{window} packets\", segment = \"{segment} B\""
        );
        let more = [
            (rfc && congestion == "cubic" && self.chance(0.5), ", sack = false".into()),
            (!paced && self.chance(0.2), ", jitter = \"1 ms\"".into()),
            (
                self.chance(0.4),
                format!(", min_rto = \"{}\"", self.pick(&["1 ms", "50 ms", "200 ms", "1 s", "5 s"])),
            ),
            (self.chance(0.4), format!(", initial_window = \"{} packets\"", self.pick(&[1, 2, 4, 40]))),
            (self.chance(0.3), ", limited_transmit = false".into()),
            (marked && !always_marked, ", ecn = true".into()),
            (linux && marked && self.chance(0.5), ", accurate_ecn = true, accurate_ecn_option = true".into()),
            (
                marked && self.chance(0.3),
                format!(", receiver_ecn = \"{}\"", self.pick(&["accurate", "dctcp", "classic", "none"])),
            ),
            (paced && !always_paced, ", pacing = true".into()),
            (
                matches!(congestion, "reno" | "newreno" | "sack" | "cubic")
                    && (rfc || linux)
                    && self.chance(0.3),
                ", slow_start = \"hystart++\"".into(),
            ),
            (
                linux && !matches!(congestion, "bbr" | "copa" | "dcqcn") && self.chance(0.3),
                format!(", prr = \"{}\"", self.pick(&["linux", "rfc9937", "rfc6937"])),
            ),
            (congestion == "ledbat" && self.chance(0.5), ", target = \"20 ms\", gain = 2.0".into()),
            (congestion == "prague" && self.chance(0.3), ", rtt_virt = \"0 s\"".into()),
            (congestion == "dctcp" && self.chance(0.3), ", ect1 = true".into()),
            (
                congestion == "dcqcn" && self.chance(0.7),
                ", line_rate = \"10 Mbit/s\", rate_increase = \"10 kbit/s\"".into(),
            ),
        ];
        for (said, what) in &more {
            if *said {
                text += what;
            }
        }
        text
    }

    /// What a link of the field has.
    fn in_the_field(&mut self) -> Vec<&'static str> {
        let drawn =
            [&TURNS[..], &DELAYS, &LOSSES].map(|all| all[self.field.below(all.len() as u32) as usize]);
        drawn.into_iter().filter(|key| !key.is_empty()).collect()
    }

    fn link(&mut self, hop: usize, field: bool) {
        // Few rates and delays on purpose: many things happen at the same moment.
        let rate = self.pick(&["500 kbit/s", "1 Mbit/s", "2 Mbit/s"]);
        let delay = self.pick(&["0 s", "1 ms", "5 ms", "20 ms"]);
        self.line(&format!(
            "[[links]]\nname = \"hop{hop}\"\nfrom = \"N{hop}\"\nto = \"N{}\"\nrate = \"{rate}\"\ndelay = \"{delay}\"",
            hop + 1
        ));
        if self.classes && self.chance(0.6) {
            let scheduler =
                &self.registry.schedulers[self.rng.below(self.registry.schedulers.len() as u32) as usize];
            self.parts.push(scheduler.name);
            let classes = [0, 1].map(|class| {
                let quantum = if scheduler.name == "drr" { ", quantum = \"2 packets\"" } else { "" };
                let rate = if self.chance(0.2) { ", rate = \"200 kbit/s\"" } else { "" };
                format!("{{ name = \"c{class}\", {}{quantum}{rate} }}", self.queue())
            });
            self.line(&format!(
                "queue = {{ scheduler = \"{}\", classes = [{}] }}",
                scheduler.name,
                classes.join(", ")
            ));
        } else {
            let queue = self.queue();
            self.line(&format!("queue = {{ {queue} }}"));
        }
        let slow = self.chance(0.2);
        if field {
            self.in_the_field().into_iter().for_each(|key| self.line(key));
        }
        if slow {
            let (mut more, filter) = (Vec::new(), field && self.field.below(3) > 0);
            if field {
                more = self.in_the_field();
            }
            more.extend(filter.then_some("ack_filter = true"));
            let more: String = more.into_iter().map(|key| format!(", {key}")).collect();
            self.line(&format!(
                "reverse = {{ rate = \"100 kbit/s\", queue = {{ aqm = \"drop_tail\", limit = \"20 packets\" }}{more} }}"
            ));
        }
    }

    fn queue(&mut self) -> String {
        let aqms = self.registry.aqms.clone();
        let aqm = self.mechanism("aqm", &aqms);
        format!("{aqm}, limit = \"{} packets\"", 2 + self.rng.below(60))
    }

    fn group(&mut self, group: u32, hops: usize) {
        let count = self.pick(&[1, 1, 2, 5]);
        let first = self.rng.below(hops as u32) as usize;
        let last = first + 1 + self.rng.below((hops - first) as u32) as usize;
        // Some go against the others.
        let (from, to) = if self.chance(0.15) { (last, first) } else { (first, last) };
        self.line(&format!("[[flows]]\nname = \"g{group}\"\ncount = {count}\nto = \"N{to}\""));
        if self.chance(0.6) {
            let rtt = self.pick(&["130 ms", "200 ms", "150..190 ms"]);
            let rtt = if count == 1 { "140 ms" } else { rtt };
            let rate = self.pick(&["1 Mbit/s", "10 Mbit/s"]);
            let limit = self.pick(&[3, 1000]);
            self.line(&format!("from = \"H*\"\nrtt = \"{rtt}\""));
            self.line(&format!(
                "join = {{ node = \"N{from}\", rate = \"{rate}\", limit = \"{limit} packets\" }}"
            ));
        } else {
            self.line(&format!("from = \"N{from}\""));
        }
        let start = self.pick(&[
            "\"0 s\"",
            "\"uniform 0..1 s\"",
            "{ every = \"100 ms\" }",
            "{ first = \"0.5 s\", every = \"200 ms\", arrivals = \"poisson\" }",
        ]);
        self.line(&format!("start = {start}"));
        if self.classes {
            let class = self.rng.below(2);
            self.line(&format!("class = \"c{class}\""));
        }
        if self.chance(0.2) {
            self.line("stop = \"1.7 s\"");
        }
        if self.chance(0.5) {
            self.line("contract = \"200 kbit/s\"");
        }
        if self.chance(0.6) {
            let marker = self.marker(false);
            self.line(&format!("marker = {marker}"));
        }
        let (kind, values) = self.pick(&TRAFFIC);
        self.parts.push(kind);
        let traffic = format!("{{ kind = \"{kind}\"{values} }}").replace("COUNT", &count.to_string());
        self.line(&format!("traffic = {traffic}"));
        if kind == "bulk" && self.chance(0.3) {
            // What `[tcp]` says of a congestion control may not go with another one; that draft is drawn again.
            let tcp = self.tcp();
            self.line(&format!("tcp = {{ {tcp} }}"));
        }
    }

    fn marker(&mut self, edge: bool) -> String {
        let markers = self.registry.markers.clone();
        let text = self.mechanism("kind", &markers);
        // An edge has no contract that a rate could follow from.
        let rate = text.contains("token_bucket") && edge && !text.contains(" rate = ");
        if rate { format!("{{ {text}, rate = \"300 kbit/s\" }}") } else { format!("{{ {text} }}") }
    }

    fn mechanism<M>(&mut self, key: &str, entries: &[Entry<M>]) -> String {
        let entry = &entries[self.rng.below(entries.len() as u32) as usize];
        self.parts.push(entry.name);
        let values = self.values(entry.fields);
        let mut text = format!("{key} = \"{}\"", entry.name);
        for (name, value) in &values.0 {
            write!(text, ", {name} = {}", show::toml(value)).expect("a string takes everything");
        }
        text
    }

    fn values(&mut self, fields: &[Field]) -> Values {
        let mut all = Vec::new();
        for f in fields {
            let left_out = match f.default {
                Fallback::Required => false,
                Fallback::Value(_) => self.chance(0.6),
                Fallback::Derived => self.chance(0.8),
            };
            if !left_out {
                all.push((f.name, self.value(f)));
            }
        }
        Values(all)
    }

    fn value(&mut self, f: &Field) -> Value {
        match f.kind {
            Kind::Flag => Value::Flag(self.chance(0.5)),
            Kind::Choice(words) => Value::Choice(self.pick(words)),
            Kind::Group(fields) => Value::Group(self.values(fields)),
            Kind::Count => Value::Count(self.within(f.bounds, &[1.0, 2.0, 7.0, 16.0]) as u64),
            Kind::Number => Value::Number(self.within(f.bounds, &[0.002, 0.02, 0.1, 0.5, 1.0, 2.0])),
            Kind::Rate => Value::Rate(Rate(self.pick(&[100_000, 300_000, 1_000_000]))),
            Kind::Duration => Value::Duration(Duration::from_millis(self.pick(&[10, 100, 500]))),
            Kind::Bytes => Value::Bytes(Bytes(self.pick(&[2_000, 5_000, 20_000]))),
            Kind::Backlog if f.name.starts_with("max") => self.packets(&[15.0, 20.0, 40.0]),
            Kind::Backlog => self.packets(&[2.0, 5.0, 10.0]),
        }
    }

    fn packets(&mut self, from: &[f64]) -> Value {
        Value::Backlog(Backlog::Packets(self.pick(from)))
    }

    /// One of these numbers that the bounds allow.
    fn within(&mut self, bounds: Bounds, from: &[f64]) -> f64 {
        let allowed: Vec<f64> = from.iter().copied().filter(|x| bounds.allow(*x)).collect();
        if allowed.is_empty() { bounds.max.min(1e6) } else { self.pick(&allowed) }
    }
}
