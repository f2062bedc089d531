//! The machine's own IP stack: nothing that arrives at a port of the router reaches it, and nothing of its own leaves there.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::process::Command;

use inprofile_live::io::netlink::Netlink;
use inprofile_live::io::sys::interface_index;
use inprofile_router::isolation::Isolation;
use inprofile_router::offload;

use crate::bench::{Bench, PROGRAM, plain};
use crate::neighbours::{PORTS, SERVICE, Street, all};
use crate::service::wait_for;

/// Runs a command in the bench's namespace: whether it succeeds, and all that it says.
fn says(bench: &Bench, line: &str) -> (bool, String) {
    let mut words = line.split_whitespace();
    let out = bench.namespace.within(|| Command::new(words.next().unwrap()).args(words).output()).unwrap();
    let text = [out.stdout, out.stderr].concat();
    (out.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// The programs at the hooks of a port.
fn hooks(bench: &Bench, port: &str) -> String {
    ["qdisc show dev {} clsact", "filter show dev {} ingress", "filter show dev {} egress"]
        .map(|line| says(bench, &format!("tc {}", line.replace("{}", port))).1)
        .concat()
}

/// TCP to the port's own addresses, ARP for another interface's address with datagrams behind it, router advertisements: open
/// before the start and after the end, closed in between, and not only while there is a process.
#[test]
fn no_way_leads_from_a_port_to_the_machine() {
    let Some(mut street) = Street::new("host") else { return };
    let (mut wrong, mut table) = (Vec::new(), String::new());
    let mut see = |street: &Street, when: &'static str, open: bool, forwards: bool| {
        let (found, through) =
            ([0, 1].map(|side| street.ways(side, open)), [0, 1].map(|from| street.forwarded(from)));
        table += &format!(
            "{when}: {through:?} of 40 forwarded\n  inside  {:?}\n  outside {:?}\n",
            found[0], found[1]
        );
        if found != [all(open); 2] || through != [if forwards { 40 } else { 0 }; 2] {
            wrong.push(when);
        }
    };
    let before = PORTS.map(|port| hooks(&street.bench, port));
    see(&street, "before", true, false);
    street.bench.start(&plain("50 Mbit/s"));
    let running = PORTS.map(|port| hooks(&street.bench, port));
    see(&street, "running", false, true);
    street.bench.obey(&["bypass", "on"]);
    see(&street, "in bypass", false, true);
    street.bench.obey(&["bypass", "off"]);
    street.bench.obey(&["reload"]);
    see(&street, "after a reload", false, true);
    street.bench.signal("-KILL");
    assert_eq!(street.bench.ended(), None);
    see(&street, "killed", false, false);
    // A port without a queue is sent to by the way that the machine's own would take; one with a queue is not.
    assert!(says(&street.bench, "tc qdisc add dev wan0 root pfifo").0);
    street.bench.start_again();
    see(&street, "started again", false, true);
    assert_eq!(PORTS.map(|port| hooks(&street.bench, port)), running, "taken over, and not twice");
    street.bench.signal("-TERM");
    assert_eq!(street.bench.ended(), Some(0), "{}", street.bench.errors());
    see(&street, "ended", true, false);
    println!("{table}");
    assert!(wrong.is_empty(), "{wrong:?}\n{table}");
    assert_eq!(PORTS.map(|port| hooks(&street.bench, port)), before);
}

/// The frames that a host sends of its own accord: neighbour and router solicitations, MLD, ARP; told apart by EtherType.
#[test]
fn nothing_of_the_machines_own_leaves_by_a_port() {
    let Some(mut street) = Street::new("host-silent") else { return };
    let heard = |street: &Street| {
        [0, 1].map(|side| {
            let port = PORTS[side];
            let frames = street.heard(side, || {
                street.bench.link(&format!("set {port} down"));
                street.bench.link(&format!("set {port} up"));
                street.bench.ip(&format!("addr add 2001:db8:5::1/64 dev {port}"));
                let to = format!("192.0.{}.77:9", side + 2);
                let ask = || UdpSocket::bind("0.0.0.0:0")?.send_to(b"who has?", to);
                street.bench.namespace.within(ask).unwrap();
                street.bench.ip(&format!("addr del 2001:db8:5::1/64 dev {port}"));
            });
            frames.iter().map(|f| u16::from_be_bytes([f[12], f[13]])).collect::<BTreeSet<_>>()
        })
    };
    let open = heard(&street);
    assert_eq!(open, [(); 2].map(|()| BTreeSet::from([0x0806, 0x86dd])), "{open:04x?}");
    street.bench.start(&plain("5 Mbit/s"));
    let closed = heard(&street);
    assert_eq!(closed, [(); 2].map(|()| BTreeSet::new()), "{closed:04x?}");
}

/// An interface that comes to a port's place is closed too, and one that somebody opened is closed again; one that is a port no
/// more is opened.
#[test]
fn whatever_becomes_of_a_port_it_is_closed() {
    let Some(mut street) = Street::new("host-again") else { return };
    street.bench.start(&plain("5 Mbit/s"));
    street.bench.link("del wan0");
    wait_for("it is away", || street.bench.stats()["ports"][1]["in_use"] == false);
    street.plug(1);
    wait_for("it is in use", || street.bench.stats()["ports"][1]["in_use"] == true);
    assert_eq!(street.ways(1, false), all(false));
    assert!(says(&street.bench, "tc qdisc del dev lan0 clsact").0);
    wait_for("it is closed again", || street.bench.errors().contains("it is closed again"));
    assert_eq!(street.ways(0, false), all(false));
    street.bench.ip("link set lan0 down");
    street.bench.ip("link set lan0 name eth9");
    wait_for("it is away", || street.bench.stats()["ports"][0]["in_use"] == false);
    assert!(!hooks(&street.bench, "eth9").contains("clsact"));
    street.bench.ip("link set eth9 name lan0");
    street.bench.ip("link set lan0 up");
    wait_for("it is in use", || street.bench.stats()["ports"][0]["in_use"] == true);
    assert_eq!(street.ways(0, false), all(false));
}

/// Other programs' filters at a port's hooks stay as they are; one that would run before ours is refused.
#[test]
fn what_others_have_at_the_hooks_stays() {
    let Some(mut bench) = Bench::new("host-others") else { return };
    let others = "protocol all bpf da bytecode 1,6~0~0~4294967295,";
    let add = |at: &str| {
        let words = format!("tc filter add dev {at} {others}");
        let words = words.split(' ').map(|w| w.replace('~', " ")).collect::<Vec<_>>();
        bench.namespace.within(|| Command::new(&words[0]).args(&words[1..]).status()).unwrap().success()
    };
    assert!(says(&bench, "tc qdisc add dev lan0 clsact").0 && add("lan0 ingress pref 7"));
    assert!(says(&bench, "tc qdisc add dev wan0 clsact").0 && add("wan0 egress pref 1"));
    let before = hooks(&bench, "lan0");
    bench.configure(&plain("5 Mbit/s"));
    let (code, said) = bench.refused();
    assert!(code == Some(1) && said.contains("interface `wan0`"), "{said}");
    assert!(said.contains("`tc filter show dev wan0 egress`"), "{said}");
    assert_eq!(hooks(&bench, "lan0"), before, "a start that is refused leaves nothing");
    assert!(
        says(&bench, "tc qdisc del dev wan0 clsact").0 && says(&bench, "tc qdisc add dev wan0 ingress").0
    );
    let (code, said) = bench.refused();
    assert!(code == Some(1) && said.contains("`tc qdisc del dev wan0 ingress`"), "{said}");
    assert!(says(&bench, "tc qdisc del dev wan0 ingress").0);
    bench.start_again();
    assert!(hooks(&bench, "lan0").starts_with(&before.lines().next().unwrap().to_owned()));
    assert_ne!(hooks(&bench, "lan0"), before);
    bench.signal("-TERM");
    assert_eq!(bench.ended(), Some(0), "{}", bench.errors());
    assert_eq!(hooks(&bench, "lan0"), before);
    assert!(!hooks(&bench, "wan0").contains("clsact"));
}

/// The host's configuration that will be cut off is named before: addresses, interfaces above, default routes. A kill leaves it so until `release`.
#[test]
fn what_is_closed_is_named_and_can_be_released() {
    let Some(mut street) = Street::new("host-named") else { return };
    let above = "add link lan0 name up0 type macvlan mode bridge";
    street.bench.link(above);
    street.bench.link("set up0 up");
    street.bench.ip("addr add 192.0.2.7/24 dev up0");
    street.bench.ip("route add default via 192.0.3.2");
    let to = format!("192.0.2.7:{SERVICE}").parse().unwrap();
    assert!(street.connects(0, to, true));
    street.bench.configure(&plain("5 Mbit/s"));
    let check = format!("{PROGRAM} check {}", street.bench.path("router.toml").display());
    let (ok, said) = says(&street.bench, &check);
    let line = |start: &str| said.lines().find(|l| l.contains(start)).unwrap_or_else(|| panic!("{said}"));
    let inside = line("warning: the machine can't be reached or managed through lan0");
    assert!(ok && inside.contains("192.0.2.1/24, the interface up0 (192.0.2.7/24)"), "{said}");
    let outside = line("warning: the machine can't be reached or managed through wan0");
    assert!(outside.contains("192.0.3.1/24, the default route by 192.0.3.2"), "{said}");
    assert!(line("lan0: closed to this machine's own IP stack").contains("fe80::"), "{said}");
    let (_, json) = says(&street.bench, &format!("{check} --json"));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}"));
    assert_eq!(json["closed"][1]["rest"][1], "the default route by 192.0.3.2");
    street.bench.start_again();
    assert!(street.bench.errors().contains("can't be reached or managed through wan0"));
    assert!(!street.connects(0, to, false), "through what is above the port");
    let release = |street: &Street| says(&street.bench, &format!("{PROGRAM} release lan0"));
    let (ok, said) = release(&street);
    assert!(!ok && said.contains("a router forwards there"), "{said}");
    street.bench.signal("-KILL");
    assert_eq!(street.bench.ended(), None);
    assert!(!street.connects(0, to, false));
    let (ok, said) = release(&street);
    assert!(ok && street.connects(0, to, true), "{said}");
    assert!(
        hooks(&street.bench, "wan0").contains("clsact") && !hooks(&street.bench, "lan0").contains("clsact")
    );
}

/// Opened by an orderly end alone: not by a fault, nor by a start that fails and found them closed.
#[test]
fn only_an_orderly_end_opens_the_ports() {
    let Some(bench) = Bench::new("host-fault") else { return };
    let outcome = bench.namespace.within(|| {
        let names = PORTS.map(str::to_owned);
        let indices = PORTS.map(|port| interface_index(port).ok());
        let closed = || PORTS.map(|port| Netlink::open()?.is_closed(interface_index(port)?));
        let are = |state: bool| closed().into_iter().all(|found| found.unwrap() == state);
        drop(Isolation::start(&names, indices)?);
        assert!(are(false), "a start that fails");
        Isolation::start(&names, indices)?.leave_closed();
        assert!(are(true), "a fault");
        drop(Isolation::start(&names, indices)?);
        assert!(are(true), "a start that fails after it");
        Isolation::start(&names, indices)?.end()?;
        assert!(are(false), "an orderly end");
        Ok(())
    });
    outcome.unwrap();
}

/// Without the right to close its ports it doesn't start.
#[test]
fn without_the_right_to_close_its_ports_it_is_refused() {
    let Some(bench) = Bench::new("host-right") else { return };
    bench.configure(&plain("5 Mbit/s"));
    let file = bench.path("router.toml");
    // Offloads, which it would switch first, are off.
    let (ports, note) = (PORTS.map(str::to_owned), bench.path("note"));
    let off = bench.namespace.within(|| {
        let on = offload::look(&ports, true)?;
        offload::switch_off(&ports, true, &on, &note, None).map(std::mem::forget)
    });
    off.unwrap();
    let (ok, said) = says(
        &bench,
        &format!("setpriv --bounding-set=-net_admin --inh-caps=-net_admin {PROGRAM} run {}", file.display()),
    );
    assert!(!ok && said.contains("interface `lan0`") && said.contains("takes CAP_NET_ADMIN"), "{said}");
}
