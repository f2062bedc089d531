use inprofile_core::registry::Registry;

use super::*;

mod disciplines;
mod police;

fn said(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

/// An imported file is a valid file of ours.
fn checked(text: &str) -> config::Config {
    match config::parse(text.as_bytes(), "imported", &Registry::default()) {
        Ok((config, _)) => config,
        Err(p) => panic!("{text}\n{:#?}", said(&p)),
    }
}

/// tc-red(8)'s own example: burst 55, min 30 000, avpkt 1000. By hand: over = 55 + 1 − 30 = 26; for w = 2^−5:
/// (1 − (31/32)^55) · 32 = 26.4 ≥ 26, and for 2^−4: (1 − (15/16)^55) · 16 = 15.5 < 26. So 5.
#[test]
fn tcs_weight_by_hand() {
    assert_eq!(wlog(30_000.0, 1_000.0, 55.0), Some(5));
    assert_eq!(wlog(30_000.0, 1_000.0, 29.0), None, "less than min / avpkt");
    assert_eq!(wlog(30_000.0, 1_000.0, 30.0), Some(1));
}

#[test]
fn tc_red_is_read() {
    let text = "# a comment\ntc qdisc add dev eth0 parent 1:1 handle 10: red \\\n".replace("\\\n", "")
        + "limit 400000 min 30000 max 90000 avpkt 1000 burst 55 ecn adaptive bandwidth 10Mbit\n";
    let ours = tc::import(&text, "x.tc").unwrap();
    assert_eq!(
        ours,
        r#"inside = "inside" # not given: the interface where packets come in
outside = "eth0" # dev

[upstream]
role = "core" # as there, the DSCP that a packet comes with is trusted
rate = "10 Mbit/s" # bandwidth

[upstream.queue]
aqm = "ared" # red
limit = "400000 B" # limit
min_th = "30000 B" # min
max_th = "90000 B" # max
max_p = 0.02 # where adaptive begins; it stays from 0.01 to 0.5
w_q = 0.03125 # 2^-5, from burst 55 packets (burst)
gentle = false # tc drops everything above max
mean_packet = "1000 B" # avpkt: how fast an idle link ages the average
ecn = true # ecn; above max ours drops, as with harddrop
"#
    );
    checked(&ours);
}

#[test]
fn what_tc_leaves_out_is_derived_and_said() {
    let ours = tc::import("red limit 60K avpkt 1000\n", "x.tc").unwrap();
    // 61440 / 4, that / 3, (2 · 5120 + 15360) / 3000.
    for line in [
        "limit = \"61440 B\" # limit",
        "min_th = \"5120 B\" # not given: a third of max",
        "max_th = \"15360 B\" # not given: a quarter of limit",
        "max_p = 0.02 # not given: tc's 0.02",
        "from burst 8 packets (not given: (2 min + max) / (3 avpkt))",
        "rate = \"10 Mbit/s\" # bandwidth not given: tc's 10Mbit; the parent qdisc shapes",
    ] {
        assert!(ours.contains(line), "{line}\n{ours}");
    }
    checked(&ours);
}

#[test]
fn gred_becomes_wred() {
    let text = "tc qdisc add dev eth1 root gred setup DPs 3 default 2 grio\n\
        tc qdisc change dev eth1 root gred limit 60KB min 15K max 25K burst 20 avpkt 1000 bandwidth 10Mbit DP 1 probability 0.02 prio 2\n\
        tc qdisc change dev eth1 root gred limit 60KB min 15K max 45K burst 20 avpkt 1000 bandwidth 10Mbit DP 2 probability 0.01 prio 1\n\
        tc qdisc change dev eth1 root gred limit 60KB min 15K max 20K burst 20 avpkt 1000 bandwidth 10Mbit DP 3 probability 0.1 prio 3\n";
    let ours = tc::import(text, "x.tc").unwrap();
    for line in [
        "outside = \"eth1\" # dev",
        "aqm = \"wred\" # gred",
        "green = { min_th = \"15360 B\", max_th = \"46080 B\", max_p = 0.01 } # DP 2",
        "yellow = { min_th = \"15360 B\", max_th = \"25600 B\", max_p = 0.02 } # DP 1",
        "red = { min_th = \"15360 B\", max_th = \"20480 B\", max_p = 0.1 } # DP 3",
        "averages = \"coupled\" # grio: each average includes the better colours",
    ] {
        assert!(ours.contains(line), "{line}\n{ours}");
    }
    checked(&ours);
    let shared = tc::import(
        &text.replace(" grio", "").replace("prio 2", "prio 1").replace("prio 3", "prio 1"),
        "x.tc",
    )
    .unwrap();
    assert!(shared.contains("averages = \"shared\""), "{shared}");
}

#[test]
fn cisco_is_read() {
    let text = "policy-map EDGE\n class AF1\n  shape average 20000000\n  queue-limit 200 packets\n  random-detect dscp-based\n  random-detect dscp af13 24 40 10\n  random-detect dscp af11 32 40 20\n  random-detect dscp af12 28 40\n  random-detect exponential-weighting-constant 7\n !\n";
    let ours = cisco::import(text, "x.ios").unwrap();
    assert_eq!(
        ours,
        r#"inside = "inside" # not given: the interface where packets come in
outside = "outside" # not given: the interface where packets go out
code_points = { in = "AF11", out = "AF12", red = "AF13" }

[upstream]
role = "core" # as there, the DSCP that a packet comes with is trusted
rate = "20 Mbit/s" # shape average

[upstream.queue]
aqm = "wred" # random-detect dscp-based
limit = "200 packets" # queue-limit
green = { min_th = "32 packets", max_th = "40 packets", max_p = 0.05 } # AF11: 1/20
yellow = { min_th = "28 packets", max_th = "40 packets", max_p = 0.1 } # AF12: 1/10; denominator not given: 10
red = { min_th = "24 packets", max_th = "40 packets", max_p = 0.1 } # AF13: 1/10
averages = "shared" # one average for all
w_q = 0.0078125 # 2^-7, from exponential-weighting-constant
gentle = false # everything is dropped above the upper threshold
"#
    );
    checked(&ours);
}

#[test]
fn what_is_not_understood_is_named_with_its_place() {
    for (text, wanted) in [
        (
            "tc qdisc add dev eth0 root red limit 60K avpkt 1000 brust 20\n",
            "x:1:53: error: brust: unknown word\n  did you mean \"burst\"?",
        ),
        ("\ntc qdisc add dev eth0 root sfq\n", "x:2:28: error: sfq: unknown word"),
        ("red limit 60X avpkt 1000\n", "x:1:11: error: 60X: not a value for limit"),
        ("red limit 60K\n", "x:1:1: error: red: avpkt is missing"),
        ("red limit 60K avpkt 1000 burst 2\n", "x:1:1: error: red: burst 2 is too small for min 5120"),
        ("red limit 60K avpkt 1000 nodrop\n", "x:1:26: error: nodrop: ours drops what it can't mark"),
        ("red limit 60K avpkt 1000 probability 2\n", "x:1:38: error: 2: not a value for probability"),
        ("gred setup DPs 5 default 1\n", "x:1:1: error: gred: 5 virtual queues"),
        ("", "x: error: no red or gred qdisc and no police filter in it"),
        (
            "tc qdisc add dev eth0123456789012 root red",
            "x:1:18: error: eth0123456789012: no interface can be",
        ),
        ("tc qdisc add dev", "x:1:14: error: dev: the line ends before its qdisc"),
        (
            "red limit 1200 avpkt 100\n",
            "x:1:1: error: red: becomes upstream.queue.limit = \"1200 B\", which is refused: less than a full packet",
        ),
    ] {
        let problems = said(&tc::import(text, "x").unwrap_err());
        assert!(problems.iter().any(|p| p.contains(wanted)), "{wanted}\n{problems:#?}");
    }
    for (text, wanted) in [
        ("random-detect dscp af14 1 2 10\n", "x:1:20: error: af14: no such DSCP"),
        ("random-detect dscp af11 40 30 10\n", "x:1:25: error: 40: the lower threshold is not below"),
        ("random-detect precedence 1 2 3\n", "x:1:15: error: precedence: unknown word"),
        (
            "random-detect dscp af11 1 2 10\nrandom-detect dscp af11 1 2 10\n",
            "x:2:20: error: af11: line 1 has it already",
        ),
        (" fair-queue\n", "x:1:2: error: fair-queue: unknown word"),
        ("bandwidth percent 20\n", "x:1:11: error: percent: not understood here"),
        ("random-detect dscp af11 1 2 10\n", "x: error: 1 curves"),
        ("bandwidth 18446744073709551615\n", "x:1:11: error: 18446744073709551615: no rate in kbit/s"),
    ] {
        let problems = said(&cisco::import(text, "x").unwrap_err());
        assert!(problems.iter().any(|p| p.contains(wanted)), "{wanted}\n{problems:#?}");
    }
}

/// The names that the kernel allows and that mean something in our file.
#[test]
fn any_name_of_an_interface_is_read() {
    for dev in ["inside", "outside", "a\"b", "c\\d", "eth0.7:1"] {
        let ours =
            tc::import(&format!("tc qdisc add dev {dev} root red limit 60K avpkt 1000\n"), "x").unwrap();
        assert_eq!(checked(&ours).ports[1], dev);
    }
}

/// All units of tc(8), PARAMETERS.
#[test]
fn rates_of_tbit_and_sizes_of_gbit_are_read() {
    let of = |words: &str| checked(&tc::import(&format!("red {words} avpkt 1000\n"), "x").unwrap());
    let rate = |c: &config::Config| c.directions[0].as_ref().unwrap().rate.0;
    assert_eq!(rate(&of("limit 60K bandwidth 1tbit")), 1_000_000_000_000);
    assert_eq!(rate(&of("limit 60K bandwidth 1tibit")), 1 << 40);
    let class = of("limit 0.001gbit min 30000 max 90000 burst 55").directions[0].clone().unwrap().classes;
    let limit = class.last().unwrap().limit.bytes(inprofile_core::units::Bytes(1500));
    assert_eq!(limit, (0.001 * f64::from(1 << 30) / 8.0).floor());
}

/// A RED that tc could write comes back as it went.
#[test]
fn red_goes_to_tc_and_back() {
    let line =
        "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 ecn bandwidth 10Mbit probability 0.1\n";
    let there = checked(&tc::import(line, "x").unwrap());
    let out = export::tc(&there);
    let red: Vec<&str> = out.lines().filter(|l| l.contains(" red ")).collect();
    assert_eq!(red.len(), 1, "{out}");
    let back = checked(&tc::import(red[0], "y").unwrap());
    let values = |c: &config::Config| c.directions[0].as_ref().unwrap().classes[0].aqm.values.clone();
    assert_eq!(values(&back), values(&there), "{out}");
    let cannot: Vec<&str> = out.lines().filter(|l| l.contains("cannot")).collect();
    let header = "# cannot: overhead = 0 B: tbf counts 14 B, the Ethernet header, of every packet: somewhat less gets through";
    assert_eq!(cannot, [header], "{out}");
}

proptest::proptest! {
    /// Every RED that tc takes comes back as it went, unless the export says what it cannot say of it.
    #[test]
    fn drawn_reds_go_to_tc_and_back(
        packets in 2u32..200, above in 1u32..300, room in 0u32..500, more in 1u32..60,
        avpkt in 300u32..1500, per_mille in 1u32..500, ecn in proptest::bool::ANY,
    ) {
        let min = packets * avpkt;
        let max = min + above * avpkt;
        let (limit, burst) = (max + room * avpkt, packets + more);
        let line = format!(
            "red limit {limit} min {min} max {max} avpkt {avpkt} burst {burst} bandwidth 10Mbit probability {}{}\n",
            f64::from(per_mille) / 1000.0,
            if ecn { " ecn" } else { "" }
        );
        let there = checked(&tc::import(&line, "x").unwrap());
        let out = export::tc(&there);
        let red: Vec<&str> = out.lines().filter(|l| l.contains(" red ")).collect();
        let lossy = out.contains(".w_q:") || red.is_empty();
        if !lossy {
            let back = checked(&tc::import(red[0], "y").unwrap());
            let values = |c: &config::Config| c.directions[0].as_ref().unwrap().classes[0].aqm.values.clone();
            proptest::prop_assert_eq!(values(&back), values(&there), "{}\n{}", line, out);
        }
        proptest::prop_assert!(!out.contains("cannot: upstream.assured"), "{}\n{}", line, out);
    }
}

/// gred's ecn, of the setup or of every DP; of some it would be half of it.
#[test]
fn gred_goes_to_tc_and_back_with_ecn() {
    let dp = |n: u32, more: &str| {
        format!(
            "gred limit 60KB min 15K max 45K burst 20 avpkt 1000 bandwidth 10Mbit DP {n} probability 0.02 prio {n}{more}\n"
        )
    };
    let of_all = "gred setup DPs 2 default 2 grio ecn\n".to_owned() + &dp(1, "") + &dp(2, "");
    let of_each = "gred setup DPs 2 default 2 grio\n".to_owned() + &dp(1, " ecn harddrop") + &dp(2, " ecn");
    for text in [of_all, of_each] {
        let ours = tc::import(&text, "x").unwrap();
        assert!(ours.contains("ecn = true # ecn; above max ours drops, as with harddrop\n"), "{ours}");
        let out = export::tc(&checked(&ours));
        let greds: Vec<&str> = out.lines().filter(|l| l.starts_with("tc ") && l.contains(" gred ")).collect();
        assert!(greds.len() == 3 && greds.iter().all(|l| l.ends_with(" ecn harddrop")), "{out}");
        assert_eq!(tc::import(&greds.join("\n"), "y").map(|t| t.contains("ecn = true")), Ok(true));
    }
    let of_one = "gred setup DPs 2 default 2 grio\n".to_owned() + &dp(1, " ecn") + &dp(2, "");
    let problems = said(&tc::import(&of_one, "x").unwrap_err());
    assert!(problems[0].starts_with("x:3:1: error: gred: ecn is set for some DPs only"), "{problems:#?}");
}

/// Of a w_q of 2^-10 or less tc warns, and takes the line: said beforehand, and for one average only where there is one.
#[test]
fn what_tc_warns_of_is_noted() {
    let of = |w_q: &str| {
        let curve = "min_th = \"15 packets\", max_th = \"50 packets\", max_p = 0.1";
        let out = export::tc(&checked(&format!(
            "inside = \"a\"\noutside = \"b\"\n[upstream]\nrate = \"10 Mbit/s\"\nqueue = {{ aqm = \"red\", limit = \"100 packets\", {curve}, w_q = {w_q} }}\n"
        )));
        out.lines().filter(|l| l.starts_with("# note: ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(of("0.001953125"), [""; 0]);
    let notes = of("0.0009765625");
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].starts_with("# note: upstream.assured.w_q: tc warns that a burst of "), "{notes:?}");
}

/// Customers whom tc cannot serve for the same reason are one line.
#[test]
fn a_reason_is_given_once() {
    let customers: String = (0..30)
        .map(|n| format!("[[upstream.customers]]\nname = \"home-{n}\"\nprefix = \"10.0.{n}.0/24\"\nmarker = {{ kind = \"token_bucket\", rate = \"1 Mbit/s\", depth = \"10 kB\" }}\n"))
        .collect();
    let out = export::tc(&checked(&format!(
        "inside = \"a\"\noutside = \"b\"\n[upstream]\nrate = \"10 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"100 packets\" }}\n{customers}"
    )));
    let of_customers: Vec<_> = out.lines().filter(|l| l.contains("upstream.customers")).collect();
    assert_eq!(of_customers.len(), 1, "{out}");
    assert!(
        of_customers[0].starts_with("# cannot: upstream.customers.home-0 and 29 more: marker token_bucket: "),
        "{out}"
    );
}

/// Whatever a file says is a word of tc's or is named: nothing goes in silence.
#[test]
fn what_tc_has_no_word_for_is_named() {
    let file = |more: &str| {
        let curve = "{ min_th = \"15 packets\", max_th = \"50 packets\", max_p = 0.1 }";
        checked(&format!(
            "inside = \"a\"\noutside = \"b\"\n{more}\n[upstream]\nrate = \"10 Mbit/s\"\nqueue = {{ aqm = \"rio\", limit = \"100 packets\", in = {curve}, out = {curve}, gentle = true, wait = true, ecn = true, byte_scaled = true, watch = false }}\nbest_effort = {{ aqm = \"red\", limit = \"100 packets\", min_th = \"15 packets\", max_th = \"50 packets\", max_p = 0.1, gentle = true }}\n"
        ))
    };
    let out = export::tc(&file("overhead = \"38 B\""));
    for named in [
        "# cannot: upstream.assured.gentle = true: tc gred drops everything above max\n",
        "# cannot: upstream.assured.wait = true: tc gred has no such setting\n",
        "# cannot: upstream.assured.byte_scaled = true: tc gred has no such setting\n",
        "# cannot: upstream.best_effort.gentle = true: tc red drops everything above max\n",
        // 38 B beside the IP packet, of which the kernel counts 14 by itself.
        " limit 307600 overhead 24\n",
        "grio ecn harddrop\n",
        "protocol ip u32 match ip dsfield 0x28 0xfc flowid 10:1\n",
        "protocol ipv6 u32 match ip6 priority 0x28 0xfc flowid 10:1\n",
    ] {
        assert!(out.contains(named), "{named}\n{out}");
    }
    let with_mpu = export::tc(&file("overhead = \"38 B\"\nmpu = \"84 B\""));
    assert!(with_mpu.contains(" overhead 24 mpu 84\n"), "{with_mpu}");
    assert!(!out.contains("watch") && !out.contains("cannot: overhead"), "{out}");
    assert!(export::tc(&file("")).contains("# cannot: overhead = 0 B: tbf counts 14 B"));
}

/// tc reads the numbers of classes as hexadecimal, and prio has sixteen bands.
#[test]
fn many_classes_go_to_tc() {
    let file = |classes: u8| {
        let each = |n: u8| {
            format!(
                "[[upstream.classes]]\nname = \"c{n}\"\ndscp = [\"{}\"]\naqm = \"drop_tail\"\nlimit = \"9 packets\"\nrate = \"10 kbit/s\"\n",
                15 + n
            )
        };
        let each: String = (1..=classes).map(each).collect();
        export::tc(&checked(&format!(
            "inside = \"a\"\noutside = \"b\"\nrole = \"core\"\n[upstream]\nrate = \"10 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"9 packets\" }}\n{each}"
        )))
    };
    let out = file(15);
    assert!(out.contains(" handle 10: prio bands 16 priomap 15 15 "), "{out}");
    for line in [
        "parent 10:9 handle 28: pfifo limit 9",
        "parent 10:a handle 29: pfifo limit 9",
        "parent 10:b handle 2a: pfifo limit 9",
        "parent 10:10 handle 2f: pfifo limit 9",
        "dsfield 0x78 0xfc flowid 10:f",
    ] {
        assert!(out.contains(line), "{line}\n{out}");
    }
    let out = file(16);
    assert!(out.contains("# cannot: upstream: 17 classes: prio has at most 16 bands"), "{out}");
    assert!(out.contains(" tbf rate ") && !out.contains(" prio bands ") && !out.contains("flowid"), "{out}");
}

#[test]
fn the_example_as_tc_lines() {
    let example = include_str!("../../../../packaging/inprofiled.toml");
    let out = export::tc(&checked(example));
    let wanted = "\
# upstream: out of wan0
tc qdisc add dev wan0 root handle 1: tbf rate 50000000bit burst 6250 limit 375000
# cannot: overhead = 0 B: tbf counts 14 B, the Ethernet header, of every packet: somewhat less gets through
tc qdisc add dev wan0 parent 1:1 handle 10: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
tc qdisc add dev wan0 parent 10:1 handle 20: pfifo limit 50
# cannot: upstream.voice.rate = 5 Mbit/s: prio serves a band without bound; put a tbf of this rate before its queue
tc filter add dev wan0 parent 10: protocol ip u32 match ip dsfield 0xb8 0xfc flowid 10:1
tc filter add dev wan0 parent 10: protocol ipv6 u32 match ip6 priority 0xb8 0xfc flowid 10:1
tc qdisc add dev wan0 parent 10:2 handle 21: gred setup DPs 2 default 1 grio
tc qdisc change dev wan0 parent 10:2 handle 21: gred limit ";
    assert!(out.starts_with(wanted), "{out}");
    // Both virtual queues are of the one that was set up.
    assert_eq!(out.matches("tc qdisc change ").count(), 2, "{out}");
    for named in [
        "# cannot: upstream.assured.w_q: tc knows powers of two: 0.002 became 2^-9 = 0.001953125",
        "# cannot: upstream.assured: colours by DSCP: gred takes them from tc_index",
        "# cannot: upstream.role = edge: qdiscs believe the DSCP that a packet comes with",
        "# cannot: upstream.customers.alice: marker token_bucket: it takes a chain of police",
        "# cannot: upstream.customers.backup: marker srtcm: no chain of tc's police and pedit has its law",
        "# cannot: upstream.aggregate: ard",
        "# cannot: downstream.assured: rio_plus_out: the kernel has no such discipline",
    ] {
        assert!(out.contains(named), "{named}\n{out}");
    }
}
