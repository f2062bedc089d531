//! Experiments that can be run but are hardly meant: the warning, and that the run bears it out.

use std::sync::atomic::AtomicBool;

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use inprofile_sim::engine;
use inprofile_sim::outcome::Outcome;

/// A thousand TCPs that start together, before a link of 10 Mbit/s with 100 packets.
const CROWD: &str = r#"
title = "crowd"
duration = "790 ms"
measure = { from = "0 s", to = "790 ms" }
[[links]]
name = "link"
from = "A"
to = "B"
rate = "10 Mbit/s"
delay = "400 ms"
queue = { aqm = "drop_tail", limit = "100 packets" }
[[flows]]
name = "tcp"
count = 1000
from = "A"
to = "B"
"#;

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "crowd.toml", &[], &Registry::default())
        .unwrap_or_else(|p| panic!("{}", p.iter().map(ToString::to_string).collect::<String>()))
}

fn said(scenario: &Scenario) -> Vec<String> {
    scenario.warnings().iter().map(ToString::to_string).collect()
}

fn run(scenario: &Scenario) -> Outcome {
    engine::run(scenario.network(1, false), &AtomicBool::new(false), None).expect("it ends")
}

/// No flow has had an answer by the end: all that is dropped is SYNs, as many as the warning says.
#[test]
fn syns_that_are_lost_together_are_counted_beforehand() {
    let from_hosts = |rtt: &str| {
        CROWD.replace(
            "count = 1000\nfrom = \"A\"\nto = \"B\"\n",
            &format!(
                "count = 1000\nfrom = \"H*\"\njoin = {{ node = \"A\", rate = \"1 Gbit/s\" }}\nto = \"B\"\nrtt = \"{rtt}\"\n"
            ),
        )
    };
    for (text, lost) in [
        // One is being sent, 100 wait.
        (CROWD.to_owned(), Some(899)),
        (from_hosts("810 ms"), Some(899)),
        // In 10 ms the link sends 312 SYNs of 40 B.
        (from_hosts("810..830 ms"), Some(587)),
        (CROWD.replace("count = 1000", "count = 1000\nstart = \"uniform 0..500 ms\""), None),
        (CROWD.replace("limit = \"100 packets\"", "limit = \"1000 packets\""), None),
        (CROWD.replace("count = 1000", "count = 150"), None),
    ] {
        let scenario = scenario(&text);
        let said = said(&scenario);
        let drops: u64 = run(&scenario).drops.iter().flat_map(|d| d.packets).sum();
        match lost {
            None => assert!(said.is_empty() && drops < 100, "{said:?} {drops}"),
            Some(lost) => {
                let [warning] = &said[..] else { panic!("{said:?}") };
                assert!(
                    warning
                        .contains(&format!("{lost} of 1000 SYNs find the queue of link, 100 packets, full")),
                    "{warning}"
                );
                assert!(drops.abs_diff(lost) <= 2, "{drops} {warning}");
                assert!(warning.contains("fewer flows"), "{warning}");
            }
        }
    }
    let longer = scenario(&CROWD.replace("duration = \"790 ms\"", "duration = \"60 s\""));
    assert!(said(&longer)[0].contains("write start = \"uniform 0..2 s\""), "{:?}", said(&longer));
}

/// 1,000 B at 1 kbit/s take 8 s.
#[test]
fn a_packet_that_takes_longer_than_the_run_is_said() {
    let slow = |duration: &str| {
        let text = CROWD.replace("790 ms", duration).replace("10 Mbit/s", "1 kbit/s").replace(
            "count = 1000\nfrom = \"A\"\nto = \"B\"\n",
            "from = \"A\"\nto = \"B\"\ntraffic = { kind = \"cbr\", rate = \"1 kbit/s\" }\n",
        );
        let scenario = scenario(&text);
        let received: u64 = run(&scenario).flows[0].total.received.iter().sum();
        (said(&scenario).concat(), received)
    };
    let (warning, received) = slow("8 s");
    assert!(warning.contains("a packet of 1000 B takes 8.4 s, 8.4 s of it at link (1 kbit/s), and the run ends at 8 s: none arrives"), "{warning}");
    assert_eq!(received, 0);
    assert_eq!(slow("9 s"), (String::new(), 1));
}
