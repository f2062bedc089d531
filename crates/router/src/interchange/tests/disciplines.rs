//! Disciplines that Linux has too, as lines of tc.

use super::*;

/// Disciplines that Linux has go over with all of their settings that tc has a word for; the rest is named.
#[test]
fn flow_queueing_goes_to_tc() {
    let lines = |queue: &str| {
        let out = export::tc(&checked(&format!(
            "inside = \"a\"\noutside = \"b\"\n[upstream]\nrate = \"10 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"100 packets\" }}\nbest_effort = {{ {queue} }}\n"
        )));
        let name = queue.split('"').nth(1).unwrap();
        let line =
            out.lines().find(|l| l.contains(&format!(" {name} limit"))).unwrap_or_else(|| panic!("{out}"));
        let settings = line[line.find(name).unwrap()..].to_owned();
        (settings, out.lines().filter(|l| l.contains("cannot: upstream.best_effort")).count())
    };
    assert_eq!(
        lines("aqm = \"fq_codel\", limit = \"1000 packets\", flow_quantum = \"300 B\", flows = 512, ce_threshold = \"1 ms\", mtu = \"900 B\""),
        ("fq_codel limit 1000 target 5000us interval 100000us quantum 300 flows 512 ce_threshold 1000us drop_batch 64 ecn".into(), 1),
        "mtu has no word"
    );
    assert_eq!(
        lines("aqm = \"fq_pie\", limit = \"1000 packets\", ecn = true, derandomise = false, alpha = 0.3"),
        ("fq_pie limit 1000 target 15000us tupdate 15000us beta 20 flows 1024 ecn".into(), 2)
    );
    assert_eq!(
        lines("aqm = \"sfq\", limit = \"127 packets\", perturb = \"10 s\", headdrop = true"),
        ("sfq limit 127 flows 128 depth 127 divisor 1024 perturb 10 headdrop".into(), 0)
    );
}

/// CoDel, PIE, CHOKe and SFB are words of tc's; what the kernel has otherwise is named, COBALT with where the kernel has it.
#[test]
fn disciplines_that_tc_knows() {
    let of = |queue: &str| {
        let file = format!(
            "inside = \"a\"\noutside = \"b\"\noverhead = \"14 B\"\n[upstream]\nrate = \"10 Mbit/s\"\nqueue = {{ limit = \"100 packets\", {queue} }}\n"
        );
        let out = export::tc(&checked(&file));
        let line =
            out.lines().find(|l| l.contains(" handle 20: ")).and_then(|l| l.split(" handle 20: ").nth(1));
        let cannot = out.lines().filter_map(|l| l.strip_prefix("# cannot: "));
        let cannot = cannot.filter(|l| l.starts_with("upstream.assured")).map(str::to_owned);
        (line.unwrap_or_default().to_owned(), cannot.collect::<Vec<_>>())
    };
    let linux = "variant = \"linux\"";
    assert_eq!(
        of(&format!("aqm = \"codel\", ecn = true, {linux}")),
        ("codel limit 100 target 5000us interval 100000us ecn".into(), vec![])
    );
    let (_, cannot) = of("aqm = \"codel\"");
    assert_eq!(cannot, ["upstream.assured.variant = \"rfc8289\": the kernel's is \"linux\""]);
    let (line, cannot) = of(&format!("aqm = \"pie\", t_update = \"20 ms\", max_burst = \"50 ms\", {linux}"));
    let options = "alpha 2 beta 20 noecn nobytemode no_dq_rate_estimator";
    assert_eq!(line, format!("pie limit 100 target 15000us tupdate 20000us {options}"));
    assert_eq!(cannot, ["upstream.assured.max_burst = \"50 ms\": tc pie has no such setting"]);
    let (line, cannot) = of(&format!("aqm = \"pie\", alpha = 0.2, beta = 3.0, {linux}"));
    assert!(line.contains(" alpha 3 beta 32 "), "{line}");
    let became = "tc pie counts it in sixteenths, at most 32: it became";
    assert_eq!(
        cannot,
        [
            format!("upstream.assured.alpha = 0.2: {became} 0.1875"),
            format!("upstream.assured.beta = 3: {became} 2")
        ]
    );
    let curve = "min_th = \"10 packets\", max_th = \"30 packets\", max_p = 0.1, w_q = 0.03125, mean_packet = \"1000 B\"";
    let (line, cannot) = of(&format!("aqm = \"choke\", {curve}, candidates = 2"));
    assert!(line.starts_with("choke limit 100 min 15 max 45 avpkt 1000 burst "), "{line}");
    assert!(line.ends_with(" probability 0.1 bandwidth 10000000bit"), "{line}");
    assert_eq!(cannot, ["upstream.assured.candidates = 2: tc choke has no such setting"]);
    let (line, cannot) = of("aqm = \"sfb\", ecn = true, penalty_rate = 100, levels = 4");
    let figures = "max 25 target 20 increment 0.0005 decrement 0.00005 penalty_rate 100 penalty_burst 20";
    assert_eq!(line, format!("sfb rehash 600000 db 60000 limit 100 {figures}"));
    assert_eq!(cannot, ["upstream.assured.levels = 4: tc sfb has no such setting"]);
    let (line, cannot) = of("aqm = \"cobalt\"");
    assert_eq!(line, "pfifo limit 100");
    assert!(cannot[0].contains("in cake alone"), "{cannot:?}");
}

/// DualPI2 goes to Linux's own, with what is otherwise there by name.
#[test]
fn dualpi2_as_a_tc_line() {
    let file = |queue: &str| {
        checked(&format!(
            "inside = \"a\"\noutside = \"b\"\n[upstream]\nrate = \"10 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"100 packets\" }}\nbest_effort = {{ aqm = \"dualpi2\", limit = \"200 packets\"{queue} }}\n"
        ))
    };
    let out = export::tc(&file(""));
    let line = " dualpi2 limit 200 target 15000us tupdate 15000us alpha 0.150000 beta 3.000000 step_thresh 1000us min_qlen_step 1 coupling_factor 2 drop_on_overload drop_dequeue l4s_ect classic_protection 6%\n";
    assert!(out.contains(line), "{out}");
    for named in [
        "upstream.best_effort.range = 400 us: dualpi2 has a step, here at 1 ms, half way up",
        "upstream.best_effort.classic_weight = 0.0625: classic_protection is in whole per cent: 6 %",
        "upstream.best_effort.derandomise = true: dualpi2 draws random numbers",
        "upstream.best_effort.min_backlog = 0 B: dualpi2 has two MTUs",
    ] {
        assert!(out.contains(&format!("# cannot: {named}")), "{named}\n{out}");
    }
    // What Linux has itself, as Linux has it: nothing is left to say.
    let as_linux = ", min_th = \"1 ms\", range = \"0 s\", th_len = 0, classic_weight = 0.1, t_update = \"16 ms\", alpha = 0.16, beta = 3.2, derandomise = false, min_backlog = \"3000 B\", saturation = \"delay\"";
    let out = export::tc(&file(as_linux));
    let line = " dualpi2 limit 200 target 15000us tupdate 16000us alpha 0.160000 beta 3.200000 step_thresh 1000us min_qlen_step 0 coupling_factor 2 overflow drop_dequeue l4s_ect classic_protection 10%\n";
    assert!(out.contains(line), "{out}");
    assert!(!out.contains("cannot: upstream.best_effort"), "{out}");
}
