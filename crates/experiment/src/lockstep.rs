//! Connections that begin together: their SYNs fill a queue at once, those that find it full are lost together, and are sent again
//! together when their timers expire, to be lost again.
//!
//! The check looks at the slowest link of each route: when SYNs come there by starts and propagation delays, no closer than the
//! links before let them, and how many the queue has no room for while the link sends one after the other. What else waits there is
//! not known before a run, so this is the least.

use crate::text::{Location, Section};
use inprofile_core::units::{Backlog, Bytes, Duration, Rate, Time};

use crate::model::{Group, Model, Source, Start};
use crate::traffic::Traffic;

/// The fewest lost SYNs that are warned of, if they are a tenth of all.
const LOST: usize = 100;

/// A SYN at a queue.
struct Syn {
    at: Time,
    size: Bytes,
    group: usize,
}

/// Warns of each link and class where many SYNs are lost, at the group that loses most.
pub(crate) fn check(root: &Section<'_, '_>, model: &Model) {
    let tables = root.get("flows").and_then(|e| e.tables("[[flows]]")).unwrap_or_default();
    let place: Vec<Option<(u32, usize)>> = model.groups.iter().map(|g| slowest(model, g)).collect();
    let mut seen: Vec<(u32, usize)> = place.iter().flatten().copied().collect();
    seen.sort_unstable();
    seen.dedup();
    for at in seen {
        let direction = model.direction(at.0 as usize);
        let Some((queue, rate)) = direction.queue.each(direction.rate).nth(at.1) else { continue };
        let crossing = || (0..model.groups.len()).filter(|g| place[*g] == Some(at));
        let all: usize = crossing().map(|g| model.groups[g].count).sum();
        if all <= LOST {
            continue;
        }
        let mut syns: Vec<Syn> = Vec::with_capacity(all);
        for group in crossing() {
            arrivals(model, group, at.0, &mut syns);
        }
        syns.sort_unstable_by_key(|s| (s.at, s.group));
        let lost = overflow(&syns, queue.limit, rate, model.groups.len());
        let total: usize = lost.iter().sum();
        let Some(worst) = (0..lost.len()).max_by_key(|g| lost[*g]).filter(|g| lost[*g] > 0) else { continue };
        if total < LOST || total < all / 10 {
            continue;
        }
        let table = &tables[worst];
        let key = if table.get("start").is_some() { table.locate("start") } else { table.place().clone() };
        let problem = format!(
            "{total} of {all} SYNs find the queue of {}, {}, full: they are lost together, and sent again together",
            model.direction_name(at.0 as usize),
            queue.limit
        );
        let from = earliest(&model.groups[worst].start);
        // Room for a full packet of each.
        let first = model.groups[worst].packet().0 * 8 * all as u64 / rate.0.max(1) + 1;
        let to = from + Duration::from_millis(1000 * first);
        let remedy = if to.0 < model.duration.0 {
            format!("write start = \"uniform {}..{} s\"", from.secs(), to.secs())
        } else {
            "write a start over a longer time, such as \"uniform 0..60 s\", and a longer duration; or fewer flows".to_owned()
        };
        root.report().warning(&Location { quoted: false, ..key }, problem, remedy);
    }
}

/// The slowest link of a TCP's route, the first of equal ones, and which of its queues is the group's.
fn slowest(model: &Model, group: &Group) -> Option<(u32, usize)> {
    if matches!(group.sends(), Traffic::Udp(_)) || group.count == 0 {
        return None;
    }
    let at = *group.route.path.iter().min_by_key(|w| model.direction(**w as usize).rate)?;
    let classes = model.direction(at as usize).queue.classes();
    Some((at, classes.iter().position(|c| Some(&c.name) == group.class.as_ref()).unwrap_or(0)))
}

fn earliest(start: &Start) -> Time {
    match start {
        Start::At(times) => times.distinct().iter().copied().min().unwrap_or(Time::ZERO),
        Start::Uniform(from, _) | Start::Arrivals(from, ..) => *from,
    }
}

/// When the i-th flow starts; where that is drawn, as if draws were evenly spaced.
fn start(group: &Group, i: usize) -> Time {
    match &group.start {
        Start::At(times) => times.get(i),
        Start::Uniform(low, high) => {
            *low + Duration(((high.0 - low.0) as f64 * i as f64 / group.count as f64) as u64)
        }
        Start::Arrivals(first, every, _) => *first + Duration(every.0.saturating_mul(i as u64)),
    }
}

/// When the SYNs of a group come to a link of their route.
fn arrivals(model: &Model, number: usize, link: u32, syns: &mut Vec<Syn>) {
    let group = &model.groups[number];
    let size = Bytes(u64::from(group.tcp.header()));
    let before = || group.route.path.iter().take_while(|w| **w != link).map(|w| model.direction(*w as usize));
    let delay: Duration = before().map(|d| d.delay + d.rate.serialise(size)).sum();
    let apart = before().map(|d| d.rate.serialise(size)).max().unwrap_or(Duration::ZERO);
    let first = syns.len();
    for i in 0..group.count {
        let joined = match &group.source {
            Source::Node(_) => Duration::ZERO,
            Source::Hosts(join) => {
                let up = group.route.joining(join.rtt.get(i)).map_or(Duration::ZERO, |(up, _)| up);
                up + join.rate.serialise(size)
            }
        };
        let at = start(group, i) + joined + delay;
        if at.0 < model.duration.0 {
            syns.push(Syn { at, size, group: number });
        }
    }
    // The links before let one through after the other.
    syns[first..].sort_unstable_by_key(|s| s.at);
    for i in first + 1..syns.len() {
        syns[i].at = syns[i].at.max(syns[i - 1].at + apart);
    }
}

/// How many of each group's SYNs, in order of time, find no room.
fn overflow(syns: &[Syn], limit: Backlog, rate: Rate, groups: usize) -> Vec<usize> {
    let mut lost = vec![0; groups];
    let mut free = Time::ZERO;
    for syn in syns {
        let time = rate.serialise(syn.size);
        // In SYNs, with what is left of the one that is being sent, which does not wait.
        let ahead = free.since(syn.at).0 as f64 / time.0.max(1) as f64;
        if ahead > limit.packets(syn.size) {
            lost[syn.group] += 1;
        } else {
            free = free.max(syn.at) + time;
        }
    }
    lost
}
