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

use super::Class;
use super::classes::{self, ASSURED, BEST_EFFORT, Link};
use super::services::Service;
use super::templates::Terms;

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
pub(super) fn read(
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
pub(super) fn shared(section: &Section<'_, '_>, packet: Bytes) -> Option<Share> {
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
