//! Our side of the comparison with Linux: `linux-replay MODE MECHANISM …` puts what the guest saw to the same mechanism here.
//!
//! MECHANISM is its table in an experiment file, such as `aqm = "codel"`. Standard input has a line an event, in the order of
//! time, as [`events`] reads them. Modes:
//!
//! - `lockstep`: each packet at the head is put to the law (CoDel, COBALT), in the state to which Linux's verdicts have led so far. Where
//!   the verdicts differ, the time is moved at which the law is asked, until they agree: the least move says what the stamps have to explain;
//! - `turns`, with a limit in packets: who is served next, and who is dropped (SFQ). Where they differ, arrivals are moved across the
//!   link's questions;
//! - `police`: the same for a marker that drops, of each packet as it comes;
//! - `free`, with `ahead` or `asked` and a seed: the discipline decides for itself below a link such as the guest's, which asks it
//!   for a packet ahead of having the tokens for it, or when it has them.
//!
//! Standard output: of `lockstep` and `police` a line a decision, `NUMBER LINUX OURS SHIFT POSSIBLE`: SHIFT in nanoseconds,
//! -1 where no time helps, POSSIBLE 1 if the stamps leave room for Linux's verdict; of `free` a line a packet, `NUMBER VERDICT TIME`.

mod events;
mod free;
mod head;
mod lockstep;
mod police;
mod turns;

use std::io::{self, BufWriter, Write};

use events::Events;
use inprofile_core::aqm::{cobalt, codel};
use inprofile_core::params::{Context, Params as _, Value, Values};
use inprofile_core::registry::{AnyAqm, Entry, Registry};
use inprofile_core::units::{Backlog, Bytes, Rate};
use inprofile_experiment::text::{Document, Problem, Report, Section, named};

/// The guest's link: tbf's rate, the largest packet, and the most that a queue there may hold.
const CONTEXT: Context =
    Context { link_rate: Some(Rate(8_000_000)), contract: None, packet: Bytes(1000), limit: Some(LIMIT) };
const LIMIT: Backlog = Backlog::Packets(10_000.0);

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let registry = Registry::default();
    let mut out = BufWriter::new(io::stdout().lock());
    let events = Events::read(io::stdin().lock());
    match words[..] {
        ["lockstep", text] => {
            let (aqm, values) = built(text, "aqm", &registry.aqms)?;
            let ecn = values.get("ecn") == Some(&Value::Flag(true));
            match aqm {
                AnyAqm::Codel(_) => {
                    let params = codel::Params::from_values(&values);
                    let law = params.control(params.variant, &CONTEXT);
                    head::queue(events, &law, ecn, &mut out)?;
                }
                AnyAqm::Cobalt(_) => {
                    let law = cobalt::Params::from_values(&values).control(&CONTEXT);
                    head::queue(events, &law, ecn, &mut out)?;
                }
                _ => return Err(io::Error::other("lockstep is for codel and cobalt")),
            }
        }
        ["police", text] => {
            let (mut marker, values) = built(text, "kind", &registry.markers)?;
            let (Some(Value::Rate(rate)), Some(Value::Backlog(Backlog::Bytes(depth)))) =
                (values.get("rate"), values.get("depth"))
            else {
                return Err(io::Error::other("police wants a rate, and a depth in bytes"));
            };
            police::police(events, &mut marker, (*rate, *depth), &mut out)?;
        }
        ["turns", text, limit] => {
            let limit = limit.parse().map_err(|_| io::Error::other("LIMIT is a number of packets"))?;
            turns::queue(events, (limit, built(text, "aqm", &registry.aqms)?.0), &mut out)?;
        }
        ["free", text, when @ ("ahead" | "asked"), seed] => {
            let seed = seed.parse().map_err(|_| io::Error::other("SEED is a whole number"))?;
            free::run(
                events,
                (LIMIT, when == "ahead"),
                built(text, "aqm", &registry.aqms)?.0,
                seed,
                &mut out,
            )?;
        }
        _ => {
            return Err(io::Error::other(
                "linux-replay lockstep|police MECHANISM, turns MECHANISM LIMIT, or free MECHANISM ahead|asked SEED",
            ));
        }
    }
    out.flush()
}

/// The mechanism as an experiment file would have it built, and its values.
fn built<M: 'static>(text: &str, key: &'static str, entries: &[Entry<M>]) -> io::Result<(M, Values)> {
    let refused = |problems: Vec<Problem>| {
        io::Error::other(problems.iter().map(|p| format!("{p}\n")).collect::<String>())
    };
    let document = Document::parse(text, "mechanism", &[]).map_err(refused)?;
    let report = Report::new(&document);
    let known: Vec<&str> = document.root().0.iter().map(|(key, _, _)| key.as_str()).collect();
    let section = Section::root(&report, &known);
    let found = named::read(&section, (key, "mechanism"), &[], entries);
    match found.filter(|found| found.fits(&CONTEXT, false)) {
        Some(found) => {
            Ok(((found.mechanism.build)(&found.mechanism.values, &CONTEXT), found.mechanism.values))
        }
        None => Err(refused(report.finish())),
    }
}
