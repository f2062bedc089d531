use inprofile_core::registry::Registry;
use proptest::prelude::{any, prop, prop_assert, proptest};

use super::role::Role;
use super::*;

mod customer_file;
mod customers;

const EXAMPLE: &str = include_str!("../../../../packaging/inprofiled.toml");

fn read(text: &str) -> Result<(Config, Vec<String>), Vec<String>> {
    let told =
        |p: Vec<inprofile_experiment::text::Problem>| p.iter().map(ToString::to_string).collect::<Vec<_>>();
    match parse(text.as_bytes(), "r.toml", &Registry::default()) {
        Ok((config, warnings)) => Ok((config, told(warnings))),
        Err(problems) => Err(told(problems)),
    }
}

#[test]
fn the_example_is_without_fault_and_says_what_it_means() {
    let (config, warnings) = read(EXAMPLE).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    let [Some(up), Some(down)] = &config.directions else { panic!("both directions") };
    assert_eq!((up.classes.len(), up.assured, down.classes.len()), (3, 2, 2));
    assert_eq!((up.role, down.role), (Role::Edge, Role::Core));
    assert_eq!(up.promised(), Some(Rate(30_000_000)));
    // 45 packets of 1500 B at 50 Mbit/s: 90 × 1500 × 8 / 50e6 = 21.6 ms.
    let json = describe::json(&config);
    let min_th = &json["upstream"]["classes"][2]["in"]["min_th"];
    assert_eq!(
        min_th,
        &serde_json::json!({ "is": "90 packets", "packets": 90.0, "bytes": 135_000.0, "ms": 21.6 })
    );
    let text = describe::text(&config);
    assert!(text.contains("min_th = 90 packets (135000 B, 21.6 ms)"), "{text}");
    assert!(text.contains("limit = 50 packets (75000 B, 120 ms)"), "voice at its own rate: {text}");
}

/// These problems, in this order: what each begins with.
fn assert_told(problems: &[String], wanted: &[&str]) {
    for (problem, wanted) in problems.iter().zip(wanted) {
        assert!(problem.starts_with(wanted), "{problem}");
    }
    assert!(problems.len() >= wanted.len(), "{problems:#?}");
}

/// Every mistake at once, each with its place and its remedy.
#[test]
fn mistakes_are_told_with_place_and_remedy() {
    let mistaken = |head: &str| {
        let rest = r#"
[upstream]
rate = "10"
queue = { aqm = "rioo", limit = "0 packets" }
[[upstream.customers]]
name = "a b"
prefix = "10.0.1.7/24"
marker = { kind = "token_bucket", depth = "10 B" }
[[upstream.customers]]
name = "c"
marker = { kind = "colour", colour = "red" }
"#;
        read(&format!("inside = \"eth0\"\n{head}{rest}")).unwrap_err()
    };
    let head =
        "outside = \"eth0\"\nfial = \"open\"\n[code_points]\nin = \"AF11\"\nout = \"AF11\"\nred = \"AF14\"";
    assert_told(
        &mistaken(head),
        &[
            "r.toml:2:11: error: outside = \"eth0\": both ports are the same interface",
            "r.toml:3:1: error: fial: unknown key\n  did you mean \"fail\"?",
            "r.toml:7:7: error: code_points.red = \"AF14\": no such DSCP",
        ],
    );
    let problems = mistaken("outside = \"eth1\"");
    let wanted = [
        "r.toml:4:8: error: upstream.rate = \"10\": a rate needs a unit",
        "r.toml:5:17: error: upstream.queue.aqm = \"rioo\": there is no such queue discipline\n  did you mean \"rio\"?",
        "r.toml:5:33: error: upstream.queue.limit = \"0 packets\": a queue that holds no packet",
        "r.toml:7:8: error: upstream.customers.a b.name = \"a b\": not a name",
        "r.toml:8:10: error: upstream.customers.a b.prefix = \"10.0.1.7/24\": the address has bits beyond its prefix of 24\n  write \"10.0.1.0/24\"",
        "r.toml:9:10: error: upstream.customers.a b.marker.rate: the bucket has no rate",
        "r.toml:10:1: error: upstream.customers.c.prefix: nothing says whose packets are meant",
    ];
    assert_eq!(problems.len(), wanted.len(), "{problems:#?}");
    assert_told(&problems, &wanted);
}

/// Every remedy that a message proposes can be written.
#[test]
fn the_remedy_for_missing_thresholds_works() {
    let file = |rest: &str| {
        format!(
            "inside = \"a\"\noutside = \"b\"\n[upstream]\nrate = \"10 Mbit/s\"\n[upstream.queue]\naqm = \"rio\"\nlimit = \"100 packets\"\n{rest}"
        )
    };
    let problems = read(&file("")).unwrap_err();
    let remedies: Vec<&str> =
        problems.iter().filter_map(|p| p.split_once("\n  write ")).map(|p| p.1).collect();
    assert_eq!(
        remedies,
        ["in", "out"]
            .map(|c| format!("{c} = {{ min_th = \"15 packets\", max_th = \"50 packets\", max_p = 0.1 }}"))
    );
    read(&file(&remedies.join("\n"))).expect("it is taken as it stands");
}

#[test]
fn unsafe_choices_are_warned_of() {
    let of = |head: &str| {
        let rest = "[upstream]\nrole = \"core\"\nrate = \"1 Mbit/s\"\nqueue = { aqm = \"drop_tail\", limit = \"10 packets\" }\n";
        read(&format!("inside = \"eth0\"\noutside = \"eth1\"\n{head}\n{rest}")).unwrap().1
    };
    assert_eq!(of("metrics = { listen = \"[::1]:9474\" }"), Vec::<String>::new());
    let open = of("metrics = { listen = \"0.0.0.0:9474\" }").concat();
    assert!(open.contains("whoever reaches 0.0.0.0:9474") && open.contains("127.0.0.1:9474"), "{open}");
    let open = of("fail = \"open\"").concat();
    assert!(open.contains("at a fault everything passes"), "{open}");
}

#[test]
fn what_is_odd_is_warned_of() {
    let (_, warnings) = read(
        r#"inside = "eth0"
outside = "eth1"
[upstream]
rate = "1 Mbit/s"
[upstream.queue]
aqm = "red"
limit = "200 packets"
min_th = "50 packets"
max_th = "300 packets"
max_p = 0.1
w_q = 0.0001
[[upstream.classes]]
name = "voice"
dscp = ["EF", "CS5"]
aqm = "drop_tail"
limit = "10 packets"
[[upstream.customers]]
name = "a"
port = 80
contract = "1.5 Mbit/s"
marker = { kind = "token_bucket", depth = "15 kB" }
"#,
    )
    .unwrap();
    let has =
        |text: &str| assert!(warnings.iter().any(|w| w.contains(text)), "{text} is not in {warnings:#?}");
    assert_eq!(warnings.len(), 7, "{warnings:#?}");
    has(
        "r.toml:4:8: warning: upstream.rate = \"1 Mbit/s\": the contracts add up to 1.5 Mbit/s, 1.50 times the rate",
    );
    has("300 packets is above the queue's limit of 200 packets");
    has("a full queue of 200 packets takes 2.4 s to drain");
    has("w_q = 0.0001 averages over 9999 packets, 120 s at this rate");
    has("the class voice is served first and has no rate");
    has("upstream.queue: red does not distinguish colours: best effort shares this queue with IN packets");
    has("nobody has bought the class voice: at an edge no packet is ever in it");
}

/// Values of the file are shown as written; derived values rounded, with their meaning.
#[test]
fn values_are_shown_as_they_are() {
    let (config, _) = read(
        "inside = \"a\"\noutside = \"b\"\n[upstream]\nrate = \"10 Gbit/s\"\n[upstream.queue]\naqm = \"red\"\nlimit = \"100 packets\"\nmin_th = \"5 packets\"\nmax_th = \"50 packets\"\nmax_p = 0.00001\nw_q = 0.001953125\n",
    )
    .unwrap();
    let text = describe::text(&config);
    // −1 / ln(1 − 2^−9) = 511.5 packets of 1.2 µs.
    for line in [
        "w_q = 0.001953125\n",
        "max_p = 0.00001\n",
        "limit = 100 packets (150000 B, 0.12 ms)\n",
        "average = over 511.4998 packets, 0.6138 ms; from empty, 73 packets at once bring it to min_th\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

/// A marker that the kernel's datapath has not is refused with what to write instead; the other datapath has it, its warnings told.
#[test]
fn a_fair_policer_is_refused_in_the_kernel() {
    let text = |datapath: &str, burst: &str| {
        format!(
            "inside = \"a\"\noutside = \"b\"\n{datapath}\n[[upstream.customers]]\nname = \"alice\"\nprefix = \"10.0.0.1\"\ncontract = \"6 Mbit/s\"\nmarker = {{ kind = \"fair_policer\", burst = \"{burst}\", burst_control = \"200 ms\" }}\n"
        )
    };
    let problems = read(&text("datapath = \"kernel\"\n[upstream]", "750 kB")).unwrap_err();
    let words = "there is no fair_policer in the kernel's datapath\n  write one of token_bucket,";
    assert!(
        matches!(&problems[..], [one] if one.contains(words) && one.contains("or datapath = \"user\"")),
        "{problems:#?}"
    );
    let user = "[upstream]\nrate = \"9 Mbit/s\"\nqueue = { aqm = \"drop_tail\", limit = \"90 packets\" }";
    let warned = |burst| read(&text(user, burst)).unwrap().1.iter().any(|w| w.contains("burst_control"));
    assert!(!warned("750 kB") && warned("200 kB"));
}

/// A second meter behind the customers' is not there: a law that is gets a customer with all prefixes, any other the other datapath.
#[test]
fn an_aggregate_is_refused_in_the_kernel_with_what_to_write_instead() {
    let text = |marker: &str| {
        format!(
            "inside = \"a\"\noutside = \"b\"\ndatapath = \"kernel\"\n[upstream]\naggregate = {{ {marker} }}\n[[upstream.customers]]\nname = \"alice\"\nprefix = \"10.0.0.1\"\ncontract = \"1 Mbit/s\"\nmarker = {{ kind = \"token_bucket\", depth = \"30 kB\" }}\n"
        )
    };
    for (marker, words) in [
        (
            "kind = \"srtcm\", cbs = \"30 kB\", ebs = \"30 kB\"",
            "give all their prefixes to one customer who has this marker",
        ),
        ("kind = \"twam\"", "and there is no twam\n  leave aggregate out, or write datapath = \"user\""),
    ] {
        let problems = read(&text(marker)).unwrap_err();
        assert!(matches!(&problems[..], [one] if one.contains(words)), "{problems:#?}");
        read(&text(marker).replace("datapath = \"kernel\"", "").replace(
            "[upstream]",
            "[upstream]\nrate = \"9 Mbit/s\"\nqueue = { aqm = \"drop_tail\", limit = \"90 packets\" }",
        ))
        .unwrap();
    }
}

#[test]
fn what_only_a_simulator_knows_is_refused() {
    let text = |source: &str| {
        format!(
            "inside = \"a\"\noutside = \"b\"\n[upstream]\nrate = \"1 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"9 packets\" }}\naggregate = {{ kind = \"twam\", window_source = \"{source}\" }}\n"
        )
    };
    let problems = read(&text("oracle")).unwrap_err();
    assert!(problems.iter().any(|p| p.contains("what only a simulator knows")), "{problems:#?}");
}

/// A time is what drains in it at the rate that the class is served at.
#[test]
fn a_limit_may_be_a_time() {
    let file = |limit: &str, rate: &str| {
        format!(
            "inside = \"a\"\noutside = \"b\"\n[upstream]\nrole = \"core\"\nrate = \"10 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"{limit}\"{rate} }}\n"
        )
    };
    let limit = |file: String| {
        let (config, _) = read(&file).unwrap();
        config.directions[0].as_ref().unwrap().classes[1].limit
    };
    assert_eq!(limit(file("100 ms", "")), Backlog::Bytes(125_000.0));
    assert_eq!(limit(file("0.1 s", ", rate = \"2 Mbit/s\"")), Backlog::Bytes(25_000.0));
    assert_eq!(limit(file("50 packets", "")), Backlog::Packets(50.0));
    for (wrong, why) in [
        ("1 ms", "1250 B at 10 Mbit/s: less than a full packet of 1500 B\n  write at least \"2 ms\""),
        ("0 ms", "limit"),
        ("1000 s", "more than a queue can hold"),
        ("100 m", "limit"),
    ] {
        let problems = read(&file(wrong, "")).unwrap_err();
        assert!(problems.len() == 1 && problems[0].contains(why), "{problems:?}");
    }
}

/// The old key `others` still works for `role`, with a warning; both at once do not.
#[test]
fn roles_are_told() {
    let file = |head: &str, up: &str| {
        format!(
            "inside = \"a\"\noutside = \"b\"\n{head}\n[upstream]\nrate = \"1 Mbit/s\"\n{up}\nqueue = {{ aqm = \"drop_tail\", limit = \"9 packets\" }}\nbest_effort = {{ aqm = \"drop_tail\", limit = \"9 packets\" }}\n[[upstream.customers]]\nname = \"c\"\nport = 80\nmarker = {{ kind = \"colour\", colour = \"red\" }}\n[downstream]\nrole = \"core\"\nrate = \"1 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"9 packets\" }}\n"
        )
    };
    let ask = |head: &str, up: &str| {
        let (config, warnings) = read(&file(head, up)).unwrap();
        let up = config.directions[0].as_ref().unwrap();
        (up.role, up.unsold.bleach, warnings)
    };
    assert_eq!(ask("", ""), (Role::Edge, true, vec![]));
    assert_eq!(ask("role = \"core\"", ""), (Role::Core, false, vec![]));
    assert_eq!(ask("role = \"core\"", "role = \"edge\""), (Role::Edge, true, vec![]));
    assert_eq!(ask("dscp = \"keep\"", ""), (Role::Edge, false, vec![]));
    assert_eq!(ask("role = \"core\"\ndscp = \"bleach\"", ""), (Role::Core, true, vec![]));
    let old = |value: &str, now: &str| {
        let value = format!("others = \"{value}\"");
        let warning =
            format!("r.toml:6:10: warning: upstream.{value}: this key is now called role\n  write {now}");
        (value, warning)
    };
    let (trust, warning) = old("trust", "role = \"core\"");
    assert_eq!(ask("", &trust), (Role::Core, false, vec![warning]));
    let (best_effort, warning) = old(
        "best_effort",
        "role = \"edge\", the default; add dscp = \"keep\" to leave code points that nobody bought unchanged",
    );
    assert_eq!(ask("role = \"core\"", &best_effort), (Role::Edge, true, vec![warning]));
    let problems = read(&file("", "role = \"edge\"\nothers = \"trust\"")).unwrap_err();
    assert!(problems[0].contains("upstream.others = \"trust\": role is set too"), "{problems:?}");
    let (config, _) = read(&file("", "")).unwrap();
    assert_eq!(
        describe::roles(&config),
        [
            "upstream: edge, what nobody has bought is best effort; its code point is bleached; frames that are not IP or cannot be read are dropped; control frames get 32 kbit/s at most, of all kinds together",
            "downstream: core, the code points of what comes in are believed; all code points are kept; frames that are not IP or cannot be read pass as they are; control frames get 32 kbit/s at most, of all kinds together"
        ]
    );
}

#[test]
fn nothing_for_sale_is_given_away_by_a_remap() {
    let file = |remap: &str| {
        format!(
            "inside = \"a\"\noutside = \"b\"\nremap = {{ {remap} }}\n[upstream]\nrate = \"1 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"9 packets\" }}\nbest_effort = {{ aqm = \"drop_tail\", limit = \"9 packets\" }}\n[[upstream.classes]]\nname = \"voice\"\ndscp = [\"EF\"]\nrate = \"1 Mbit/s\"\naqm = \"drop_tail\"\nlimit = \"9 packets\"\n[[upstream.customers]]\nname = \"c\"\nport = 80\nmarker = {{ kind = \"colour\", colour = \"red\" }}\nservices = [{{ class = \"voice\", rate = \"1 Mbit/s\", burst = \"2 kB\" }}]\n"
        )
    };
    let (config, warnings) = read(&file("CS1 = \"CS1\", AF21 = 3, 46 = \"BE\"")).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    let unsold = config.directions[0].as_ref().unwrap().unsold;
    let becomes = |dscp: &str| unsold.becomes(Dscp::parse(dscp).unwrap()).unwrap().to_string();
    assert_eq!(["CS1", "AF21", "EF", "AF22"].map(becomes), ["CS1", "3", "CS0", "CS0"]);
    for (wrong, why) in [
        ("CS1 = \"AF11\"", "AF11 belongs to the colour in: customers who didn't buy it would get it"),
        ("CS1 = \"EF\"", "EF belongs to the class voice"),
        ("AF14 = \"BE\"", "the key is not a DSCP"),
        ("EF = \"BE\", 46 = \"BE\"", "this code point is remapped twice"),
        ("EF = 64", "remap.EF"),
    ] {
        let problems = read(&file(wrong)).unwrap_err();
        assert!(problems.len() == 1 && problems[0].contains(why), "{problems:?}");
    }
}

#[test]
fn what_frames_and_services_may_say() {
    let file = |frames: &str, services: &str| {
        format!(
            "inside = \"a\"\noutside = \"b\"\nmpu = \"84 B\"\nframes = {{ {frames} }}\n[upstream]\nrate = \"100 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"9 packets\" }}\n[[upstream.classes]]\nname = \"voice\"\ndscp = [\"EF\"]\nrate = \"1 Mbit/s\"\naqm = \"drop_tail\"\nlimit = \"9 packets\"\n[[upstream.customers]]\nname = \"c\"\nport = 80\nmarker = {{ kind = \"colour\", colour = \"red\" }}\nservices = [{services}]\n"
        )
    };
    let voice = "{ class = \"voice\", rate = \"1 Mbit/s\", burst = \"2 kB\" }";
    let (config, _) = read(&file("", voice)).unwrap();
    let up = config.directions[0].as_ref().unwrap();
    let (_, warnings) = read(&file("", &voice.replace("1 Mbit/s", "1.5 Mbit/s"))).unwrap();
    let oversold = "services of the class voice add up to 1.5 Mbit/s, and it is served at 1 Mbit/s";
    assert!(warnings.iter().any(|w| w.contains(oversold)), "{warnings:?}");
    // 0.5 % of the rate, and four full packets at once.
    assert_eq!((up.control.rate, up.control.burst.0, config.mpu), (Rate(500_000), 6_000, 84));
    assert_eq!(config.frames.age_limit.secs(), 0.5);
    let set = "unreadable = \"drop\", length_mismatch = \"drop\", age_limit = \"2 s\", control = { rate = \"64 kbit/s\", burst = \"3 kB\" }";
    let (config, _) = read(&file(set, voice)).unwrap();
    assert!(config.frames.drop_unreadable == Some(true) && config.frames.drop_length_mismatch);
    assert_eq!(config.directions[0].as_ref().unwrap().control.rate, Rate(64_000));
    let text = describe::text(&config);
    for line in [
        "  unreadable = drop\n",
        "  age_limit = 2 s\n",
        "role = edge\n",
        "dscp = bleach\n",
        "services voice\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
    let (config, warnings) = read(&file("unreadable = \"best_effort\"", voice)).unwrap();
    assert!(warnings.iter().any(|w| w.contains("leaves as it came")), "{warnings:?}");
    assert!(describe::text(&config).contains("  unreadable = best_effort\n"));
    for (frames, services, why) in [
        ("unreadable = \"pass\"", voice, "frames.unreadable"),
        ("control = { rate = \"64 kbit/s\", burst = \"1 kB\" }", voice, "none would ever be let through"),
        ("age_limit = \"0 s\"", voice, "frames.age_limit"),
        ("", "{ class = \"voise\", rate = \"1 Mbit/s\", burst = \"2 kB\" }", "write one of voice"),
        ("", "{ class = \"assured\", rate = \"1 Mbit/s\", burst = \"2 kB\" }", "there is no such class"),
        ("", "{ class = \"voice\", rate = \"1 Mbit/s\", burst = \"1 kB\" }", "less than a full packet"),
        ("", &format!("{voice}, {voice}"), "this class is bought twice"),
    ] {
        let problems = read(&file(frames, services)).unwrap_err();
        assert!(problems.len() == 1 && problems[0].contains(why), "{problems:?}");
    }
}

/// Floyd and Jacobson 1993, §6: w_q = 0.001 and min_th = 5 let a burst of 100 packets and more by; w_q = 0.002 and 5, 70.
#[test]
fn bursts_are_floyds() {
    let averages = |w: f64, packets: u32| (0..=packets).fold(0.0, |avg, n| avg + w * (f64::from(n) - avg));
    for (w, th) in [(0.001, 5.0), (0.002, 5.0), (0.002, 45.0), (0.02, 10.0), (0.2, 3.0)] {
        let burst = advice::burst(w, th).unwrap() as u32;
        // Played through: the average reaches the threshold with this packet and not before.
        assert!(
            averages(w, burst) >= th - 0.05 && averages(w, burst.saturating_sub(2)) < th,
            "{w} {th}: {burst}"
        );
    }
    assert_eq!(advice::burst(1e-9, 1e6), None);
}

proptest! {
    /// Whatever is cut out of a good file or put in its place, it is read or refused, never a panic.
    #[test]
    fn damaged_files_never_panic(at in 0..EXAMPLE.len(), cut in 0usize..40, put in prop::collection::vec(any::<u8>(), 0..8)) {
        let mut bytes = EXAMPLE.as_bytes().to_vec();
        let end = (at + cut).min(bytes.len());
        bytes.splice(at..end, put);
        match parse(&bytes, "r.toml", &Registry::default()) {
            Ok((config, _)) => prop_assert!(!describe::text(&config).is_empty()),
            Err(problems) => prop_assert!(!problems.is_empty()),
        }
    }
}
