//! Classes and markers of a direction: discipline, limit, set rate and code points of each class.

use inprofile_core::params::Context;
use inprofile_core::registry::{AnyMarker, Registry};
use inprofile_core::units::{Backlog, Bytes, Rate};
use inprofile_experiment::text::named::{self, Mechanism, ParsedMechanism};
use inprofile_experiment::text::problem::Wrong;
use inprofile_experiment::text::quantity;
use inprofile_experiment::text::{Entry, Section};
use inprofile_live::code_points::{CodePoints, Dscp};
use inprofile_live::packet::{Control, SHORTEST_PAYLOAD};

use super::datapath::{self, Datapath};
use super::{Class, MOST_CLASSES, values};

/// The name of the class of control frames.
pub(super) const CONTROL: &str = "control";
/// Its queue, in packets, beside what policers let through at once.
const CONTROL_LIMIT: f64 = 100.0;
const MOST_CONTROL_LIMIT: f64 = 20_000.0;
/// The most a queue holds, in bytes.
const LARGEST_LIMIT: f64 = 1e9;
/// The name of the class of the three colours.
pub(super) const ASSURED: &str = "assured";
/// The name of the class of what is left.
pub(super) const BEST_EFFORT: &str = "best_effort";

/// How many control frames may wait: all kinds' bursts of the shortest, so that no flood of some makes the queue overflow.
pub(super) fn control_limit(burst: Bytes) -> Backlog {
    let bursts = (Control::ALL.len() as u64 * burst.0).div_ceil(SHORTEST_PAYLOAD as u64);
    Backlog::Packets((CONTROL_LIMIT + bursts as f64).min(MOST_CONTROL_LIMIT))
}

/// That of control frames: nobody else's, and first served.
pub(super) fn control_class(registry: &Registry) -> Option<Class> {
    let entry = registry.aqms.iter().find(|e| e.name == "drop_tail")?;
    let values = inprofile_experiment::text::mechanism::defaults(entry.fields)?;
    let aqm = Mechanism { name: entry.name, values, fields: entry.fields, build: entry.build };
    let limit = Backlog::Packets(CONTROL_LIMIT);
    Some(Class { name: CONTROL.to_owned(), dscp: Vec::new(), aqm, limit, rate: None })
}

/// The context of a class: its link.
#[derive(Clone, Copy)]
pub(super) struct Link<'a> {
    pub(super) rate: Option<Rate>,
    pub(super) packet: Bytes,
    pub(super) registry: &'a Registry,
    pub(super) datapath: Datapath,
}

/// The classes that are served before the assured one.
pub(super) fn classes(section: &Section<'_, '_>, link: &Link<'_>, points: CodePoints) -> Option<Vec<Class>> {
    let Some(entry) = section.get("classes") else { return Some(Vec::new()) };
    let tables = entry.tables("[[…classes]]")?;
    if tables.len() > MOST_CLASSES {
        let problem = format!("{} classes; the most is {MOST_CLASSES}", tables.len());
        return entry.wrong(Wrong::new(problem, "give one class several code points"));
    }
    let mut seen: Vec<Class> = Vec::new();
    let mut whole = true;
    for table in &tables {
        match one(table, link, points, &seen) {
            Some(class) => seen.push(class),
            None => whole = false,
        }
    }
    whole.then_some(seen)
}

fn one(table: &Section<'_, '_>, link: &Link<'_>, points: CodePoints, seen: &[Class]) -> Option<Class> {
    let entry = table.need("name", "\"voice\"");
    let name = entry.as_ref().and_then(|e| values::name(e, "\"voice\""));
    let list = table.need("dscp", "[\"EF\"]").and_then(|e| code_points(&e, points, seen));
    let class = if link.datapath == Datapath::Kernel {
        datapath::class(table, name.as_deref().unwrap_or(""), &["name", "dscp"], link)
    } else {
        class(table, name.as_deref().unwrap_or(""), &["name", "dscp"], link)
    };
    let (entry, name) = (entry?, name?);
    if [CONTROL, ASSURED, BEST_EFFORT].contains(&name.as_str()) || seen.iter().any(|c| c.name == name) {
        return entry.wrong(Wrong::new("another class has this name", "give each its own"));
    }
    Some(Class { dscp: list?, ..class? })
}

/// The code points of a class: none that another has.
fn code_points(entry: &Entry<'_, '_>, points: CodePoints, seen: &[Class]) -> Option<Vec<Dscp>> {
    let mut found = Vec::new();
    for element in entry.elements("a list such as [\"EF\"]")? {
        let dscp = values::dscp(&element)?;
        if points.colour(dscp).is_some() {
            let wrong =
                Wrong::new("this is a colour of the assured class", "leave it out, or change code_points");
            return element.wrong(wrong);
        }
        if let Some(other) = seen.iter().find(|c| c.dscp.contains(&dscp)) {
            let problem = format!("the class {} has it already", other.name);
            return element.wrong(Wrong::new(problem, "give each code point to one class"));
        }
        if !found.contains(&dscp) {
            found.push(dscp);
        }
    }
    if found.is_empty() {
        return entry
            .wrong(Wrong::new("a class without code points gets no packet", "write dscp = [\"EF\"]"));
    }
    Some(found)
}

/// Discipline, limit and set rate of a class.
pub(super) fn class(
    section: &Section<'_, '_>,
    name: &str,
    own: &[&'static str],
    link: &Link<'_>,
) -> Option<Class> {
    let others: Vec<&'static str> = own.iter().copied().chain(["limit", "rate"]).collect();
    let found = named::read(section, ("aqm", "queue discipline"), &others, &link.registry.aqms);
    let rate = match section.get("rate") {
        Some(e) => e.positive_rate().and_then(|rate| match link.rate {
            Some(whole) if rate > whole => {
                let problem = format!("a class can't be served faster than its direction, at {whole}");
                e.wrong(Wrong::new(problem, format!("write at most \"{whole}\", or leave rate out")))
            }
            _ => Some(Some(rate)),
        }),
        None => Some(None),
    };
    let served_at = rate.and_then(|r| r.or(link.rate));
    let limit = section.need("limit", "\"100 packets\"").and_then(|e| limit(&e, served_at, link.packet));
    let (found, rate, limit) = (found?, rate?, limit?);
    let place = Context { link_rate: served_at, contract: None, packet: link.packet, limit: Some(limit) };
    if !found.fits(&place, true) {
        return None;
    }
    let aqm = found.mechanism;
    if (aqm.build)(&aqm.values, &place).oracle().is_some() {
        no_oracle(section);
        return None;
    }
    Some(Class { name: name.to_owned(), dscp: Vec::new(), aqm, limit, rate })
}

/// A queue's limit: packets, bytes, or what drains in so long a time at the rate it is served at.
fn limit(entry: &Entry<'_, '_>, served_at: Option<Rate>, packet: Bytes) -> Option<Backlog> {
    if entry.as_text().is_none_or(|text| quantity::duration(text).is_err()) {
        return named::limit(entry, served_at, Some(packet));
    }
    let (time, rate) = (entry.positive_duration()?, served_at?);
    let bytes = (rate.0 as f64 * time.secs() / 8.0).floor();
    if bytes < packet.0 as f64 {
        let ms = (packet.0 as f64 * 8e3 / rate.0 as f64).ceil();
        let problem = format!("{bytes} B at {rate}: less than a full packet of {packet}");
        return entry.wrong(Wrong::new(problem, format!("write at least \"{ms} ms\"")));
    }
    if bytes > LARGEST_LIMIT {
        let problem = format!("{bytes} B at {rate}: more than a queue can hold");
        return entry.wrong(Wrong::new(problem, "write a shorter time"));
    }
    Some(Backlog::Bytes(bytes))
}

/// A marker of the registry.
pub(super) fn marker(
    entry: &Entry<'_, '_>,
    registry: &Registry,
    place: &Context,
) -> Option<Mechanism<AnyMarker>> {
    let section = named::open(entry, "kind", &registry.markers)?;
    let found: ParsedMechanism<'_, '_, AnyMarker> =
        named::read(&section, ("kind", "marker"), &[], &registry.markers)?;
    if !found.fits(place, true) {
        return None;
    }
    let marker = found.mechanism;
    if (marker.build)(&marker.values, place).oracle().is_some() {
        no_oracle(&section);
        return None;
    }
    Some(marker)
}

fn no_oracle(section: &Section<'_, '_>) {
    let problem = "it wants to be told what only a simulator knows";
    section.report().error(section.place(), problem, "choose the setting that estimates it from packets");
}

pub(super) mod queues {
    //! A customer's own queues: `queue`, `best_effort`, `rate`, `burst`, `priority` and `quantum` of a customer; and `shared` of a
    //! direction, the share of the link for customers without queues of their own.
    //!
    //! Such a customer has a link of its own behind the direction's link. Its classes are those of the direction that it needs: the
    //! classes of its `services`, its assured queue and, if it asks for it, best effort; they are served in strict priority, all of
    //! them together at no more than `rate`.

    use inprofile_core::queue::hierarchy::LEVELS;
    use inprofile_core::units::{Backlog, Bytes, Rate};
    use inprofile_experiment::text::problem::Wrong;
    use inprofile_experiment::text::{Entry, Section};

    use super::super::Class;
    use super::super::classes::{self, ASSURED, BEST_EFFORT, Link};
    use super::super::services::Service;
    use super::super::templates::Terms;

    /// Which part of the link somebody gets.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Share {
        /// Lower ones are served first, from 1; who has the same takes turns.
        pub priority: u8,
        /// Bytes of his turn.
        pub quantum: u32,
    }

    /// Served before everybody is what the direction's classes have before the assured one.
    const PRIORITIES: std::ops::RangeInclusive<u64> = 1..=LEVELS as u64 - 1;
    /// If nothing is said.
    const PRIORITY: u8 = 4;
    /// The greatest turn.
    const MOST_QUANTUM: f64 = 100e6;
    /// A shaper's default burst after it had to wait for others: its rate for so long, and two packets.
    const BURST_S: f64 = 0.01;

    /// A customer's queues.
    #[derive(Clone, Debug)]
    pub struct Own {
        /// Those of his classes, with the places of the direction's classes: in the same order.
        pub classes: Vec<(usize, Class)>,
        /// His shaper.
        pub rate: Option<Rate>,
        /// Its burst after it had to wait.
        pub burst: Bytes,
        /// His part of the link.
        pub share: Share,
    }

    /// The keys of a customer that ask for a queue of his own.
    const NEEDS_QUEUE: [&str; 5] = ["best_effort", "rate", "burst", "priority", "quantum"];

    /// Reads a customer's queues; `None` inside: he has none.
    pub(crate) fn read(
        terms: &Terms<'_, '_, '_>,
        services: &[Service],
        contract: Option<Rate>,
        link: &Link<'_>,
        above: &[Class],
    ) -> Option<Option<Own>> {
        let Some(queue) = terms.get("queue") else {
            let unused: Vec<_> = NEEDS_QUEUE.iter().filter_map(|key| Some((*key, terms.get(key)?))).collect();
            for (key, entry) in &unused {
                let remedy = format!(
                    "write queue = {{ aqm = \"drop_tail\", limit = \"100 packets\" }} beside it, or leave {key} out"
                );
                let problem = "it is of a queue of the customer's own, and he has none";
                entry.wrong::<()>(Wrong::new(problem, remedy));
            }
            return unused.is_empty().then_some(None);
        };
        let rate = match terms.get("rate") {
            Some(e) => rate(&e, contract, link).map(Some),
            None => Some(None),
        };
        let share = share(|key| terms.get(key), link.packet);
        let served_at = rate?.or(link.rate);
        let his = Link { rate: served_at, ..*link };
        let example = "{ aqm = \"drop_tail\", limit = \"100 packets\" }";
        let assured = classes::class(&queue.open(example)?, ASSURED, &[], &his);
        let last = match terms.get(BEST_EFFORT) {
            Some(e) => classes::class(&e.open(example)?, BEST_EFFORT, &[], &his).map(Some),
            None => Some(None),
        };
        let rate = rate?;
        let burst = match terms.get("burst") {
            Some(e) if rate.is_none() => {
                return e.wrong(Wrong::new("it is a shaper's, and there is none", "write rate beside it"));
            }
            Some(e) => burst(&e, link.packet)?,
            None => {
                let time = rate.map_or(0.0, |r| r.0 as f64 / 8.0 * BURST_S) as u64;
                Bytes(time.max(2 * link.packet.0))
            }
        };
        let share = share?;
        // A shaper that can't send a turn's worth at once would get less than its turn beside others.
        let burst = Bytes(burst.0.max(u64::from(share.quantum)));
        let mut classes: Vec<(usize, Class)> =
            services.iter().map(|s| (s.class, above[s.class].clone())).collect();
        classes.sort_by_key(|(place, _)| *place);
        classes.push((above.len(), assured?));
        classes.extend(last?.map(|class| (above.len() + 1, class)));
        Some(Some(Own { classes, rate, burst, share }))
    }

    /// A shaper's rate: not above the link's, and not below what was promised.
    fn rate(entry: &Entry<'_, '_>, contract: Option<Rate>, link: &Link<'_>) -> Option<Rate> {
        let rate = entry.positive_rate()?;
        if let Some(whole) = link.rate.filter(|whole| rate > *whole) {
            let problem = format!("a customer can't be served faster than the direction, at {whole}");
            return entry.wrong(Wrong::new(problem, format!("write at most \"{whole}\", or leave rate out")));
        }
        if let Some(contract) = contract.filter(|contract| *contract > rate) {
            let problem = format!("his contract of {contract} is above his shaper: it can never be had");
            return entry
                .wrong(Wrong::new(problem, format!("write at least \"{contract}\", or a lower contract")));
        }
        Some(rate)
    }

    fn burst(entry: &Entry<'_, '_>, packet: Bytes) -> Option<Bytes> {
        let bytes = entry.backlog()?.bytes(packet);
        if bytes < packet.0 as f64 || bytes > MOST_QUANTUM {
            let problem = format!("a burst is a packet of {packet} at least, and at most \"100 MB\"");
            return entry.wrong(Wrong::new(problem, format!("write \"{packet}\" or more")));
        }
        Some(Bytes(bytes as u64))
    }

    /// `shared` of a direction.
    pub(crate) fn shared(section: &Section<'_, '_>, packet: Bytes) -> Option<Share> {
        let Some(entry) = section.get("shared") else { return share(|_| None, packet) };
        let table = entry.section(&["priority", "quantum"])?;
        share(|key| table.get(key), packet)
    }

    fn share<'d: 'r, 'r>(get: impl Fn(&str) -> Option<Entry<'d, 'r>>, packet: Bytes) -> Option<Share> {
        let priority = get("priority").map_or(Some(PRIORITY), |e| e.count_in(PRIORITIES).map(|n| n as u8));
        let quantum = get("quantum").map_or(Some(Backlog::Packets(1.0)), |e| {
            let quantum = e.backlog()?;
            let bytes = quantum.bytes(packet);
            if bytes < packet.0 as f64 || bytes > MOST_QUANTUM {
                // Shreedhar and Varghese 1996, §3: with less than a packet a turn the work per packet is no longer O(1).
                let problem = format!("a turn is a packet of {packet} at least, and at most \"100 MB\"");
                return e.wrong(Wrong::new(problem, format!("write \"{packet}\", \"1 packets\" or more")));
            }
            Some(quantum)
        });
        Some(Share { priority: priority?, quantum: quantum?.bytes(packet) as u32 })
    }
}
