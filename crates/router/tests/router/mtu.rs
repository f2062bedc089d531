//! Ports with unequal MTUs: what is too long for the one it would leave by is refused before it costs anybody anything.

use inprofile_core::units::Duration as Span;

use crate::attack::{Frame, Ip, Wrap};
use crate::bench::{Bench, QUIET, assert_adds_up, figure, plain};

fn frame(bytes: usize, wraps: Vec<Wrap>) -> Vec<u8> {
    let Frame(frame) = Ip { bytes, wraps, ..Ip::default() }.frame();
    frame
}

#[test]
fn what_is_too_long_for_the_port_ahead_is_refused_before_it_is_queued() {
    let Some(mut bench) = Bench::new("mtu") else { return };
    bench.link("set h0 mtu 9000");
    bench.link("set lan0 mtu 9000");
    bench.start(&format!("packet = \"9000 B\"\n---\n{}", plain("1 Mbit/s")));
    let tag = || vec![Wrap::Tag(0x8100, 5)];
    let long = [frame(4000, vec![]), frame(1501, vec![]), frame(1501, tag()), frame(9000, vec![])];
    let fit = [frame(1500, vec![]), frame(1500, tag()), frame(100, vec![])];
    bench.send(0, long.iter().chain(&fit));
    assert_eq!(bench.receive_frames(1, fit.len(), QUIET).len(), fit.len());
    let stats = bench.stats();
    assert_adds_up(&stats);
    let of = |path| figure(&stats, path);
    assert_eq!(of("directions.0.refusals.too_long"), long.len() as u64);
    assert_eq!((of("directions.0.sent"), of("ports.1.refused")), (fit.len() as u64, 0));
    // Whoever sets it while the router runs is heard within a second.
    bench.link("set wan0 mtu 9000");
    bench.link("set h1 mtu 9000");
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    let jumbo = [frame(1501, vec![])];
    bench.send(0, &jumbo);
    assert_eq!(bench.receive_frames(1, 1, Span::from_millis(2_000)).len(), 1, "{}", bench.errors());
}
