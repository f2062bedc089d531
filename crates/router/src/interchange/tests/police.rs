//! Policers of tc, Cisco and Open vSwitch, read and written.

use super::*;

/// Policers come from tc as customers who are policed, and go back as the same filters.
#[test]
fn tc_police_is_read_and_written() {
    let text = "tc qdisc add dev lan0 handle ffff: ingress\n\
        tc filter add dev lan0 parent ffff: protocol ip prio 1 u32 match ip src 10.0.1.0/24 police rate 10mbit burst 15k conform-exceed drop/ok\n\
        tc filter add dev lan0 parent ffff: protocol ipv6 flower src_ip 2001:db8::/48 ip_proto tcp src_port 80 action police rate 1mbit burst 4000 drop\n";
    let ours = tc::import(text, "lines").unwrap_or_else(|p| panic!("{p:#?}"));
    let (config, _) = config::parse(ours.as_bytes(), "r.toml", &router::registry()).unwrap();
    assert_eq!(config.ports[0], "lan0");
    let customers = &config.directions[0].as_ref().unwrap().customers;
    let of = |i: usize| export::policer(&customers[i], config.full_packet());
    assert_eq!((of(0), of(1)), (Some((10_000_000, 15.0 * 1024.0)), Some((1_000_000, 4000.0))));
    assert_eq!(customers[0].prefixes[0].to_string(), "10.0.1.0/24");
    assert_eq!(customers[1].ports, [80]);
    let back = export::tc(&config);
    let line = "tc filter add dev lan0 parent ffff: protocol ip pref 9 u32 match ip src 10.0.1.0/24 police rate 10000000bit burst 15360 mtu 65535 conform-exceed drop/ok\n";
    assert!(back.contains(line), "{back}");
    // Without the port it would be a policer of all that the prefix sends.
    assert!(!back.contains("2001:db8"), "{back}");
    assert!(back.contains("# cannot: upstream.customers.police2: filters for his ports"), "{back}");
    let again = tc::import(line, "lines").unwrap();
    assert!(again.contains("contract = \"10 Mbit/s\"") && again.contains("depth = \"15360 B\""), "{again}");
    for (wrong, wanted) in [
        (
            "tc filter add dev a u32 match ip src 10.0.0.1 police rate 1mbit burst 15k",
            "what exceeds isn't dropped",
        ),
        (
            "tc filter add dev a u32 match ip dst 10.0.0.1 police rate 1mbit burst 15k drop",
            "a customer by his own address",
        ),
        (
            "tc filter add dev a u32 match ip dport 80 0xffff police rate 1mbit burst 15k drop",
            "the peer's choice",
        ),
        (
            "tc filter add dev a flower ip_proto tcp dst_port 80 police rate 1mbit burst 15k drop",
            "the peer's choice",
        ),
        ("tc filter add dev a u32 match ip src 10.0.0.x police rate 1mbit burst 15k drop", "no prefix"),
        ("tc filter add dev a u32 match ip src 10.0.0.1 police rate 1mbit drop", "no burst"),
        ("tc filter add dev a matchall police rate 1mbit burst 15k peakrate 2mbit drop", "no such setting"),
        ("tc filter add dev a matchall police rate 1mbit burst 15k mtu 2040 drop", "write mtu 65535"),
        (
            "tc filter add dev a matchall police rate 1mbit burst 15k conform-exceed pipe",
            "ours drops what exceeds",
        ),
        ("tc filter add dev a matchall polise rate 1mbit burst 15k drop", "did you mean \"police\""),
    ] {
        let told = tc::import(wrong, "lines").unwrap_err();
        assert!(told.iter().any(|p| p.to_string().contains(wanted)), "{wrong}: {told:#?}");
    }
}

/// Of two prefixes that hold an address the longer one's policer takes the packet, wherever it is in the file.
#[test]
fn the_longest_prefix_is_asked_first_by_others_too() {
    let customer = |name: &str, prefix: &str| {
        format!(
            "[[upstream.customers]]\nname = \"{name}\"\nprefix = \"{prefix}\"\ncontract = \"1 Mbit/s\"\nmarker = {{ kind = \"token_bucket\", depth = \"15 kB\", action = \"drop\" }}\n"
        )
    };
    let file = format!(
        "inside = \"a\"\noutside = \"b\"\n[upstream]\nrate = \"10 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"9 packets\" }}\n{}{}{}",
        customer("net", "10.0.0.0/8"),
        customer("site", "10.1.0.0/16"),
        customer("six", "2001:db8::/32"),
    );
    let config = checked(&file);
    let number = |text: &str, before: &str| -> u32 {
        let rest = text.split(before).nth(1).unwrap_or_else(|| panic!("{text}"));
        rest.split([' ', ',']).next().unwrap().parse().unwrap()
    };
    let (tc, ovs) = (export::tc(&config), ovs::export(&config));
    let line = |out: &str, prefix: &str| {
        out.lines().find(|l| l.contains(prefix)).unwrap_or_else(|| panic!("{out}")).to_owned()
    };
    let prefs = ["10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32"].map(|p| number(&line(&tc, p), " pref "));
    // A preference has one protocol.
    assert!(prefs[1] < prefs[0] && prefs[2] > prefs[0], "{tc}");
    let [net, site] = ["10.0.0.0/8", "10.1.0.0/16"].map(|p| number(&line(&ovs, p), "priority="));
    assert!(site > net, "{ovs}");
}

#[test]
fn ciscos_police_is_read() {
    let of = |line: &str| cisco::import(&format!("policy-map p\nclass gold\n{line}\n"), "lines");
    for (line, marker) in [
        (
            "police cir 1000000 bc 15000 conform-action transmit exceed-action drop",
            "kind = \"token_bucket\", depth = \"15000 B\"",
        ),
        (
            "police 1000000 15000 conform-action transmit exceed-action drop",
            "kind = \"token_bucket\", depth = \"15000 B\"",
        ),
        (
            "police cir 1000000 bc 15000 be 30000 conform-action transmit exceed-action transmit violate-action drop",
            "kind = \"srtcm\", cbs = \"15000 B\", ebs = \"30000 B\"",
        ),
        (
            "police cir 1000000 bc 15000 pir 2000000 be 30000 conform-action transmit exceed-action transmit violate-action drop",
            "kind = \"trtcm\", pir = \"2 Mbit/s\", cbs = \"15000 B\", pbs = \"30000 B\"",
        ),
    ] {
        let ours = of(line).unwrap_or_else(|p| panic!("{line}: {p:#?}"));
        assert!(ours.contains(&format!("{{ {marker}, action = \"drop\" }}")), "{ours}");
        assert!(ours.contains("name = \"class-gold\"") && ours.contains("contract = \"1 Mbit/s\""), "{ours}");
    }
    for (line, wanted) in [
        (
            "police cir 1000000 bc 15000 conform-action transmit exceed-action transmit",
            "ours drops what violates",
        ),
        ("police cir 1000000", "without a rate and a burst"),
        (
            "police cir 1000000 bc 15000 conform-action set-dscp-transmit af11 exceed-action drop",
            "write transmit or drop",
        ),
        ("police cir many bc 15000", "no number"),
    ] {
        let told = of(line).unwrap_err();
        assert!(told.iter().any(|p| p.to_string().contains(wanted)), "{line}: {told:#?}");
    }
}

/// Open vSwitch counts in thousands of bits; a burst that isn't said is 8,000 of them.
#[test]
fn open_vswitchs_policers_are_read_and_written() {
    let ours = ovs::import(
        "ovs-vsctl set interface lan0 ingress_policing_rate=1000 ingress_policing_burst=100",
        "l",
    );
    let ours = ours.unwrap_or_else(|p| panic!("{p:#?}"));
    assert!(ours.contains("inside = \"lan0\"") && ours.contains("contract = \"1 Mbit/s\""), "{ours}");
    assert!(ours.contains("depth = \"12500 B\", action = \"drop\""), "{ours}");
    let said = ovs::import("ovs-vsctl set interface lan0 ingress_policing_rate=1000", "l").unwrap();
    assert!(said.contains("depth = \"1000000 B\""), "{said}");
    let meters = "ovs-ofctl -O OpenFlow13 add-meter br0 meter=1,kbps,burst,band=type=drop,rate=2000,burst_size=120\n\
        ovs-ofctl -O OpenFlow13 add-flow br0 ip,nw_src=10.0.1.0/24,actions=meter:1,normal\n";
    let ours = ovs::import(meters, "l").unwrap_or_else(|p| panic!("{p:#?}"));
    let (config, _) = config::parse(ours.as_bytes(), "r.toml", &router::registry()).unwrap();
    let meters = meters.replace("br0 ip,", "br0 priority=32792,ip,");
    assert!(ovs::export(&config).contains(&meters), "{}", ovs::export(&config));
    assert_eq!(ovs::import(&meters, "l").unwrap(), ours);
    for (wrong, wanted) in [
        ("ovs-vsctl set interface lan0 ingress_policing_rate=0", "polices nothing"),
        ("ovs-vsctl set interface lan0 ingress_policing_rte=7", "did you mean"),
        ("ovs-ofctl add-meter br0 meter=1,kbps,band=type=dscp_remark,rate=7", "no meter that drops"),
        (
            "ovs-ofctl add-meter br0 meter=1,kbps,burst,band=type=drop,rate=7,burst_size=9",
            "no flow has meter:1",
        ),
        ("ovs-ofctl add-flow br0 in_port=1,actions=meter:1", "by his own address"),
        (
            "ovs-ofctl add-flow br0 tcp,nw_src=10.0.0.1,tp_dst=80,actions=meter:1,normal",
            "tcp is not understood",
        ),
        ("ovs-ofctl add-flow br0 ip,nw_src=10.0.0.1,nw_tos=184,actions=meter:1,normal", "nw_tos=184 is not"),
        ("ovs-vsctl show", "not understood here"),
        ("", "no policer in it"),
    ] {
        let told = ovs::import(wrong, "l").unwrap_err();
        assert!(told.iter().any(|p| p.to_string().contains(wanted)), "{wrong}: {told:#?}");
    }
}
