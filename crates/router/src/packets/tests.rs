use inprofile_core::marker::Marker;
use inprofile_core::packet::{Colour, Packet};
use inprofile_core::params::{Make, Values};
use inprofile_core::registry::AnyMarker;
use inprofile_core::rng::Rng;
use inprofile_core::verdict::{Mark, Why};
use inprofile_experiment::text::named::Mechanism;
use inprofile_live::io::Received;
use inprofile_live::io::replay::{Frame, Replay};
use inprofile_live::packet::Layer;

use super::*;
use crate::config::{self, Level};
use crate::router;

const THERE: [Standing; 2] = [Standing::InUse(1), Standing::InUse(2)];

impl Ports for Replay {
    fn odd(&self, _: Port) -> Oddities {
        Oddities::default()
    }
    fn mtu(&self, _: Port) -> Option<usize> {
        None
    }
    fn bind(&mut self, _: Port, index: Option<u32>) -> io::Result<()> {
        if index == Some(9) { Err(io::Error::other("no such interface")) } else { Ok(()) }
    }
}

/// Breaks at the third packet.
struct Breaks(u32);

impl inprofile_core::mechanism::Mechanism for Breaks {}

impl Marker for Breaks {
    fn mark<W: Why + ?Sized>(&mut self, _: Time, _: &Packet, _: &mut Rng, _: &mut W) -> Mark {
        self.0 += 1;
        assert!(self.0 < 3, "the marker is broken");
        Mark::Pass(Colour::OUT)
    }
}

fn config(fail: &str) -> Config {
    let text = format!(
        "inside = \"a\"\noutside = \"b\"\nfail = \"{fail}\"\n[upstream]\nrate = \"8 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"9 packets\" }}\n[[upstream.customers]]\nname = \"c\"\nprefix = \"0.0.0.0/0\"\nmarker = {{ kind = \"colour\", colour = \"red\" }}\n"
    );
    let (mut config, _) = config::parse(text.as_bytes(), "r.toml", &router::registry()).unwrap();
    let marker = &mut config.directions[0].as_mut().unwrap().customers[0].marker;
    *marker = Mechanism {
        name: "breaks",
        values: Values::default(),
        fields: &[],
        build: &|_, _| AnyMarker::Custom(Box::new(Breaks(0))),
    };
    config
}

/// Six packets of 1000 B, 10 ms apart; then the end.
fn play(fail: &str) -> (io::Result<Ended>, Vec<u8>) {
    let frame = |n: u8| {
        let mut bytes = vec![0; 1000];
        (bytes[0], bytes[8], bytes[9], bytes[999]) = (0x45, 64, 17, n);
        bytes[2..4].copy_from_slice(&1000u16.to_be_bytes());
        Frame { at: Time(u64::from(n) * 10_000_000_000), port: 0, bytes }
    };
    let mut io = Replay::new(Layer::Ip, (1..=6).map(frame).collect());
    let router = Router::new(config(fail), Layer::Ip, 1);
    let (log, _) = Log::start(Level::Error, None).unwrap();
    let mut this = Loop::new(&mut io, router, THERE, 1, log);
    let mut outcome = Ok(());
    while outcome.is_ok() && !this.io.ended() {
        outcome = this.round(true);
    }
    let outcome = outcome.map(|()| Ended { left_behind: 0 });
    // DSCP: AF12 while it worked, then best effort.
    (outcome, io.into_sent().iter().map(|f| f.bytes[1] >> 2).collect())
}

#[test]
fn a_fault_inside_leaves_the_way_open_or_closed() {
    let (outcome, dscps) = play("open");
    assert_eq!(outcome.unwrap(), Ended { left_behind: 0 });
    // The third broke it and was lost with it.
    assert_eq!(dscps, [12, 12, 0, 0, 0]);
    let (outcome, dscps) = play("closed");
    assert_eq!(outcome.unwrap_err().to_string(), "the marker is broken; fail = closed");
    assert_eq!(dscps, [12, 12]);
}

/// Six packets, 10 ms apart, and after the third a reload that panics: what came of it, of the loop, and the DSCPs that left.
fn reload_that_panics(fail: &str) -> (Result<(), String>, io::Result<()>, Vec<u8>) {
    let frame = |n: u8| {
        let mut bytes = vec![0; 1000];
        (bytes[0], bytes[8], bytes[9]) = (0x45, 64, 17);
        bytes[2..4].copy_from_slice(&1000u16.to_be_bytes());
        Frame { at: Time(u64::from(n) * 10_000_000_000), port: 0, bytes }
    };
    let mut io = Replay::new(Layer::Ip, (1..=6).map(frame).collect());
    let mut before = config(fail);
    let mut after = before.clone();
    let marker = |c: &mut Config, name: &'static str, build: Make<AnyMarker>| {
        let marker = &mut c.directions[0].as_mut().unwrap().customers[0].marker;
        *marker = Mechanism { name, values: Values::default(), fields: &[], build };
    };
    marker(&mut before, "sound", &|_, _| AnyMarker::Custom(Box::new(Sound)));
    marker(&mut after, "unsound", &|_, _| panic!("it can't be built"));
    let (log, _) = Log::start(Level::Error, None).unwrap();
    let mut this = Loop::new(&mut io, Router::new(before, Layer::Ip, 1), THERE, 1, log);
    let (asked, waiting) = ask();
    let mut asked = Some(asked);
    let mut outcome = Ok(());
    while outcome.is_ok() && !this.io.ended() {
        outcome = this.round(true);
        if outcome.is_ok()
            && this.io.now() >= Time(30_000_000_000)
            && let Some(asked) = asked.take()
        {
            outcome = this
                .obey(Command::Reload(Box::new(after.clone()), asked))
                .and_then(|()| this.take_over(true));
        }
    }
    let answer = waiting.answer(std::time::Duration::ZERO).expect("it is answered");
    (answer, outcome, io.into_sent().iter().map(|f| f.bytes[1] >> 2).collect())
}

/// Gives every packet OUT.
struct Sound;

impl inprofile_core::mechanism::Mechanism for Sound {}

impl Marker for Sound {
    fn mark<W: Why + ?Sized>(&mut self, _: Time, _: &Packet, _: &mut Rng, _: &mut W) -> Mark {
        Mark::Pass(Colour::OUT)
    }
}

/// A reload is refused, with the reason, and what runs goes on as if nobody had asked for it.
#[test]
fn a_reload_that_panics_changes_nothing() {
    for fail in ["open", "closed"] {
        let (answer, outcome, dscps) = reload_that_panics(fail);
        assert_eq!(answer, Err("the reload broke off: it can't be built".to_owned()));
        outcome.unwrap();
        assert_eq!(dscps, [12; 6]);
    }
}

/// While one is prepared another is refused, and packets go on; the first takes effect.
#[test]
fn one_reload_at_a_time() {
    let mut io = Replay::new(Layer::Ip, Vec::new());
    let (log, _) = Log::start(Level::Error, None).unwrap();
    let mut this = Loop::new(&mut io, Router::new(config("open"), Layer::Ip, 1), THERE, 1, log);
    let [(first, of_first), (second, of_second)] = [ask(), ask()];
    this.obey(Command::Reload(Box::new(config("closed")), first)).unwrap();
    this.obey(Command::Reload(Box::new(config("open")), second)).unwrap();
    let told = of_second.answer(std::time::Duration::ZERO).unwrap();
    assert_eq!(told, Err("another reload is being prepared".to_owned()));
    this.take_over(true).unwrap();
    assert_eq!(of_first.answer(std::time::Duration::ZERO).unwrap(), Ok(()));
    assert_eq!(this.router.as_ref().unwrap().config.fail, Fail::Closed);
}

/// A reload that nobody waits for any more is not done after all.
#[test]
fn what_was_withdrawn_never_takes_effect() {
    let mut io = Replay::new(Layer::Ip, Vec::new());
    let (log, _) = Log::start(Level::Error, None).unwrap();
    let mut this = Loop::new(&mut io, Router::new(config("open"), Layer::Ip, 1), THERE, 1, log);
    let (asked, waiting) = ask();
    assert!(waiting.answer(std::time::Duration::ZERO).is_err(), "nobody is there to answer");
    this.obey(Command::Reload(Box::new(config("closed")), asked)).unwrap();
    assert_eq!(this.router.as_ref().unwrap().config.fail, Fail::Open);
    let (asked, waiting) = ask();
    assert!(waiting.answer(std::time::Duration::ZERO).is_err());
    this.obey(Command::Bypass(true, asked)).unwrap();
    assert!(!this.bypass);
}

/// Nor is one that is given up while it is prepared; the next one is as if nobody had asked before.
#[test]
fn what_is_withdrawn_while_it_is_prepared_never_takes_effect() {
    let mut io = Replay::new(Layer::Ip, Vec::new());
    let (log, _) = Log::start(Level::Error, None).unwrap();
    let mut this = Loop::new(&mut io, Router::new(config("open"), Layer::Ip, 1), THERE, 1, log);
    let (asked, waiting) = ask();
    this.obey(Command::Reload(Box::new(config("closed")), asked)).unwrap();
    assert!(waiting.answer(std::time::Duration::ZERO).is_err(), "it is reported as failed");
    this.take_over(true).unwrap();
    assert_eq!(this.router.as_ref().unwrap().config.fail, Fail::Open);
    let (asked, waiting) = ask();
    this.obey(Command::Reload(Box::new(config("closed")), asked)).unwrap();
    this.take_over(true).unwrap();
    assert_eq!(waiting.answer(std::time::Duration::ZERO).unwrap(), Ok(()));
    assert_eq!(this.router.as_ref().unwrap().config.fail, Fail::Closed);
}

/// A port's interface goes, one comes that can't be taken up, goes again, and then one comes that can.
#[test]
fn a_port_goes_and_comes_and_is_shown() {
    let mut io = Replay::new(Layer::Ip, Vec::new());
    let (log, _) = Log::start(Level::Error, None).unwrap();
    let mut this = Loop::new(&mut io, Router::new(config("open"), Layer::Ip, 1), THERE, 1, log);
    let mut tell = |standing: Standing| {
        let (asked, waiting) = ask();
        this.obey(Command::Port(1, standing, asked)).unwrap();
        let told = waiting.answer(std::time::Duration::ZERO).unwrap();
        let (asked, waiting) = ask();
        this.obey(Command::Snapshot(asked)).unwrap();
        while !this.lookers.is_empty() {
            this.look();
        }
        let shown = waiting.answer(std::time::Duration::ZERO).unwrap();
        assert_eq!(shown.ports[0].standing, THERE[0], "the other goes on");
        (told, shown.ports[1].standing.clone(), shown.ports[1].taken_away)
    };
    let said = "no such interface".to_owned();
    assert_eq!(tell(Standing::Away), (Ok(()), Standing::Away, 1));
    assert_eq!(tell(Standing::InUse(9)), (Err(said.clone()), Standing::Unfit(9, said), 1));
    assert_eq!(tell(Standing::Away), (Ok(()), Standing::Away, 1));
    assert_eq!(tell(Standing::InUse(3)), (Ok(()), Standing::InUse(3), 1));
    assert_eq!(tell(Standing::Away), (Ok(()), Standing::Away, 2));
}

/// Who asks what a thousand customers do is shown them a slice a round, each with what he had then; a reload in between starts over.
#[test]
fn many_customers_are_shown_in_slices() {
    let text = |customers: u32| {
        let each = |n| {
            format!(
                "[[upstream.customers]]\nname = \"c{n}\"\nvlan = {n}\nmarker = {{ kind = \"token_bucket\", depth = \"3 kB\" }}\ncontract = \"1 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"5 packets\" }}\n"
            )
        };
        let each: String = (1..=customers).map(each).collect();
        let text = format!(
            "inside = \"a\"\noutside = \"b\"\n[upstream]\nrate = \"8 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"9 packets\" }}\n{each}"
        );
        config::parse(text.as_bytes(), "r.toml", &router::registry()).unwrap().0
    };
    let mut io = Replay::new(Layer::Ip, Vec::new());
    let (log, _) = Log::start(Level::Error, None).unwrap();
    let mut this = Loop::new(&mut io, Router::new(text(1000), Layer::Ip, 1), THERE, 1, log);
    let (asked, waiting) = ask();
    this.obey(Command::Snapshot(asked)).unwrap();
    let mut rounds = 0;
    let mut look = |this: &mut Loop<'_, Replay>| {
        rounds += 1;
        this.look();
        let seen = this.building.as_ref().map(Builder::customers);
        assert!(seen.is_none_or(|seen| seen <= 128 * rounds), "{seen:?} after {rounds}");
    };
    look(&mut this);
    look(&mut this);
    // Reconfigured for fewer.
    let router = this.router.take().unwrap();
    this.router = Some(router.reconfigure(text(600), Layer::Ip, 1, Time(1)));
    while this.building.is_some() {
        look(&mut this);
    }
    let mut shown = waiting.answer(std::time::Duration::ZERO).unwrap();
    assert!(rounds >= 2 + 600 / 128, "{rounds}");
    shown.name_all();
    let up = &shown.directions[0];
    assert_eq!((shown.customers(0).count(), up.own_queues.len()), (600, 600));
    assert_eq!((up.markers[599].name.as_str(), up.markers[599].kind), ("c600", "token_bucket"));
    assert_eq!(
        (up.markers[600].name.as_str(), up.own_queues[599].1[0].name.as_str()),
        ("control arp", "assured")
    );
    assert_eq!(
        (up.classes[0].name.as_str(), shown.directions[1].classes[0].name.as_str()),
        ("control", "transparent")
    );
}

/// A stopped router sends its backlog.
#[test]
fn the_end_drains() {
    let frame = |n: u8| {
        let mut bytes = vec![0; 1000];
        (bytes[0], bytes[9]) = (0x45, 17);
        bytes[2..4].copy_from_slice(&1000u16.to_be_bytes());
        Frame { at: Time(u64::from(n)), port: 0, bytes }
    };
    let mut io = Replay::new(Layer::Ip, (0..5).map(frame).collect());
    let text = "inside = \"a\"\noutside = \"b\"\n[upstream]\nrate = \"8 Mbit/s\"\nqueue = { aqm = \"drop_tail\", limit = \"9 packets\" }\n";
    let (config, _) = config::parse(text.as_bytes(), "r.toml", &router::registry()).unwrap();
    let router = Router::new(config, Layer::Ip, 1);
    let (log, _) = Log::start(Level::Error, None).unwrap();
    let mut this = Loop::new(&mut io, router, THERE, 1, log.clone());
    while !this.io.ended() {
        this.round(true).unwrap();
    }
    let router = this.router.take().unwrap();
    assert_eq!(router.waiting(), 4);
    let (sender, commands) = channel();
    // One that was withdrawn ends nothing: the other does.
    let (withdrawn, waiting) = ask();
    assert!(waiting.answer(std::time::Duration::ZERO).is_err());
    sender.send(Command::Stop(withdrawn)).unwrap();
    sender.send(Command::Stop(ask().0)).unwrap();
    assert_eq!(
        run(&mut io, router, THERE, 1, &commands, &Pulse::default(), log).unwrap(),
        Ended { left_behind: 0 }
    );
    // 1 ms each.
    assert!(io.now() <= Time(5_000_000_000), "{}", io.now());
    assert_eq!(io.into_sent().len(), 5);
}

/// Frames from memory, for a thread that the system wakes only every so often, whatever it asked for.
struct Sleepy {
    every: Duration,
    now: Time,
    to_come: std::collections::VecDeque<Frame>,
    sent: Vec<u16>,
}

impl Io for Sleepy {
    fn layer(&self) -> Layer {
        Layer::Ip
    }
    fn now(&self) -> Time {
        self.now
    }
    fn wait(&mut self, until: Option<Time>) -> io::Result<()> {
        let next = self.to_come.front().map(|f| f.at).into_iter().chain(until).min().unwrap().max(self.now);
        self.now = Time(next.0.next_multiple_of(self.every.0));
        Ok(())
    }
    fn receive(&mut self, each: &mut dyn FnMut(Time, Port, &mut [u8])) -> io::Result<Received> {
        let there = self.to_come.iter().take_while(|f| f.at <= self.now).count();
        self.to_come.drain(..there).for_each(|mut f| each(f.at, f.port, &mut f.bytes));
        Ok(Received { frames: there, until: self.now })
    }
    fn send(&mut self, _: Port, frame: &[u8]) -> io::Result<()> {
        self.sent.push(u16::from_be_bytes([frame[4], frame[5]]));
        Ok(())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn ended(&self) -> bool {
        self.to_come.is_empty()
    }
    fn counts(&self, _: Port) -> inprofile_live::io::PortCounts {
        inprofile_live::io::PortCounts::default()
    }
}

impl Ports for Sleepy {
    fn odd(&self, _: Port) -> Oddities {
        Oddities::default()
    }
    fn mtu(&self, _: Port) -> Option<usize> {
        None
    }
    fn bind(&mut self, _: Port, _: Option<u32>) -> io::Result<()> {
        Ok(())
    }
}

/// 1,000 packets of 1000 B, one every 0.8 ms, into 8 Mbit/s and a queue of four: a fifth has to go. Which ones left, how many
/// were recorded as late, and the latest.
fn crowd(every: Duration) -> (Vec<u16>, u64, Duration) {
    let frame = |n: u16| {
        let mut bytes = vec![0; 1000];
        (bytes[0], bytes[9]) = (0x45, 17);
        bytes[2..4].copy_from_slice(&1000u16.to_be_bytes());
        bytes[4..6].copy_from_slice(&n.to_be_bytes());
        Frame { at: Time(u64::from(n) * 800_000_000), port: 0, bytes }
    };
    let to_come = (1..=1000).map(frame).collect();
    let mut io = Sleepy { every, now: Time::ZERO, to_come, sent: Vec::new() };
    let text = "inside = \"a\"\noutside = \"b\"\n[upstream]\nrate = \"8 Mbit/s\"\nqueue = { aqm = \"drop_tail\", limit = \"4 packets\" }\n";
    let (config, _) = config::parse(text.as_bytes(), "r.toml", &router::registry()).unwrap();
    let (log, _) = Log::start(Level::Error, None).unwrap();
    let mut this = Loop::new(&mut io, Router::new(config, Layer::Ip, 1), THERE, 1, log);
    while !this.io.ended() || this.router.as_ref().unwrap().waiting() > 0 {
        this.round(true).unwrap();
    }
    let lateness = this.router.as_ref().unwrap().lanes[0].lateness;
    (io.sent, lateness.count(), lateness.most())
}

/// Ten milliseconds of sleep are ten packets' time, and the queue holds four: a link that counted packets as having come
/// when it woke would stand idle for more than half of the time.
#[test]
fn a_thread_that_wakes_late_loses_no_rate() {
    let punctual = crowd(Duration(1));
    assert_eq!(punctual.2, Duration::ZERO);
    // 800 ms at a packet a millisecond, and what waited at the end.
    assert!((800..=806).contains(&punctual.0.len()), "{}", punctual.0.len());
    let late = crowd(Duration::from_millis(10));
    assert_eq!(late.0, punctual.0, "the same packets, in the same order");
    assert_eq!(late.1, late.0.len() as u64);
    assert!(late.2 > Duration::from_millis(9) && late.2 < Duration::from_millis(10), "{:?}", late.2);
}

/// Stopped for 5 s while 8 Mbit/s come, it wakes up with 5,000 packets in the ring whose turn has come, all at once: but for
/// those of the last moments they would leave past the shaper.
#[test]
fn what_is_too_late_is_thrown_away() {
    for (limit, sent) in [("500 ms", 501), ("20 ms", 21), ("10 s", 5_000)] {
        let frame = |n: u64| {
            let mut bytes = vec![0; 1000];
            (bytes[0], bytes[9]) = (0x45, 17);
            bytes[2..4].copy_from_slice(&1000u16.to_be_bytes());
            Frame { at: Time(n * 1_000_000_000), port: 0, bytes }
        };
        let to_come = (1..=5_000).map(frame).collect();
        let mut io =
            Sleepy { every: Duration::from_millis(5_000), now: Time::ZERO, to_come, sent: Vec::new() };
        let text = format!(
            "inside = \"a\"\noutside = \"b\"\nframes.age_limit = \"{limit}\"\n[upstream]\nrate = \"8 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"4000 packets\" }}\n"
        );
        let (config, _) = config::parse(text.as_bytes(), "r.toml", &router::registry()).unwrap();
        let (log, _) = Log::start(Level::Error, None).unwrap();
        let mut this = Loop::new(&mut io, Router::new(config, Layer::Ip, 1), THERE, 1, log);
        while !this.io.ended() {
            this.round(true).unwrap();
        }
        let router = this.router.as_ref().unwrap();
        router.check().unwrap();
        let totals = *router.lanes[0].path.totals();
        assert_eq!((totals.came, totals.too_late, totals.sent), (5_000, 5_000 - sent, sent), "{limit}");
        assert_eq!(io.sent.len() as u64, sent);
    }
}
