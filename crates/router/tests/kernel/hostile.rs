//! Strategies, floods and full maps: what strangers do to the kernel's path on purpose.

use aya::maps::{HashMap, Map};
use inprofile_core::units::Time;

use crate::frames::{Frame, Ip, Wrap, control_frames};
use crate::tried::{Tried, config, permitted};

mod enemies {
    //! The strategies of the attacks' search against the kernel's datapath: what leaves is held against what was bought by the same oracles.

    use inprofile_core::rng::Rng;
    use inprofile_core::units::{Duration, PS_PER_S};
    use inprofile_router::config::{self, Config};
    use inprofile_router::router;

    use super::*;
    use crate::evolve;
    use crate::leaky_bucket::LeakyBucket;
    use crate::strategy::*;
    use crate::tried::can_be_tried;

    /// Strategies, in one load of the programs: each but the first takes over by a reload, after a minute of silence.
    const STRATEGIES: u64 = 60;
    const MINUTE: Duration = Duration(60 * PS_PER_S);
    const DAY: Duration = Duration(86_400 * PS_PER_S);
    const START: Time = Time(1_000_000);

    fn parsed(text: &str) -> Config {
        config::parse(text.as_bytes(), "enemy.toml", &router::registry())
            .unwrap_or_else(|p| panic!("{p:#?}\n{text}"))
            .0
    }

    /// A strategy from this moment on; until when, what it got, and frames that are too long to be tried.
    fn play(kernel: &mut Tried, bytes: &[u8], start: Time) -> (Time, Got, u64) {
        let mut genes = Genes(bytes, 0);
        // Nothing is shaped here.
        let who = [Who::Prefix, Who::Policed, Who::Port][genes.next(3) as usize];
        let contract = CONTRACTS[genes.next(4) as usize];
        let meter = genes.next(4) as usize;
        let (reload, every) = (genes.next(8), 10 + genes.next(100));
        let how = How { ethernet: genes.next(2) == 1, drops_unread: genes.next(2) == 1, kernel: true };
        let head = genes.1;
        let mut rng = Rng::for_component(
            bytes.iter().fold(7, |all, b| all * 31 % 1_000_003 + u64::from(*b)),
            "attacker",
        );
        let text = |n: u64| match reload {
            0 => Some(file(who, contract, meter, how, DEPTH, "alice")),
            1 => Some(file(who, contract, meter, how, DEPTH + DEEPER * (n % 2), "alice")),
            2 => Some(file(who, contract, meter, how, DEPTH, ["alice", "eve"][(n % 2) as usize])),
            _ => None,
        };
        kernel
            .maps
            .apply(&parsed(&file(who, contract, meter, how, DEPTH, "alice")), start.0 / 1_000)
            .unwrap();
        // Who is new begins with empty buckets, and has them full by then.
        let (mut now, mut sent, mut untried) = (start + MINUTE, Vec::<Sent>::new(), 0);
        let began = now;
        let (mut bucket, mut bobs_next) = (LeakyBucket::new(contract), now);
        let mut arrive = |kernel: &mut Tried, is: Sent, frame: &mut Frame| {
            stamp(frame, sent.len() as u64);
            if !can_be_tried(&frame.0) {
                untried += 1;
                return false;
            }
            let left = kernel.arrive(is.at, 0, &frame.0).map(Frame);
            let shows = is.plain || how.drops_unread && !is.control;
            let left = left.map(|f| (is.at, if shows { f.dscp() } else { None }));
            sent.push(Sent { left, ..is });
            true
        };
        for n in 0..FRAMES / 2 {
            let mut his = Genes(bytes, head + 14 * (n % 3) as usize);
            let (mut frame, is) = make(&mut his, who, n, &mut rng);
            let full = is.bytes * 8 * PS_PER_S / contract;
            let short = bucket.until(is.bytes, DEPTH).since(now).0;
            // The kernel's clock counts nanoseconds.
            now = Time((now.0 + gap(&mut his, n, full, short, &mut rng)).div_ceil(1_000) * 1_000);
            let bob = Sent {
                at: now,
                bytes: 1_000,
                bobs: true,
                control: false,
                his: false,
                plain: true,
                left: None,
            };
            for _ in 0..4 {
                if !people_have_circuits(who) || bobs_next >= now {
                    break;
                }
                let mut frame =
                    Ip { from: 2, bytes: 1_000, wraps: vec![Wrap::Tag(0x8100, 200)], ..Ip::default() }
                        .frame();
                arrive(kernel, Sent { at: bobs_next, ..bob }, &mut frame);
                bobs_next += Duration((1_000 * 8 * PS_PER_S / (contract / 2)).div_ceil(1_000) * 1_000);
            }
            bobs_next = bobs_next.max(now);
            if n % every == every - 1
                && let Some(text) = text(n / every)
            {
                kernel.maps.apply(&parsed(&text), now.0 / 1_000).unwrap();
            }
            let fits = !is.control && bucket.fits(now, is.bytes, DEPTH);
            if arrive(kernel, Sent { at: now, ..is }, &mut frame) && fits {
                bucket.see(now, is.bytes);
            }
        }
        (
            now,
            judge(
                who,
                how,
                (contract, meter, if reload == 1 { DEEPER } else { 0 }),
                &sent,
                now.since(began).secs(),
                0.0,
                0,
            ),
            untried,
        )
    }

    /// No strategy gets anything that was not bought, and none costs an honest neighbour a packet or its colour.
    #[test]
    fn no_strategy_cheats_the_kernel() {
        if !permitted() {
            return;
        }
        let how = How { ethernet: false, drops_unread: false, kernel: true };
        let fresh = || Tried::new(&parsed(&file(Who::Prefix, CONTRACTS[0], 0, how, DEPTH, "alice")));
        let (mut kernel, mut now, mut untried) = (fresh(), START, 0);
        evolve::search(STRATEGIES, 1e-6, |genes| {
            // Time is counted in picoseconds, of which 64 bits hold 213 days.
            if now > Time(100 * DAY.0) {
                (kernel, now) = (fresh(), START);
            }
            let (until, got, long) = play(&mut kernel, genes, now);
            (now, untried) = (until, untried + long);
            got
        });
        println!("  {untried} frames were too long to be tried");
    }
}

mod floods {
    //! Floods of new sources: each frame of another one. What is kept of them has its room, nobody's contract suffers, and a frame costs what
    //! it costs from one source.

    use aya::maps::Array;

    use super::*;

    const FRAMES: u64 = 12_000;
    /// Alice is among the prefixes; Bob has a VLAN; Carol a port, so that fragments are remembered.
    const FILE: &str = r#"
frames.control = { rate = "64 kbit/s", burst = "9000 B" }
[upstream]
[[upstream.customers]]
name = "alice"
prefix = "10.0.0.1"
contract = "8 Mbit/s"
marker = { kind = "token_bucket", depth = "9000 B" }
[[upstream.customers]]
name = "bob"
vlan = 5
contract = "8 Mbit/s"
marker = { kind = "token_bucket", depth = "9000 B" }
[[upstream.customers]]
name = "carol"
prefix = "10.0.0.2"
port = 53
contract = "8 Mbit/s"
marker = { kind = "token_bucket", depth = "9000 B" }
[[upstream.customers]]
name = "dave"
prefix = "12.0.0.0/8"
port = 53
contract = "8 Mbit/s"
marker = { kind = "token_bucket", depth = "9000 B" }
"#;

    /// A packet, a first fragment, one of a prefix that names ports, or an ARP request of the n-th source.
    fn of_source(kind: usize, n: u64) -> Vec<u8> {
        let address = (n as u32).to_be_bytes();
        let mut frame = match kind {
            0 => Ip { bytes: 100, from: 77, ..Ip::default() }.frame(),
            1 | 2 => Ip { bytes: 100, from: 77, fragment: 0x2000, ..Ip::default() }.frame(),
            _ => control_frames(20)[0].clone(),
        };
        frame.0[8..12].copy_from_slice(&address);
        if kind < 3 {
            // Nobody has bought anything in 11.0.0.0/8; Dave's port is another.
            let of = [11, 11, 12][kind];
            frame.0[26..30].copy_from_slice(&(of << 24 | n as u32).to_be_bytes());
            frame.0[18..20].copy_from_slice(&address[2..]);
        }
        frame.0
    }

    /// How many addresses are remembered, and how many packets whose fragments are under way.
    fn remembered(kernel: &mut Tried) -> (usize, usize) {
        let map = Map::LruHashMap(kernel.map("addresses"));
        let addresses: HashMap<_, [u8; 12], [u8; 144]> = (&map).try_into().unwrap();
        let map = Map::Array(kernel.map("fragments"));
        let sets: Array<_, [u64; 24]> = (&map).try_into().unwrap();
        let packets = sets.iter().flat_map(|set| set.unwrap()[8..16].to_vec()).filter(|hash| *hash != 0);
        (addresses.keys().map(Result::unwrap).count(), packets.count())
    }

    /// Nanoseconds a frame, and how many of the flood left; Alice and Bob are there too, and lose nothing.
    fn flood(kernel: &mut Tried, kind: usize, many: bool, now: &mut u64) -> (f64, u64) {
        let alice = Ip { bytes: 1_000, ..Ip::default() }.frame().0;
        let Frame(bob) = Ip { bytes: 60, wraps: vec![Wrap::Tag(0x8100, 5)], ..Ip::default() }.frame();
        let mut bobs_arp = control_frames(20)[0].clone().0;
        bobs_arp.splice(12..12, bob[12..16].iter().copied());
        let (mut left, mut spent, mut seen) = (0, 0, 0);
        for n in 0..FRAMES {
            *now += 10_000;
            if n % 100 == 0 {
                let out = kernel.arrive(Time(*now * 1_000), 0, &alice).expect("hers is not dropped");
                assert_eq!(out[15] >> 2, 10, "she sends what she bought");
            }
            if n % (FRAMES / 2) == FRAMES / 4 {
                assert!(
                    kernel.arrive(Time(*now * 1_000), 0, &bobs_arp).is_some(),
                    "his VLAN tells who he is"
                );
            }
            let frame = of_source(kind, if many { n } else { 0 });
            let before = kernel.spent(0);
            left += u64::from(kernel.arrive(Time(*now * 1_000), 0, &frame).is_some());
            let after = kernel.spent(0);
            (spent, seen) = (spent + after.0 - before.0, seen + after.1 - before.1);
        }
        assert_eq!(seen, FRAMES);
        (spent as f64 / seen as f64, left)
    }

    #[test]
    fn a_flood_of_new_sources_costs_nobody_anything() {
        if !permitted() {
            return;
        }
        let _counted = aya::sys::enable_stats(aya::sys::Stats::RunTime).unwrap();
        let mut kernel = Tried::new(&config(FILE));
        let mut now = 10_000_000_000;
        let kinds = ["packets", "first fragments", "the same, by port", "ARP requests"];
        for (kind, what) in kinds.into_iter().enumerate() {
            let (one, _) = flood(&mut kernel, kind, false, &mut now);
            now += 10_000_000_000;
            let (many, left) = flood(&mut kernel, kind, true, &mut now);
            now += 10_000_000_000;
            println!("{what:<16} {one:.0} ns from one source, {many:.0} ns of new ones: {:.2}", many / one);
            // Not a measurement: a machine at work may interrupt it.
            assert!(many < 4.0 * one + 1_000.0, "{what}: {many} ns, and from one source {one} ns");
            if kind < 3 {
                assert_eq!(left, FRAMES);
            } else {
                // All addresses have one rate, half of it beside VLANs, and its burst twice for any kind and once for what each has kept.
                let frame = of_source(kind, 0).len() as u64 - 14;
                let bought = 4 * 9_000 + 32_000 * FRAMES * 10_000 / 8_000_000_000;
                assert!(left > 0 && left * frame <= bought, "{left} frames of {frame} B, of {bought} B");
            }
        }
        let (addresses, fragments) = remembered(&mut kernel);
        println!("{addresses} addresses and {fragments} packets of fragments remembered");
        // Those whose frames were let through, and those whose ports may tell whose they are.
        assert!(addresses > 10 && addresses < 400, "{addresses}");
        assert!(fragments > 7_500 && fragments <= 8_192, "{fragments}");
    }
}

mod full {
    //! Maps that are full, and reloads that bring more than there is room for: refused with a sentence, and what was in force stays; or counted.

    use aya::maps::MapData;
    use inprofile_router::kernel::places;

    use super::*;

    /// BPF_NOEXIST, so that what is there stays.
    const NEW: u64 = 1;

    fn customer(name: &str, who: &str) -> String {
        format!(
            "[[upstream.customers]]\nname = \"{name}\"\n{who}\ncontract = \"8 kbit/s\"\nmarker = {{ kind = \"token_bucket\", depth = \"9000 B\" }}\n"
        )
    }

    fn file(customers: &[String]) -> String {
        format!(
            "frames.control = {{ rate = \"64 kbit/s\", burst = \"9000 B\" }}\n[upstream]\n{}",
            customers.concat()
        )
    }

    /// The map with entries of nobody's until no more go in.
    fn fill<const KEY: usize, const VALUE: usize>(
        kernel: &mut Tried,
        name: &str,
        mark: [u8; 4],
    ) -> Vec<[u8; KEY]>
    where
        [u8; KEY]: aya::Pod,
        [u8; VALUE]: aya::Pod,
    {
        let data = kernel.map(name);
        let most = data.info().unwrap().max_entries();
        let mut map = Map::HashMap(data);
        let mut map: HashMap<&mut MapData, [u8; KEY], [u8; VALUE]> = (&mut map).try_into().unwrap();
        let mut filled = Vec::new();
        for n in 0..=most {
            let mut key = [0xee; KEY];
            key[..4].copy_from_slice(&mark);
            key[KEY - 4..].copy_from_slice(&n.to_ne_bytes());
            if map.insert(key, [0; VALUE], NEW).is_err() {
                return filled;
            }
            filled.push(key);
        }
        panic!("it takes more than {most}");
    }

    fn empty<const KEY: usize, const VALUE: usize>(kernel: &mut Tried, name: &str, keys: &[[u8; KEY]])
    where
        [u8; KEY]: aya::Pod,
        [u8; VALUE]: aya::Pod,
    {
        let mut map = Map::HashMap(kernel.map(name));
        let mut map: HashMap<&mut MapData, [u8; KEY], [u8; VALUE]> = (&mut map).try_into().unwrap();
        keys.iter().for_each(|key| map.remove(key).unwrap());
    }

    /// A reload that finds no room for its circuits changes nothing, and leaves no account behind that would be found by its name.
    #[test]
    fn a_reload_into_a_full_map_changes_nothing() {
        if !permitted() {
            return;
        }
        let alice = customer("alice", "prefix = \"10.0.0.1\"");
        let mut kernel = Tried::new(&config(&file(std::slice::from_ref(&alice))));
        let packet = Ip { bytes: 1_000, ..Ip::default() }.frame().0;
        let green = |kernel: &mut Tried, now: u64, packets: usize| {
            let left =
                (0..packets).map(|_| kernel.arrive(Time(now), 0, &packet).expect("hers are not dropped"));
            left.filter(|f| f[15] >> 2 == 10).count()
        };
        assert_eq!(green(&mut kernel, 1_000_000, 5), 5);
        let bank = kernel.maps.state().unwrap().bank;
        // Of the bank in force, so that no reload sweeps them out.
        let filled = fill::<12, 8>(&mut kernel, "circuits", (bank * 2).to_ne_bytes());
        let with_bob = config(&file(&[alice, customer("bob", "vlan = 5")]));
        let refused = kernel.maps.apply(&with_bob, 2_000).unwrap_err();
        assert!(
            refused.contains("map `circuits`") && refused.contains("it is full: give fewer"),
            "{refused}"
        );
        assert_eq!(kernel.maps.state().unwrap().bank, bank);
        assert_eq!(green(&mut kernel, 2_000_000, 10), 4, "her bucket is as it was");
        let bobs = Ip { from: 3, bytes: 1_000, wraps: vec![Wrap::Tag(0x8100, 5)], ..Ip::default() }.frame().0;
        assert_eq!(kernel.arrive(Time(2_000_000), 0, &bobs).map(|f| f[19] >> 2), Some(0), "nobody's");
        assert_eq!(kernel.names(0).iter().filter(|n| n.contains("bob")).count(), 0);
        empty::<12, 8>(&mut kernel, "circuits", &filled);
        kernel.maps.apply(&with_bob, 3_000).unwrap();
        // A bucket of his own, which begins empty.
        assert_eq!(kernel.arrive(Time(3_000_000), 0, &bobs).map(|f| f[19] >> 2), Some(12));
        assert_eq!(kernel.names(0).iter().filter(|n| n.contains("bob")).count(), 1);
    }

    /// More customers than there are places are refused by a reload, with what to do.
    #[test]
    fn a_reload_with_too_many_customers_changes_nothing() {
        if !permitted() {
            return;
        }
        let many: Vec<_> = (0..4_096u32)
            .map(|n| customer(&format!("c{n}"), &format!("prefix = \"10.1.{}.{}\"", n / 256, n % 256)))
            .collect();
        let mut kernel = Tried::new(&config(&file(&many[..1])));
        let bank = kernel.maps.state().unwrap().bank;
        let refused = kernel.maps.apply(&config(&file(&many)), 1_000).unwrap_err();
        assert!(
            refused.contains("there is room for 4096") && refused.contains("inprofiled release"),
            "{refused}"
        );
        assert_eq!(kernel.maps.state().unwrap().bank, bank);
        kernel.maps.apply(&config(&file(&many[..4_000])), 2_000).unwrap();
    }

    /// Customers' control frames of whom there is no room for a bucket are dropped and counted as excess; their packets go on.
    #[test]
    fn control_frames_without_a_bucket_are_counted() {
        if !permitted() {
            return;
        }
        let mut kernel = Tried::new(&config(&file(&[customer("bob", "vlan = 5")])));
        let filled = fill::<8, 24>(&mut kernel, "senders", 0xffff_u32.to_ne_bytes());
        let packet = Ip { bytes: 1_000, wraps: vec![Wrap::Tag(0x8100, 5)], ..Ip::default() }.frame().0;
        let mut arp = control_frames(20)[0].clone().0;
        arp.splice(12..12, packet[12..16].iter().copied());
        assert_eq!(kernel.arrive(Time(1_000_000), 0, &arp), None);
        let totals = kernel.maps.totals(0).unwrap();
        assert_eq!((totals.came, totals.policed, totals.excess[0]), (1, 1, 1));
        assert!(kernel.arrive(Time(1_000_000), 0, &packet).is_some());
        empty::<8, 24>(&mut kernel, "senders", &filled);
        assert!(kernel.arrive(Time(1_000_000), 0, &arp).is_some(), "there is room again");
        let place = kernel.maps.places(0).get(&places::of_customer("bob")).unwrap();
        assert_eq!(kernel.maps.account(0, place).unwrap().came.packets, 1);
    }
}
