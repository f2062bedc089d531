//! Customers with queues of their own, and reloads under load: what is promised of them, in virtual time.

use inprofile_core::verdict::Cause;

use super::*;
use crate::config;

const MS: u64 = 1_000_000_000;

fn config(customers: &str) -> Config {
    let text = format!(
        "inside = \"a\"\noutside = \"b\"\n[upstream]\nrate = \"100 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"100 packets\" }}\n{customers}"
    );
    config::parse(text.as_bytes(), "r.toml", &registry()).map_err(|p| format!("{p:#?}")).unwrap().0
}

/// `n` customers of one template, 10.0.x.y each.
fn many(n: u32, template: &str) -> String {
    let mut text = format!("[[upstream.templates]]\nname = \"t\"\n{template}\n");
    for i in 0..n {
        text += &format!(
            "[[upstream.customers]]\nname = \"c{i}\"\nprefix = \"10.0.{}.{}\"\ntemplate = \"t\"\n",
            i / 250,
            i % 250
        );
    }
    text
}

const OWN: &str = "contract = \"100 kbit/s\"\nmarker = { kind = \"token_bucket\", depth = \"15 kB\" }\nqueue = { aqm = \"drop_tail\", limit = \"20 packets\" }";

fn udp(customer: u32, size: usize) -> Vec<u8> {
    let mut p = vec![0; size];
    (p[0], p[8], p[9]) = (0x45, 64, 17);
    p[2..4].copy_from_slice(&(size as u16).to_be_bytes());
    p[12..16].copy_from_slice(&[10, 0, (customer / 250) as u8, (customer % 250) as u8]);
    p[16..20].copy_from_slice(&[192, 0, 2, 1]);
    p[24..26].copy_from_slice(&(size as u16 - 20).to_be_bytes());
    p
}

/// A router and its clock.
struct Bench {
    router: Option<Router>,
    now: u64,
    sent: u64,
}

impl Bench {
    fn new(customers: &str) -> Bench {
        Bench { router: Some(Router::new(config(customers), Layer::Ip, 1)), now: MS, sent: 0 }
    }

    fn router(&mut self) -> &mut Router {
        self.router.as_mut().unwrap()
    }

    fn send(&mut self, customer: u32, size: usize) {
        let now = Time(self.now);
        self.router().arrive(now, 0, Layer::Ip, &mut udp(customer, size));
    }

    fn advance(&mut self, ps: u64) {
        self.now += ps;
        let now = Time(self.now);
        self.router().advance(now);
        self.sent += self.router().lanes[0].leaving.times().len() as u64;
        self.router().lanes[0].leaving.clear();
    }

    fn reload(&mut self, customers: &str) {
        let now = Time(self.now);
        self.router = self.router.take().map(|r| r.reconfigure(config(customers), Layer::Ip, 1, now));
        self.router().check().unwrap();
    }

    /// Arrived, sent, waiting, dropped for this cause.
    fn counts(&mut self, name: &str, cause: Cause) -> (u64, u64, u64, u64) {
        let router = self.router();
        let direction = router.config.directions[0].as_ref().unwrap();
        let place = direction.customers.iter().find(|c| c.name == name).unwrap().place;
        let c = &router.lanes[0].path.customers()[place as usize];
        (c.arrived, c.sent.iter().sum(), c.waiting(), c.dropped[cause.index()])
    }
}

/// Forty customers, all with more than there is, some with small packets and some with large: everybody's share of the link is
/// right, and so are his counts and his delay.
#[test]
fn customers_share_the_link() {
    const N: u32 = 40;
    let mut bench = Bench::new(&many(N, OWN));
    // 100 Mbit/s for 2 s; everybody offers twice his share.
    for _ in 0..2000 {
        for c in 0..N {
            let size = if c % 2 == 0 { 1500 } else { 500 };
            let count = if c % 2 == 0 { 1 } else { 2 };
            if c % 2 == 1 || (bench.now / MS).is_multiple_of(2) {
                (0..count).for_each(|_| bench.send(c, size));
            }
        }
        bench.advance(MS);
    }
    bench.router().check().unwrap();
    let all: u64 = (0..N).map(|c| bytes(&mut bench, c)).sum();
    for c in 0..N {
        let share = bytes(&mut bench, c) as f64 * f64::from(N) / all as f64;
        assert!((share - 1.0).abs() < 0.01, "customer {c}: {share}");
        let (arrived, sent, waiting, dropped) = bench.counts(&format!("c{c}"), Cause::OVERFLOW);
        assert_eq!(arrived, sent + waiting + dropped);
        // Twenty packets before a fortieth of the link: 20 × 1500 B (500 B) at 2.5 Mbit/s.
        let delay = bench.router().lanes[0].path.customers()[c as usize].delay();
        let full = if c % 2 == 0 { 0.096 } else { 0.032 };
        assert!((0.5..1.1).contains(&(delay.mean() / full)), "{} s", delay.mean());
        assert!((0.9..1.4).contains(&(delay.quantile(0.99) / full)), "{} s", delay.quantile(0.99));
    }
}

fn bytes(bench: &mut Bench, customer: u32) -> u64 {
    bench.router().lanes[0].path.customers()[customer as usize].sent_bytes.iter().sum()
}

/// A shaper holds its customer to its rate, whatever the link has left; who has none takes the rest.
#[test]
fn a_shaper_holds_its_customer_only() {
    let mut bench = Bench::new(&format!(
        "{}\n[[upstream.customers]]\nname = \"slow\"\nprefix = \"10.0.9.0\"\ntemplate = \"t\"\nrate = \"5 Mbit/s\"\n",
        many(1, OWN)
    ));
    for _ in 0..4000 {
        (0..9).for_each(|_| bench.send(0, 1500));
        bench.send(250 * 9, 1500);
        bench.advance(MS);
    }
    let slow = bytes(&mut bench, 1) as f64 * 8.0 / 4.0;
    assert!((slow / 5e6 - 1.0).abs() < 0.01, "{slow} bit/s");
    let free = bytes(&mut bench, 0) as f64 * 8.0 / 4.0;
    assert!((free / 95e6 - 1.0).abs() < 0.01, "{free} bit/s");
}

/// A policer drops what is out of profile, by its own word, and the customer's counts say so.
#[test]
fn a_policed_customer_keeps_to_his_contract() {
    let mut bench = Bench::new(&many(
        1,
        "contract = \"1 Mbit/s\"\nmarker = { kind = \"token_bucket\", depth = \"15 kB\", action = \"drop\" }",
    ));
    for _ in 0..5000 {
        bench.send(0, 1000);
        bench.advance(MS);
    }
    let sent = bytes(&mut bench, 0) as f64;
    assert!(sent <= 5.0 * 1e6 / 8.0 + 15_000.0 && sent > 5.0 * 1e6 / 8.0, "{sent}");
    let (arrived, sent, waiting, policed) = bench.counts("c0", Cause::named("policed"));
    assert_eq!((arrived, waiting), (sent + policed, 0));
}

/// A fair policer of 6 Mbit/s with a burst of 500 packets: burst control holds who sends sixteen times the rate to what is paid once it has let by 75 of
/// them, within 100 ms, and without it the burst passes. A reload that takes it away gives nobody a burst.
#[test]
fn burst_control_caps_a_burst_also_across_a_reload() {
    let table = |n: u32, control: &str| {
        format!(
            "[[upstream.customers]]\nname = \"c{n}\"\nprefix = \"10.0.0.{n}\"\ncontract = \"6 Mbit/s\"\nmarker = {{ kind = \"fair_policer\", burst = \"750 kB\"{control} }}\n"
        )
    };
    let control = ", burst_control = \"100 ms\"";
    let mut bench = Bench::new(&[table(0, control), table(1, "")].concat());
    // At the beginning of a period of the clock's.
    bench.now = 100 * MS;
    let policed = |bench: &mut Bench, name: &str| bench.counts(name, Cause::named("policed"));
    for ms in 0..100 {
        for c in [0, 1] {
            (0..8).for_each(|_| bench.send(c, 1500));
        }
        bench.advance(MS);
        assert!(ms > 0 || policed(&mut bench, "c0").3 == 0);
    }
    let (held, free) = (policed(&mut bench, "c0"), policed(&mut bench, "c1"));
    assert_eq!((held.0, free.0), (800, 800));
    let passed = (held.0 - held.3, free.0 - free.3);
    assert!((76..=76 + 50).contains(&passed.0) && (540..=560).contains(&passed.1), "{passed:?}");
    bench.reload(&[table(0, ""), table(1, control)].concat());
    for c in [0, 1] {
        (0..800).for_each(|_| bench.send(c, 1500));
    }
    bench.advance(100 * MS);
    let then = (policed(&mut bench, "c0").3 - held.3, policed(&mut bench, "c1").3 - free.3);
    assert!((800 - then.0) + passed.0 <= 550 && then.1 >= 799, "{then:?} of 800 each");
}

/// Who stays keeps his packets, his counts and his tokens, wherever he is in the file now; who goes is drained; nothing is lost.
#[test]
fn a_reload_keeps_who_stays_and_drains_who_goes() {
    let table = |name: &str, n: u32| {
        format!("[[upstream.customers]]\nname = \"{name}\"\nprefix = \"10.0.0.{n}\"\n{OWN}\n")
    };
    let mut bench = Bench::new(&[table("goes", 0), table("stays", 1), table("also", 2)].concat());
    for c in [0, 1, 2] {
        (0..15).for_each(|_| bench.send(c, 1500));
    }
    bench.advance(MS / 10);
    let before = bench.counts("stays", Cause::OVERFLOW);
    assert!(before.2 > 10, "{before:?}");
    bench.reload(&[table("new", 7), table("also", 2), table("stays", 1)].concat());
    assert_eq!(bench.counts("stays", Cause::OVERFLOW), before);
    assert_eq!(bench.counts("new", Cause::OVERFLOW), (0, 0, 0, 0));
    // 15 kB were ten packets; a reload gives him none back: what he sends now is OUT.
    bench.send(1, 1500);
    bench.advance(100 * MS);
    assert_eq!(bench.sent, 46, "everything has left, the leaver's too");
    let sent = |bench: &mut Bench, place: usize| bench.router().lanes[0].path.customers()[place].sent;
    assert_eq!(sent(&mut bench, 1)[..2], [10, 6]);
    // His packets are nobody's now.
    bench.send(0, 1500);
    bench.advance(MS);
    bench.router().check().unwrap();
    assert_eq!(bench.sent, 47);
    assert_eq!(bench.counts("new", Cause::OVERFLOW), (0, 0, 0, 0));
}

/// Reloads of everything there is under load, customers with and without queues coming and going: no packet is lost but those
/// that queues drop, and every account adds up.
#[test]
fn reloads_lose_no_packet() {
    let files = [
        many(30, OWN),
        many(20, &OWN.replace("drop_tail", "drop_tail\", limit_rule = \"waiting")),
        many(40, "contract = \"100 kbit/s\"\nmarker = { kind = \"token_bucket\", depth = \"15 kB\" }"),
        many(10, &format!("{OWN}\nrate = \"2 Mbit/s\"\npriority = 2")),
        String::new(),
        "[upstream.best_effort]\naqm = \"drop_tail\"\nlimit = \"50 packets\"\n".to_owned() + &many(25, OWN),
    ];
    let mut bench = Bench::new(&files[0]);
    let mut came = 0;
    for round in 0..600 {
        for c in 0..12 {
            bench.send((c * 7 + round) % 45, 200 + (c as usize * 97) % 1300);
            came += 1;
        }
        bench.advance(MS);
        if round % 7 == 3 {
            bench.reload(&files[(round as usize / 7 * 5 + 1) % files.len()]);
        }
    }
    bench.advance(20_000 * MS);
    bench.router().check().unwrap();
    let totals = *bench.router().lanes[0].path.totals();
    let queued = bench.router().lanes[0].path.queued();
    let dropped: u64 = queued.dropped.iter().flatten().sum();
    assert_eq!((totals.came, bench.router().waiting()), (came, 0));
    assert_eq!(bench.sent + dropped + totals.policed + totals.marker_dropped, came);
    assert_eq!(totals.no_buffer, 0);
}

/// Where limits promise more buffers than there are, each queue can count on its part.
#[test]
fn buffers_are_kept_where_limits_promise_too_many() {
    let reserved = |limit: &str| {
        let config = config(&many(2_000, &OWN.replace("20 packets", limit)));
        let direction = config.directions[0].as_ref();
        next::parts(direction, &config, Layer::Ip, 1, Vec::new(), None).0.sharing.reserved
    };
    assert_eq!(reserved("500 packets"), [u32::MAX; 2]);
    assert_eq!(reserved("50 kB"), [131_072, 131]);
}
