//! The tests of the crate from outside, in one program.

mod meters {
    //! The meters on the hand-derived vectors of `validation/meters`.

    use inprofile_core::marker::Action;
    use inprofile_core::marker::meter::{Mode, rfc4115, srtcm, trtcm};
    use inprofile_core::prelude::*;
    use inprofile_core::registry::AnyMarker;
    use toml::de::{DeTable, DeValue};

    /// Packets of a byte: no setup is refused, and depths are in bytes anyhow.
    const CONTEXT: Context = Context { link_rate: None, contract: None, packet: Bytes(1), limit: None };

    struct Vector<'a>(&'a DeTable<'a>);

    impl Vector<'_> {
        fn number(&self, key: &str) -> u64 {
            number(self.0.get(key).unwrap_or_else(|| panic!("{}: no {key}", self.text("name"))).get_ref())
        }
        fn rate(&self, key: &str) -> Rate {
            Rate(self.number(key))
        }
        fn depth(&self, key: &str) -> Backlog {
            Backlog::Bytes(self.number(key) as f64)
        }
        fn text(&self, key: &str) -> String {
            text(self.0.get(key).unwrap_or_else(|| panic!("a vector has no {key}")).get_ref())
        }
        fn mode(&self) -> Mode {
            let word = self.text("mode");
            Mode::ALL.into_iter().find(|m| m.word() == word).unwrap_or_else(|| panic!("mode {word}"))
        }
    }

    fn number(value: &DeValue<'_>) -> u64 {
        match value {
            DeValue::Integer(n) => n.as_str().parse().unwrap_or_else(|_| panic!("{n} is no number")),
            other => panic!("{other:?} where a number belongs"),
        }
    }

    fn text(value: &DeValue<'_>) -> String {
        match value {
            DeValue::String(s) => s.to_string(),
            other => panic!("{other:?} where a text belongs"),
        }
    }

    fn colour(value: &DeValue<'_>) -> Colour {
        match text(value).as_str() {
            "green" => Colour::Green,
            "yellow" => Colour::Yellow,
            "red" => Colour::Red,
            other => panic!("{other} is no colour"),
        }
    }

    /// Every vector of the file; returns how many, and packets.
    fn hold(file: &str, build: impl Fn(&Vector<'_>) -> AnyMarker) -> (usize, usize) {
        let document = DeTable::parse(file).expect("the vectors are TOML");
        let Some(DeValue::Array(vectors)) = document.get_ref().get("vector").map(|v| v.get_ref()) else {
            panic!("no vectors");
        };
        let mut rng = Rng::for_component(0, "unused");
        let mut packets = 0;
        for vector in vectors.iter() {
            let DeValue::Table(table) = vector.get_ref() else { panic!("a vector is a table") };
            let vector = Vector(table);
            let mut meter = build(&vector);
            let Some(DeValue::Array(list)) = table.get("packets").map(|p| p.get_ref()) else {
                panic!("{}: no packets", vector.text("name"));
            };
            for (i, packet) in list.iter().enumerate() {
                let DeValue::Array(fields) = packet.get_ref() else { panic!("a packet is a list") };
                let [at, size, came, left] = [0, 1, 2, 3].map(|k| fields[k].get_ref());
                let packet = Packet { size: number(size) as u32, colour: colour(came), ..Packet::default() };
                let mark = meter.mark(Time(number(at) * 1_000_000), &packet, &mut rng, &mut Silent);
                assert_eq!(mark, Mark::Pass(colour(left)), "{}, packet {}", vector.text("name"), i + 1);
                packets += 1;
            }
        }
        (vectors.len(), packets)
    }

    /// RFC 2697 §2, §3.
    #[test]
    fn srtcm_as_derived_by_hand() {
        let done = hold(include_str!("../../../validation/meters/srtcm.toml"), |v| {
            let (cbs, ebs) = (v.depth("cbs"), v.depth("ebs"));
            let p =
                srtcm::Params { cir: Some(v.rate("cir")), cbs, ebs, mode: v.mode(), action: Action::Mark };
            AnyMarker::SrTcm(Box::new(p.build(&CONTEXT)))
        });
        assert_eq!(done, (21, 74));
    }

    /// RFC 2698 §2, §3.
    #[test]
    fn trtcm_as_derived_by_hand() {
        let done = hold(include_str!("../../../validation/meters/trtcm.toml"), |v| {
            let (cir, pir) = (Some(v.rate("cir")), v.rate("pir"));
            let p = trtcm::Params {
                cir,
                pir,
                cbs: v.depth("cbs"),
                pbs: v.depth("pbs"),
                mode: v.mode(),
                action: Action::Mark,
            };
            AnyMarker::TrTcm(Box::new(p.build(&CONTEXT)))
        });
        assert_eq!(done, (18, 66));
    }

    /// RFC 4115 §1, §3.
    #[test]
    fn rfc4115_as_derived_by_hand() {
        let done = hold(include_str!("../../../validation/meters/rfc4115.toml"), |v| {
            let prose =
                v.0.contains_key("boundary") && v.text("boundary") == rfc4115::Boundary::MoreThan.word();
            let p = rfc4115::Params {
                cir: Some(v.rate("cir")),
                eir: v.rate("eir"),
                cbs: v.depth("cbs"),
                ebs: v.depth("ebs"),
                mode: v.mode(),
                boundary: if prose { rfc4115::Boundary::MoreThan } else { rfc4115::Boundary::AtLeast },
                action: Action::Mark,
            };
            AnyMarker::Rfc4115(Box::new(p.build(&CONTEXT)))
        });
        assert_eq!(done, (16, 65));
    }
}

mod ns2 {
    //! Disciplines against ns-2.35: every arrival at a bottleneck of the real thing, and whether it dropped it.
    //!
    //! Each `golden/ns2-*.txt` is one queue's life in a run of the script in its first lines (`sed -n 's/^# //p' FILE | ns
    //! /dev/stdin`). RED and RIO: `+` joined, `x` dropped,
    //! `-` left (`I`, `i`, `O`, `o` by colour for RIO), `~s` the link has been idle for s seconds; packets are of 1040 B, ns-2's
    //! mean_pktsize_ is 1000 B. PI, REM and FQ: microseconds since the last event, what happened (`+`, `x`, `-`), and the flow's number;
    //! a flow's first packet is a SYN of 40 B, the others have one size. Links are 1.5 Mbit/s. TCP itself is not replayed, only what it sent.

    use inprofile_core::params::{Context, Default as Fallback, Value, Values};
    use inprofile_core::prelude::*;
    use inprofile_core::queue::fifo::{Fifo, Stamped};
    use inprofile_core::registry::{AnyAqm, Registry};

    /// What happened, without the script.
    fn events(golden: &str) -> impl Iterator<Item = &str> {
        golden.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace)
    }

    fn packets(n: f64) -> Value {
        Value::Backlog(Backlog::Packets(n))
    }

    fn thresholds(min_th: f64, max_th: f64, max_p: f64) -> Vec<(&'static str, Value)> {
        vec![("min_th", packets(min_th)), ("max_th", packets(max_th)), ("max_p", Value::Number(max_p))]
    }

    /// With these settings, and the defaults of all others.
    fn build(name: &str, packet: u64, own: Vec<(&'static str, Value)>) -> AnyAqm {
        let context =
            Context { link_rate: Some(Rate(1_500_000)), contract: None, packet: Bytes(packet), limit: None };
        let registry = Registry::default();
        let entry = registry.aqms.iter().find(|e| e.name == name).expect("a registered discipline");
        let given = |name| own.iter().find(|(n, _)| *n == name).map(|(n, v)| (*n, v.clone()));
        let all = entry.fields.iter().filter_map(|f| {
            given(f.name).or_else(|| match f.default {
                Fallback::Value(value) => Some((f.name, value())),
                _ => None,
            })
        });
        let values = Values(all.collect());
        (entry.check)(&values, &context).expect("parameters that go together");
        (entry.build)(&values, &context)
    }

    fn red(name: &str, mut own: Vec<(&'static str, Value)>) -> AnyAqm {
        own.extend([("mean_packet", Value::Bytes(Bytes(1000))), ("variant", Value::Choice("ns2"))]);
        build(name, 1040, own)
    }

    /// The same life with our verdicts. TCP agents take two numbers each off the stream before the first packet.
    fn relive(golden: &str, limit: f64, mut aqm: AnyAqm, draws: u32) -> String {
        let mut rng = inprofile_core::ns2::stream(1);
        for _ in 0..draws {
            rng.uniform();
        }
        let mut queue = Fifo::new(Backlog::Packets(limit));
        let mut now = Time::ZERO;
        let mut ours = String::new();
        for word in events(golden) {
            if let Some(idle) = word.strip_prefix('~') {
                queue.went_idle(now);
                now += Duration::from_secs(idle.parse().expect("seconds"));
                ours.extend([' ', '~']);
                ours.push_str(idle);
                ours.push(' ');
                continue;
            }
            for event in word.chars() {
                if event == '-' {
                    ours.push(if queue.pop().is_some() { '-' } else { '?' });
                    continue;
                }
                let colour = if matches!(event, 'O' | 'o') { Colour::OUT } else { Colour::IN };
                let packet = Packet { size: 1040, colour, ..Packet::default() };
                let verdict = queue.arrive(
                    now,
                    &packet,
                    Stamped { packet, since: now },
                    &mut aqm,
                    &mut rng,
                    &mut Silent,
                );
                let (joined, dropped) = match event {
                    '+' | 'x' => ('+', 'x'),
                    'O' | 'o' => ('O', 'o'),
                    _ => ('I', 'i'),
                };
                ours.push(if verdict == Admission::Admit { joined } else { dropped });
            }
        }
        ours
    }

    fn same(golden: &str, limit: f64, aqm: AnyAqm, draws: u32) {
        let ours = relive(golden, limit, aqm, draws);
        let [ours, theirs] = [&ours, golden].map(|all| events(all).collect::<String>());
        let at = ours.bytes().zip(theirs.bytes()).position(|(a, b)| a != b);
        if let Some(at) = at {
            let from = at.saturating_sub(60);
            panic!("event {at}:\n ours {}\nns-2 {}", &ours[from..at + 20], &theirs[from..at + 20]);
        }
        assert_eq!(ours.len(), theirs.len());
    }

    #[test]
    fn red_that_waits_is_ns2s() {
        let mut own = thresholds(5.0, 15.0, 0.02);
        own.extend([
            ("w_q", Value::Number(0.002)),
            ("gentle", Value::Flag(false)),
            ("wait", Value::Flag(true)),
        ]);
        same(include_str!("golden/ns2-red.txt"), 25.0, red("red", own), 4);
    }

    #[test]
    fn gentle_red_that_does_not_wait_is_ns2s() {
        let mut own = thresholds(3.0, 9.0, 0.1);
        own.extend([
            ("w_q", Value::Number(0.01)),
            ("gentle", Value::Flag(true)),
            ("wait", Value::Flag(false)),
        ]);
        same(include_str!("golden/ns2-red-gentle.txt"), 25.0, red("red", own), 12);
    }

    #[test]
    fn rio_with_the_fault_in_its_averages_is_ns2s() {
        let own = vec![
            ("in", Value::Group(Values(thresholds(4.0, 12.0, 0.05)))),
            ("out", Value::Group(Values(thresholds(2.0, 6.0, 0.2)))),
            ("w_q", Value::Number(0.05)),
            ("gentle", Value::Flag(false)),
            ("wait", Value::Flag(true)),
            ("avg_update", Value::Choice("ns2")),
            ("count", Value::Choice("own")),
            ("watch", Value::Flag(false)),
        ];
        same(include_str!("golden/ns2-rio.txt"), 20.0, red("rio", own), 12);
    }

    /// The same life with our verdicts, and with our choice of the packet that leaves. Each of two TCP agents has taken two
    /// numbers off the stream before the first packet.
    fn same_order(golden: &str, limit: f64, sizes: [u32; 2], mut aqm: AnyAqm) {
        let mut rng = inprofile_core::ns2::stream(1);
        for _ in 0..4 {
            rng.uniform();
        }
        let mut queue = Fifo::before(Backlog::Packets(limit), &aqm);
        let mut outbox = Outbox::default();
        let mut ticks = aqm.tick(Time::ZERO, &mut outbox);
        let (mut now, mut begun) = (Time::ZERO, [false; 2]);
        for (i, word) in events(golden).enumerate() {
            let at = word.find(['+', 'x', '-']).expect("an event");
            let (since, flow) =
                (word[..at].parse().expect("microseconds"), word[at + 1..].parse().expect("a flow"));
            now += Duration::from_micros(since);
            while let Some(due) = ticks.filter(|due| *due <= now) {
                ticks = aqm.tick(due, &mut outbox);
            }
            let ours = if word[at..].starts_with('-') {
                let left =
                    queue.depart(now, |p: &Stamped| p.packet, &mut aqm, &mut rng, &mut Silent, |_, _| ());
                left.map_or_else(|| "nothing leaves".to_owned(), |p| format!("-{}", p.flow.0))
            } else {
                let size = if std::mem::replace(&mut begun[flow as usize], true) {
                    sizes[flow as usize]
                } else {
                    40
                };
                let packet = Packet { flow: FlowId(flow), size, ..Packet::default() };
                let item = Stamped { packet, since: now };
                let verdict = queue.arrive(now, &packet, item, &mut aqm, &mut rng, &mut Silent);
                format!("{}{flow}", if verdict == Admission::Admit { '+' } else { 'x' })
            };
            assert_eq!(ours, word[at..], "event {i}, at {} s", now.secs());
        }
    }

    #[test]
    fn pi_is_ns2s() {
        let own = vec![
            ("q_ref", packets(5.0)),
            ("a", Value::Number(0.002)),
            ("b", Value::Number(0.0018)),
            ("w", Value::Number(97.3)),
            ("variant", Value::Choice("ns2")),
        ];
        same_order(include_str!("golden/ns2-pi.txt"), 12.0, [1040, 1040], build("pi", 1000, own));
    }

    #[test]
    fn rem_is_ns2s() {
        let own = vec![
            ("b_star", packets(4.0)),
            ("gamma", Value::Number(0.02)),
            ("phi", Value::Number(1.02)),
            ("in_weight", Value::Number(0.5)),
            ("t_update", Value::Duration(Duration::from_micros(13_700))),
            ("variant", Value::Choice("ns2")),
        ];
        same_order(include_str!("golden/ns2-rem.txt"), 12.0, [1040, 1040], build("rem", 1000, own));
    }

    #[test]
    fn fq_is_ns2s() {
        let own = vec![("flow_limit", Value::Count(6))];
        same_order(include_str!("golden/ns2-fq.txt"), 1e6, [1040, 440], build("ns2_fq", 1000, own));
    }
}
