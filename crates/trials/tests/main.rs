//! The tests of the crate in one program: our own mechanisms, and those that a new crate starts with.

#[path = "../../../python/inprofile/own/template/aqm.law.rs.in"]
mod discipline;
#[path = "../../../python/inprofile/own/template/marker.law.rs.in"]
mod marker;

mod template {
    //! The mechanisms that `inprofile new-mechanism` starts with are compiled here as they are in the package, and tried as the
    //! crates made of them are.

    use crate::{discipline, marker};

    #[test]
    fn the_marker_holds_what_every_marker_has_to() {
        inprofile_trials::marker(&marker::ENTRY);
    }

    #[test]
    fn the_discipline_holds_what_every_discipline_has_to() {
        inprofile_trials::discipline(&discipline::ENTRY);
    }
}

mod parity {
    //! Simulator and datapath agree on every mechanism and scheduler that is registered.

    use inprofile_core::params::{Field, Kind, Value, Values};
    use inprofile_core::registry::Registry;
    use inprofile_core::units::Rate;
    use inprofile_trials::parity::{Before, Pair, Tally, compare};
    use inprofile_trials::settings::{Setting, settings, values_of};
    use inprofile_trials::{discipline_parity, find, marker_parity};

    fn seeds() -> std::ops::RangeInclusive<u64> {
        1..=std::env::var("PARITY_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
    }

    #[test]
    fn every_marker_gives_the_same_verdicts() {
        let registry = Registry::default();
        let mut tally = Tally::default();
        for marker in &registry.markers {
            marker_parity(marker, seeds(), &mut tally);
        }
        println!("{} markers: {} verdicts compared, {tally:?}", registry.markers.len(), tally.all());
        assert!(tally.edge_drops > 0 && tally.queue_drops > 0);
    }

    #[test]
    fn every_discipline_gives_the_same_verdicts() {
        let registry = Registry::default();
        let mut tally = Tally::default();
        for aqm in &registry.aqms {
            discipline_parity(aqm, seeds(), &mut tally);
        }
        println!("{} disciplines: {} verdicts compared, {tally:?}", registry.aqms.len(), tally.all());
        assert!(tally.queue_drops > 0 && tally.marked > 0 && tally.departures > 0);
    }

    /// Every word of every choice and both values of every flag are among what is tried.
    #[test]
    fn every_word_is_tried() {
        fn all_tried(name: &str, fields: &[Field], settings: &[Setting]) {
            for field in fields {
                let words = match field.kind {
                    Kind::Flag => [false, true].map(Value::Flag).to_vec(),
                    Kind::Choice(words) => words.iter().map(|word| Value::Choice(word)).collect(),
                    _ => continue,
                };
                let tried: Vec<_> = settings.iter().map(|s| values_of(fields, *s)).collect();
                for word in words {
                    let it = |values: &Values| values.get(field.name) == Some(&word);
                    assert!(tried.iter().any(it), "{name}: {} is never {word:?}", field.name);
                }
            }
        }
        let registry = Registry::default();
        registry.markers.iter().for_each(|e| all_tried(e.name, e.fields, &settings(e)));
        registry.aqms.iter().for_each(|e| all_tried(e.name, e.fields, &settings(e)));
    }

    /// Three classes before the link, unlike in their disciplines, with and without set rates, under every scheduler.
    #[test]
    fn every_scheduler_gives_the_same_verdicts() {
        let registry = Registry::default();
        let mut tally = Tally::default();
        let aqm = |name| find(&registry.aqms, name);
        let rate = |kbit: u64| Some(Rate(1_000 * kbit));
        let sets = [
            // Together less than the link, together more, and one of them alone.
            [("rio", rate(600)), ("red", rate(500)), ("drop_tail", rate(400))],
            [("rio", rate(1_500)), ("wred", rate(1_000)), ("rio", rate(700))],
            [("drop_tail", rate(400)), ("rio", None), ("fdd_red", None)],
            [("rio", None), ("drop_tail", None), ("red", None)],
            [("fq_codel", rate(900)), ("fq_codel", None), ("rio", None)],
            [("dualpi2", rate(900)), ("sfq", None), ("fq_pie", rate(600))],
        ];
        for scheduler in &registry.schedulers {
            for classes in sets.map(|set| set.map(|(name, rate)| (aqm(name), rate))) {
                for setting in [Setting::Middle, Setting::Low] {
                    let before = Before::Classes(scheduler, &classes);
                    let pair = Pair { marker: find(&registry.markers, "ard"), before, setting };
                    seeds().for_each(|seed| compare(&pair, seed, &mut tally));
                }
            }
        }
        println!("{} schedulers: {} verdicts compared, {tally:?}", registry.schedulers.len(), tally.all());
        assert!(tally.queue_drops > 0 && tally.marked > 0 && tally.departures > 0);
    }
}
