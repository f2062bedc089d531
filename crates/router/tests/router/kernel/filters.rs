//! Programs as filters of clsact, and from filters to links of tcx and back.

use super::{
    alice, assert_nothing_left, at_the_ports, bench, burst, customer, file_by, filters, release, shell, stop,
};
use crate::bench::{Bench, QUIET};
use crate::frames::Udp;

/// Programs that are filters of clsact: what others have there stays, and what others take away or put before them is put right.
#[test]
fn filters_are_asked_first_and_others_stay() {
    let Some((mut bench, pins)) = bench("kernel-filters") else { return };
    shell(
        &bench,
        "tc qdisc add dev lan0 clsact && tc filter add dev lan0 ingress pref 7 bpf da bytecode '1,6 0 0 2'",
    );
    bench.start(&file_by("clsact", &pins, &alice(40, "80 bit/s")));
    assert_eq!(burst(&mut bench, 0, 10), (10, 0));
    let back = |bench: &Bench| crate::service::wait_for("it is put back", || filters(bench) == 4);
    // The programs alone, and all that is at a port.
    shell(&bench, "tc filter del dev lan0 ingress pref 1 && tc filter del dev wan0 egress pref 1");
    back(&bench);
    assert_eq!(burst(&mut bench, 100, 10), (10, 0));
    shell(&bench, "tc qdisc del dev wan0 clsact");
    back(&bench);
    assert_eq!(burst(&mut bench, 200, 10), (10, 0));
    // Closed again while there is no process: that filter is the newest, and the next start comes before it.
    bench.signal("-9");
    bench.ended();
    assert_eq!(burst(&mut bench, 300, 5), (5, 0), "while there is no process");
    shell(&bench, "tc filter del dev wan0 ingress handle 0x696e7072 pref 1 bpf");
    bench.start_again();
    assert_eq!(burst(&mut bench, 400, 10), (5, 5));
    let reply: Vec<_> = (0..5).map(|n| Udp::numbered(n).v4()).collect();
    bench.send(1, &reply);
    assert_eq!(bench.receive(0, 5, QUIET).len(), 5);
    stop(&mut bench);
    let left = at_the_ports(&bench);
    assert!(left.contains("pref 7") && !left.contains("inprofiled") && !left.contains("pref 1 "), "{left}");
    assert!(pins.left().is_empty(), "{:?}", pins.left());
}

/// From links to filters and back by kills and starts: tokens stay, and nothing of the other way does.
#[test]
fn links_and_filters_take_each_other_over() {
    let Some((mut bench, pins)) = bench("kernel-ways") else { return };
    for (n, attach) in ["tcx", "clsact", "clsact", "tcx", "clsact"].into_iter().enumerate() {
        bench.start(&file_by(attach, &pins, &alice(50, "80 bit/s")));
        assert_eq!(burst(&mut bench, 100 * n as u64, 10), (10, 0), "{attach}");
        assert_eq!(filters(&bench), if attach == "tcx" { 0 } else { 4 }, "{attach}");
        bench.signal("-9");
        bench.ended();
    }
    bench.start_again();
    assert_eq!(customer(&bench.stats()), (50, 50, 0));
    bench.signal("-9");
    bench.ended();
    // Released by one of its ports the pair forwards no more.
    release(&bench, &pins, "lan0");
    assert_eq!(burst(&mut bench, 900, 5), (0, 0));
    release(&bench, &pins, "wan0");
    assert_nothing_left(&bench, &pins);
}
