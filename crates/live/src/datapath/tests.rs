use inprofile_core::packet::Colour;
use inprofile_core::params::Context;
use inprofile_core::queue::hierarchy::MemberSetup;
use inprofile_core::queue::scheduled::{Migration, Setup};
use inprofile_core::registry::{AnyAqm, AnyScheduler, Registry};
use inprofile_core::units::Backlog;
use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::code_points::{CodePoints, Dscp};
use crate::flow::{FiveTuple, Flows, Numbered};
use crate::packet::{Seen, checksum};

/// An IPv4 UDP packet of `size` bytes.
fn packet(source: u8, size: usize, octet: u8) -> Vec<u8> {
    let mut p = vec![0u8; size];
    (p[0], p[1], p[8], p[9]) = (0x45, octet, 64, 17);
    p[2..4].copy_from_slice(&(size as u16).to_be_bytes());
    p[12..20].copy_from_slice(&[10, 0, 0, source, 10, 0, 1, 1]);
    p[24..26].copy_from_slice(&((size - 20) as u16).to_be_bytes());
    let sum = checksum::check(&p[..20]);
    p[10..12].copy_from_slice(&sum.to_be_bytes());
    p
}

/// Everything IP is queued with the colour of its DSCP and passes the markers there are.
struct All {
    flows: Flows,
    markers: [Option<u16>; 2],
    rewrite: Rewrite,
    /// Every source has queues of its own.
    own: bool,
}

impl Policy for All {
    fn decide(&mut self, _: Time, seen: &Seen) -> Decision {
        let Ok(headers) = seen else { return Decision::Pass };
        let Numbered { flow, new } = self.flows.number(&FiveTuple::of(headers));
        let points = CodePoints::default();
        let colour = points.colour(headers.dscp).unwrap_or(Colour::IN);
        Decision::Queue(Treatment {
            flow,
            forget: new.then_some(FormerFlow { markers: self.markers, customer: None }),
            customer: self.own.then(|| u32::from(headers.addresses.0[3])),
            own_queue: self.own,
            class: headers.addresses.0[3],
            colour,
            markers: self.markers,
            rewrite: self.rewrite,
            clear_link: false,
            contract: None,
        })
    }
}

#[derive(Default)]
struct Sent(Vec<(Time, u64, Vec<u8>)>);

impl Witness for Sent {
    fn send(&mut self, due: Time, number: u64, frame: &mut [u8]) {
        self.0.push((due, number, frame.to_vec()));
    }
}

fn context() -> Context {
    Context {
        link_rate: Some(Rate(8_000_000)),
        contract: Some(Rate(1_000_000)),
        packet: Bytes(1000),
        limit: Some(Backlog::Packets(3.0)),
    }
}

fn datapath(limit: f64, markers: Vec<Marking>, buffers: usize) -> Datapath<All> {
    with_classes(vec![queue(0, None, limit)], markers, buffers)
}

fn drop_tail() -> AnyAqm {
    AnyAqm::DropTail(inprofile_core::aqm::drop_tail::DropTail::default())
}

fn with_classes(classes: Vec<Setup>, markers: Vec<Marking>, buffers: usize) -> Datapath<All> {
    let numbers = (0..markers.len() as u16).map(Some).chain([None, None]).take(2).collect::<Vec<_>>();
    let parts = Parts { markers, buffers, ..parts(classes) };
    let policy = All {
        flows: Flows::new(64, 1),
        markers: [numbers[0], numbers[1]],
        rewrite: Rewrite::Colour(CodePoints::default()),
        own: false,
    };
    Datapath::new(policy, parts)
}

/// Queues of these classes at 8 Mbit/s, no markers.
fn parts(classes: Vec<Setup>) -> Parts {
    Parts {
        layer: Layer::Ip,
        markers: Vec::new(),
        classes,
        scheduler: priority(),
        sharing: Sharing::default(),
        rng: Rng::for_component(1, "queue"),
        rate: Rate(8_000_000),
        charge: Charge::default(),
        age_limit: None,
        buffers: 30,
    }
}

/// Drop-tail of so many packets.
fn queue(number: u8, rate: Option<Rate>, packets: f64) -> Setup {
    Setup { number, limit: Backlog::Packets(packets), aqm: drop_tail(), rate, burst: Bytes(0) }
}

fn policy(own: bool) -> All {
    All { flows: Flows::new(64, 1), markers: [None; 2], rewrite: Rewrite::Keep, own }
}

fn priority() -> AnyScheduler {
    AnyScheduler::Priority(inprofile_core::queue::priority::Priority)
}

const MS: u64 = 1_000_000_000;

fn class(path: &Datapath<All>) -> ClassState<'_> {
    path.classes().next().unwrap()
}

/// A frame too long for the interface ahead takes no time on the link, no place and no token: the next packet leaves at once.
#[test]
fn what_is_too_long_to_leave_costs_nothing() {
    let mut path = datapath(3.0, Vec::new(), 100);
    let mut out = Sent::default();
    path.set_mtu(Some(999));
    for _ in 0..5 {
        path.arrive(Time(MS), &mut packet(1, 1000, 0), &mut out);
    }
    assert_eq!((path.due(), path.waiting(), class(&path).counts().arrived), (None, 0, [0; 3]));
    path.arrive(Time(MS), &mut packet(1, 999, 0), &mut out);
    assert_eq!((path.totals().sent, path.totals().refused, path.totals().refusals[6]), (1, 5, 5));
    path.check().unwrap();
}

/// 1000 B at 8 Mbit/s take 1 ms each.
#[test]
fn packets_leave_at_their_deadlines_in_order() {
    let mut path = datapath(3.0, Vec::new(), 100);
    let mut out = Sent::default();
    for _ in 0..6 {
        path.arrive(Time(MS / 2), &mut packet(1, 1000, 0), &mut out);
    }
    // One on the link, three waiting, two too many.
    assert_eq!(
        (class(&path).counts().dropped[Cause::OVERFLOW.index()], class(&path).waiting()),
        ([2, 0, 0], [3, 0, 0])
    );
    assert_eq!(path.due(), Some(Time(MS / 2 + MS)));
    path.advance(Time(100 * MS), &mut out);
    let times: Vec<_> = out.0.iter().map(|(at, number, _)| (at.0, *number)).collect();
    assert_eq!(times, [(MS / 2, 0), (MS * 3 / 2, 1), (MS * 5 / 2, 2), (MS * 7 / 2, 3)]);
    assert_eq!(path.due(), None);
    path.check().unwrap();
    // What comes after a pause starts at once.
    path.arrive(Time(200 * MS), &mut packet(1, 500, 0), &mut out);
    assert_eq!(out.0.last().unwrap().0, Time(200 * MS));
    assert_eq!(path.due(), Some(Time(200 * MS + MS / 2)));
}

#[test]
fn the_colour_is_written_when_a_packet_leaves() {
    let p = inprofile_core::marker::token_bucket::Params {
        rate: Some(Rate(8_000)),
        depth: Backlog::Bytes(1000.0),
        starts_full: true,
        conforms: inprofile_core::marker::token_bucket::Conforms::AtLeast,
        action: inprofile_core::marker::Action::Mark,
    };
    let bucket = inprofile_core::params::Build::build(&p, &context());
    let marker = inprofile_core::registry::AnyMarker::TokenBucket(bucket);
    let mut path = datapath(10.0, vec![Marking::new(marker, Rng::for_component(1, "m"))], 100);
    let mut out = Sent::default();
    for _ in 0..2 {
        // ECT(0), which must survive.
        path.arrive(Time(0), &mut packet(1, 1000, 0x02), &mut out);
    }
    path.advance(Time(100 * MS), &mut out);
    let octets: Vec<u8> = out.0.iter().map(|(_, _, f)| f[1]).collect();
    assert_eq!(octets, [10 << 2 | 2, 12 << 2 | 2], "AF11, then AF12, both with ECT(0)");
    assert!(out.0.iter().all(|(_, _, f)| checksum::check(&f[..20]) == 0));
    assert_eq!(path.markers()[0].counts().left, [1, 1, 0]);
}

#[test]
fn what_is_no_ip_goes_on_at_once_and_untouched() {
    let mut path = datapath(3.0, Vec::new(), 100);
    let mut out = Sent::default();
    path.arrive(Time(5), &mut packet(1, 1000, 0), &mut out);
    let mut odd = vec![0xff; 77];
    path.arrive(Time(6), &mut odd, &mut out);
    assert_eq!(out.0.last().unwrap(), &(Time(6), 1, vec![0xff; 77]));
    assert_eq!((path.totals().passed, path.totals().came), (1, 2));
    assert_eq!(path.census().iter().find(|(n, _)| *n == "malformed"), Some(("malformed", 1)));
    path.check().unwrap();
}

/// Strict priority at 1 Mbit/s before the rest of 8 Mbit/s: the first goes at its own deadlines, the rest between.
#[test]
fn a_paced_class_leaves_the_link_to_others() {
    let class = |number, rate| queue(number, rate, 10.0);
    let classes = vec![class(46, Some(Rate(1_000_000))), class(0, None)];
    let mut path = with_classes(classes, Vec::new(), 100);
    let mut out = Sent::default();
    for source in [46, 46, 46, 1, 1] {
        path.arrive(Time(0), &mut packet(source, 1000, 0), &mut out);
    }
    path.advance(Time(2 * MS), &mut out);
    // Nothing else waits: the next is held until 8 ms, and what comes meanwhile is not.
    assert_eq!(path.due(), Some(Time(3 * MS)));
    path.advance(Time(3 * MS), &mut out);
    assert_eq!(path.due(), Some(Time(8 * MS)));
    path.arrive(Time(5 * MS), &mut packet(1, 500, 0), &mut out);
    path.advance(Time(100 * MS), &mut out);
    let times: Vec<_> = out.0.iter().map(|(at, number, _)| (at.0, *number)).collect();
    assert_eq!(times, [(0, 0), (MS, 3), (2 * MS, 4), (5 * MS, 5), (8 * MS, 1), (16 * MS, 2)]);
    path.check().unwrap();
}

#[test]
fn without_buffers_packets_are_lost_and_counted() {
    let mut path = datapath(1000.0, Vec::new(), 2);
    let mut out = Sent::default();
    for _ in 0..10 {
        path.arrive(Time(0), &mut packet(1, 1000, 0), &mut out);
    }
    assert_eq!((path.totals().no_buffer, path.totals().sent, class(&path).waiting()[0]), (7, 1, 2));
    path.check().unwrap();
}

/// Those who fill their queues, together more than there are buffers for, take nobody's.
#[test]
fn full_queues_leave_the_others_their_buffers() {
    let class = || queue(0, None, 100.0);
    let lost = |reserved| {
        let setup = || MemberSetup {
            scheduler: priority(),
            classes: vec![class()],
            level: 1,
            quantum: 1000,
            shape: None,
        };
        let customer = |place| CustomerQueue { place, setup: setup(), migrations: Vec::new() };
        let sharing = Sharing {
            places: 10,
            queues: (0..10).map(customer).collect(),
            level: 1,
            reserved,
            ..Sharing::default()
        };
        let parts = Parts { sharing, buffers: 200, ..parts(vec![class()]) };
        let mut path = Datapath::new(policy(true), parts);
        let mut out = Sent::default();
        // Three fill their queues, 100 packets each, then the others send five each.
        for (packets, customers) in [(100, 0..3), (5, 3..10)] {
            for customer in customers {
                (0..packets).for_each(|_| path.arrive(Time(0), &mut packet(customer, 100, 0), &mut out));
            }
        }
        path.check().unwrap();
        path.customers()[3..].iter().map(|c| c.no_buffer).sum::<u64>()
    };
    assert_eq!(lost([u32::MAX; 2]), 35, "all");
    assert_eq!(lost([25, 5]), 0);
}

#[test]
fn other_code_points_come_out_as_they_came() {
    let mut path = datapath(100.0, Vec::new(), 100);
    path.policy.rewrite = Rewrite::Keep;
    let mut out = Sent::default();
    for octet in 0..=255 {
        let frame = packet(1, 100, octet);
        path.arrive(Time(u64::from(octet) * MS), &mut frame.clone(), &mut out);
        assert_eq!(out.0.last().unwrap().2, frame, "DSCP {}", Dscp::of_octet(octet));
    }
}

proptest! {
    /// However late and however often somebody looks, every packet leaves with the same deadline, and none is lost.
    #[test]
    fn looking_late_changes_nothing(
        gaps in prop::collection::vec((0u64..3 * MS, 40usize..1500, 0u8..4), 1..80),
        looks in prop::collection::vec(0u64..5 * MS, 0..200),
        limit in 1u32..10,
    ) {
        let run = |looks: &[u64]| {
            let mut path = datapath(f64::from(limit), Vec::new(), 100);
            let (mut out, mut now, mut look) = (Sent::default(), 0, 0);
            let mut looks = looks.iter();
            for (gap, size, source) in &gaps {
                now += gap;
                while look < now {
                    path.advance(Time(look), &mut out);
                    look = looks.next().map_or(u64::MAX, |l| look.saturating_add(*l));
                }
                path.arrive(Time(now), &mut packet(*source, *size, 0), &mut out);
                path.check().unwrap();
            }
            path.advance(Time(now) + Duration::from_millis(1000), &mut out);
            path.check().unwrap();
            (out.0, *class(&path).counts())
        };
        let (exact, counts) = run(&[]);
        prop_assert_eq!((exact, counts), run(&looks));
    }
}

proptest! {
    /// Whether it leaves at once, waits for the link or for its class's set rate: nobody's bytes are another's.
    #[test]
    fn every_packet_leaves_with_its_own_bytes(
        arrivals in prop::collection::vec((0u64..2 * MS, 40usize..1500, prop::bool::ANY), 1..80),
    ) {
        let class = |number, rate| queue(number, rate, 4.0);
        let classes = vec![class(46, Some(Rate(4_000_000))), class(0, None)];
        let mut path = with_classes(classes, Vec::new(), 100);
        path.policy.rewrite = Rewrite::Keep;
        let (mut out, mut now, mut came) = (Sent::default(), 0, Vec::new());
        for (number, (gap, size, first)) in (0u8..).zip(&arrivals) {
            now += gap;
            let mut frame = packet(if *first { 46 } else { 1 }, *size, 0);
            frame[28..].fill(number);
            came.push(frame.clone());
            path.arrive(Time(now), &mut frame, &mut out);
            path.check().unwrap();
        }
        path.advance(Time(now) + Duration::from_millis(1000), &mut out);
        path.check().unwrap();
        prop_assert!(!out.0.is_empty());
        for (_, number, frame) in &out.0 {
            prop_assert_eq!(frame, &came[*number as usize]);
        }
    }
}

/// Whatever the discipline was and is, and though the limit is lower now: what waits is sent, in its order.
#[test]
fn a_datapath_set_up_anew_keeps_its_packets() {
    let aqms = || {
        let registry = Registry::default();
        let link = context();
        registry.aqms.into_iter().filter_map(move |entry| {
            let values = inprofile_core::params::Values(
                entry
                    .fields
                    .iter()
                    .map(|f| match f.default {
                        inprofile_core::params::Default::Value(v) => Some((f.name, v())),
                        _ => None,
                    })
                    .collect::<Option<Vec<_>>>()?,
            );
            (entry.check)(&values, &link).is_ok().then(|| (entry.name, (entry.build)(&values, &link)))
        })
    };
    assert!(aqms().any(|(name, _)| name == "drop_tail"));
    for (name, aqm) in aqms() {
        let mut path = datapath(50.0, Vec::new(), 100);
        let mut out = Sent::default();
        (0..20).for_each(|_| path.arrive(Time(MS / 2), &mut packet(1, 1000, 0), &mut out));
        let class = Setup { aqm, ..queue(0, None, 5.0) };
        let parts = Parts { markers: path.take_markers(), rate: Rate(4_000_000), ..parts(vec![class]) };
        let migrations = [Migration { class: 0, unchanged: false }];
        let mut path = path.reconfigure(policy(false), parts, &migrations, Time(MS));
        path.check().unwrap();
        // Over the new limit: nothing more joins, nothing is lost.
        path.arrive(Time(MS), &mut packet(2, 1000, 0), &mut out);
        path.advance(Time(200 * MS), &mut out);
        path.check().unwrap();
        let numbers: Vec<u64> = out.0.iter().map(|(_, n, _)| *n).collect();
        assert_eq!(numbers, (0..20).collect::<Vec<_>>(), "{name}");
        // The one on the link goes at the old rate, the others at the new one: 2 ms each.
        assert_eq!((out.0[1].0, out.0[2].0), (Time(MS * 3 / 2), Time(MS * 7 / 2)));
        assert_eq!(path.totals().came, 21);
    }
}

/// A class that is gone leaves its packets to another; one that is unchanged goes on in the state it is in.
#[test]
fn classes_leave_their_packets_to_heirs() {
    let class = |number, rate| queue(number, rate, 10.0);
    let mut path = with_classes(vec![class(46, Some(Rate(1_000_000))), class(0, None)], Vec::new(), 100);
    let mut out = Sent::default();
    for source in [46, 46, 46, 1] {
        path.arrive(Time(0), &mut packet(source, 1000, 0), &mut out);
    }
    path.advance(Time(2 * MS), &mut out);
    assert_eq!((out.0.len(), path.due()), (2, Some(Time(8 * MS))), "the paced ones are held back");
    let parts = parts(vec![class(0, None)]);
    let migrations = [Migration { class: 0, unchanged: false }, Migration { class: 0, unchanged: true }];
    let mut path = path.reconfigure(policy(false), parts, &migrations, Time(3 * MS));
    path.advance(Time(100 * MS), &mut out);
    path.check().unwrap();
    let times: Vec<_> = out.0.iter().map(|(at, number, _)| (at.0, *number)).collect();
    assert_eq!(times, [(0, 0), (MS, 3), (3 * MS, 1), (4 * MS, 2)]);
}

/// Accounts that are wrong by one packet are found, in total and by a queue's own counts.
#[test]
fn accounts_that_do_not_add_up_are_found() {
    let mut path = datapath(2.0, Vec::new(), 10);
    let mut sent = Sent::default();
    for n in 0..10 {
        path.arrive(Time(n), &mut packet(1, 1000, 0), &mut sent);
    }
    assert!(path.totals.queue_dropped > 0);
    assert_eq!((path.check(), path.check_totals(), path.check_queues(0, 1)), (Ok(()), Ok(()), Ok(1)));
    assert_eq!(path.check_queues(1, 9), Ok(0), "and from the first again");
    path.totals.queue_dropped += 1;
    assert!(path.check_totals().is_err() && path.check().is_err());
    path.totals.queue_dropped -= 1;
    path.buffers.take();
    assert!(path.check_totals().is_err() && path.check().is_err());
}
