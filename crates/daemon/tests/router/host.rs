//! The machine's own IP stack: nothing that arrives at a port of the router reaches it, and nothing of its own leaves there.

use std::net::UdpSocket;

use crate::bench::plain;
use crate::neighbours::{PORTS, Street, all};

/// TCP to the port's own addresses, ARP for another interface's address with datagrams behind it, router advertisements: open
/// before the start and after the end, closed in between.
#[test]
fn no_way_leads_from_a_port_to_the_machine() {
    let Some(mut street) = Street::new("host") else { return };
    let mut see = |street: &mut Street, when: &str, open: bool| {
        let found = [0, 1].map(|side| street.ways(side));
        println!("{when:<24} inside {:?}\n{:24} outside {:?}", found[0], "", found[1]);
        (found != [all(open); 2]).then(|| when.to_owned())
    };
    let mut wrong = Vec::new();
    wrong.extend(see(&mut street, "before", true));
    street.bench.start(&plain("5 Mbit/s"));
    wrong.extend(see(&mut street, "running", false));
    street.bench.obey(&["bypass", "on"]);
    wrong.extend(see(&mut street, "in bypass", false));
    street.bench.obey(&["bypass", "off"]);
    street.bench.obey(&["reload"]);
    wrong.extend(see(&mut street, "after a reload", false));
    street.bench.signal("-KILL");
    assert_eq!(street.bench.ended(), None);
    wrong.extend(see(&mut street, "killed", false));
    street.bench.start_again();
    wrong.extend(see(&mut street, "started again", false));
    street.bench.signal("-TERM");
    assert_eq!(street.bench.ended(), Some(0), "{}", street.bench.errors());
    wrong.extend(see(&mut street, "ended", true));
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// What a machine sends of its own accord: neighbour and router solicitations, MLD, ARP.
#[test]
fn nothing_of_the_machines_own_leaves_by_a_port() {
    let Some(mut street) = Street::new("host-silent") else { return };
    let heard = |street: &Street| {
        [0, 1].map(|side| {
            street
                .heard(side, || {
                    let port = PORTS[side];
                    street.bench.link(&format!("set {port} down"));
                    street.bench.link(&format!("set {port} up"));
                    street.bench.ip(&format!("addr add 2001:db8:5::1/64 dev {port}"));
                    let ask = || {
                        let to = format!("192.0.{}.77:9", side + 2);
                        UdpSocket::bind("0.0.0.0:0")?.send_to(b"who has?", to)
                    };
                    street.bench.namespace.within(ask).unwrap();
                    street.bench.ip(&format!("addr del 2001:db8:5::1/64 dev {port}"));
                })
                .iter()
                .map(|frame| u16::from_be_bytes([frame[12], frame[13]]))
                .collect::<std::collections::BTreeSet<_>>()
        })
    };
    let open = heard(&street);
    println!("before: {open:04x?}");
    assert_eq!(open.map(|kinds| kinds.into_iter().collect::<Vec<_>>()), [[0x0806, 0x86dd]; 2]);
    street.bench.start(&plain("5 Mbit/s"));
    let closed = heard(&street);
    println!("running: {closed:04x?}");
    assert!(closed.iter().all(|kinds| kinds.is_empty()), "{closed:04x?}");
}
