//! `[[links]]`: both directions of each, and the queues before them.

use crate::text::problem::Wrong;
use crate::text::{Entry, Section};
use inprofile_core::units::{Duration, Rate, Time};
use inprofile_sim::capacity::Capacity;

use crate::model::{At, Direction, MAX_STEPS, Queues};
use crate::read::scope::Scope;
use crate::read::{classes, mechanism, names};

/// A link as read: what is `None` was invalid and has been reported.
pub(crate) struct Draft {
    /// Its name.
    pub name: Option<At<String>>,
    /// Where its forward direction starts.
    pub from: Option<At<String>>,
    /// Where its forward direction ends.
    pub to: Option<At<String>>,
    /// Forward and reverse.
    pub directions: Option<[Direction; 2]>,
}

/// Reads every link.
pub(crate) fn read(sections: &[Section<'_, '_>], scope: Scope<'_>) -> Vec<Draft> {
    sections.iter().map(|s| link(s, scope)).collect()
}

fn link(section: &Section<'_, '_>, scope: Scope<'_>) -> Draft {
    section.refuse_unknown(&["name", "from", "to", "rate", "capacity", "delay", "queue", "reverse"]);
    let name = section.need("name", "\"bottleneck\"").and_then(|e| names::name(&e));
    let from = section.need("from", "\"R1\"").and_then(|e| names::name(&e));
    let to = section.need("to", "\"R2\"").and_then(|e| names::name(&e));
    if let (Some(from), Some(to)) = (&from, &to)
        && from.value == to.value
    {
        section.report().error(&to.place, "the link ends where it starts", "name another node");
    }
    let rate = section.need("rate", "\"1.2 Mbit/s\"").and_then(|e| e.positive_rate());
    let capacity = capacity(section, rate);
    let delay = section.need("delay", "\"5 ms\"").and_then(|e| e.duration());
    let example = "{ aqm = \"drop_tail\", limit = \"100 packets\" }";
    let queue = section.need("queue", example).and_then(|e| classes::queues(&e, scope, rate));
    let forward = (|| Some(Direction { rate: rate?, capacity: capacity?, delay: delay?, queue: queue? }))();
    let back = match section.get("reverse") {
        Some(entry) => reverse(&entry, scope, rate, delay),
        None => (|| {
            Some(Direction {
                rate: rate?,
                capacity: None,
                delay: delay?,
                queue: Queues::One(mechanism::drop_tail(None, scope, rate, scope.tcp)?),
            })
        })(),
    };
    let directions = forward.zip(back).map(|(forward, back)| [forward, back]);
    Draft { name, from, to, directions }
}

/// Reads `reverse = { … }`. Rate and delay default to those of the forward direction, the queue to a large drop-tail.
fn reverse(
    entry: &Entry<'_, '_>,
    scope: Scope<'_>,
    forward_rate: Option<Rate>,
    forward_delay: Option<Duration>,
) -> Option<Direction> {
    let section = entry.section(&["rate", "capacity", "delay", "queue"])?;
    let rate = section.get("rate").map_or(forward_rate, |e| e.positive_rate());
    let capacity = capacity(&section, rate);
    let delay = section.get("delay").map_or(forward_delay, |e| e.duration());
    let queue = match section.get("queue") {
        Some(e) => classes::queues(&e, scope, rate),
        None => mechanism::drop_tail(None, scope, rate, scope.tcp).map(Queues::One),
    };
    Some(Direction { rate: rate?, capacity: capacity?, delay: delay?, queue: queue? })
}

/// Reads `capacity = { steps = [{ at, rate }, …], repeat }`: how the rate changes, if it does. `None`: it is wrong.
fn capacity(section: &Section<'_, '_>, rate: Option<Rate>) -> Option<Option<Capacity>> {
    let Some(entry) = section.get("capacity") else { return Some(None) };
    let section = entry.section(&["steps", "repeat"])?;
    let example = "[{ at = \"20 s\", rate = \"10 Mbit/s\" }]";
    let given = section.need("steps", example)?;
    let tables = given.tables("steps, each with at and rate")?;
    if tables.is_empty() || tables.len() > MAX_STEPS {
        let problem = format!("{} steps; a capacity has 1 to {MAX_STEPS}", tables.len());
        return given.wrong(Wrong::new(problem, format!("write steps = {example}, or remove capacity")));
    }
    let repeat = match section.get("repeat") {
        Some(e) => Some(e.positive_moment()?),
        None => None,
    };
    let mut steps: Vec<(Time, Rate)> = Vec::with_capacity(tables.len());
    for table in &tables {
        table.refuse_unknown(&["at", "rate"]);
        let at = table.need("at", "\"20 s\"")?;
        let (time, rate) = (at.positive_moment()?, table.need("rate", "\"10 Mbit/s\"")?.positive_rate()?);
        if let Some((before, _)) = steps.last().filter(|(before, _)| before.0 >= time.0) {
            let problem = format!("the step before is at {before}: a capacity does not go back in time");
            return at.wrong(Wrong::new(problem, "write the steps in the order of their times"));
        }
        if let Some(repeat) = repeat.filter(|r| *r <= time) {
            let problem = format!("the capacity starts over after {repeat}, before this step");
            return at.wrong(Wrong::new(problem, "write an earlier time, or a longer repeat"));
        }
        steps.push((Time(time.0), rate));
    }
    Some(Some(Capacity::new(rate?, &steps, repeat)))
}
