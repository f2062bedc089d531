//! The tests that every marker and queue discipline must pass: ours, and by one line those of another crate.
//!
//! ```no_run
//! # let entry = inprofile_core::registry::Registry::default().markers[0];
//! inprofile_trials::marker(&entry);
//! ```
//!
//! - [Parity](parity): simulator and datapath give identical verdicts on the same packets, down to the picosecond of each departure.
//! - [Properties](properties): equal seeds give equal results; whether a link is computed ahead or stepped, and whether
//!   verdicts are recorded, changes nothing; packets are conserved, figures are numbers, with any setting that the
//!   bounds and `check` allow.
//!
//! Settings come from the declared parameters, so nothing has to be said about a mechanism but its entry.
//! Non-goal: whether the law is the one its paper states. That is tested beside the law.

// Tests that other crates call: what fails panics, as an assertion does.
mod backends;
pub mod parity;
pub mod properties;
pub mod settings;

use inprofile_core::registry::{AnyAqm, AnyMarker, Entry, Registry};

use parity::{Before, Pair, Tally, compare};
use settings::{built, settings};

/// The entry of this name.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn find<'a, M>(entries: &'a [Entry<M>], name: &str) -> &'a Entry<M> {
    entries.iter().find(|e| e.name == name).unwrap_or_else(|| panic!("no mechanism is called {name}"))
}

/// All trials of a marker.
///
/// # Panics
/// If it does not hold what every marker has to.
pub fn marker(entry: &Entry<AnyMarker>) {
    let mut tally = Tally::default();
    marker_parity(entry, 1..=1, &mut tally);
    properties::marker(entry);
}

/// All trials of a queue discipline.
///
/// # Panics
/// If it does not hold what every discipline has to.
pub fn discipline(entry: &Entry<AnyAqm>) {
    let mut tally = Tally::default();
    discipline_parity(entry, 1..=1, &mut tally);
    properties::discipline(entry);
}

/// Parity of a marker with all its settings; one that sends signals also runs in front of a discipline that takes them.
///
/// # Panics
/// If simulator and datapath differ.
pub fn marker_parity(
    entry: &Entry<AnyMarker>,
    seeds: impl IntoIterator<Item = u64> + Clone,
    tally: &mut Tally,
) {
    let ours = Registry::default();
    for setting in settings(entry) {
        let marker = built(entry, setting).expect("it fits");
        if marker.oracle().is_some() {
            continue; // A router is told nothing that is not to be seen.
        }
        // Signals need somebody who listens.
        let sends = marker.sends();
        for aqm in if sends { &["rio", "dwred"][..] } else { &["rio"] } {
            let pair = Pair { marker: entry, before: Before::One(find(&ours.aqms, aqm)), setting };
            seeds.clone().into_iter().for_each(|seed| compare(&pair, seed, tally));
        }
    }
}

/// Parity of a discipline with all its settings, behind a marker that colours and drops.
///
/// # Panics
/// If simulator and datapath differ.
pub fn discipline_parity(
    entry: &Entry<AnyAqm>,
    seeds: impl IntoIterator<Item = u64> + Clone,
    tally: &mut Tally,
) {
    let ours = Registry::default();
    for setting in settings(entry) {
        if built(entry, setting).expect("it fits").oracle().is_some() {
            continue;
        }
        let pair = Pair { marker: find(&ours.markers, "ard"), before: Before::One(entry), setting };
        seeds.clone().into_iter().for_each(|seed| compare(&pair, seed, tally));
    }
}
