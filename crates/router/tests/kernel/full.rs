//! Maps that are full, and reloads that bring more than there is room for: refused with a sentence, and what was in force stays; or counted.

use aya::maps::{HashMap, Map, MapData};
use inprofile_core::units::Time;
use inprofile_router::kernel::places;

use crate::frames::{Ip, Wrap, control_frames};
use crate::tried::{Tried, config, permitted};

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
fn fill<const KEY: usize, const VALUE: usize>(kernel: &mut Tried, name: &str, mark: [u8; 4]) -> Vec<[u8; KEY]>
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
        let left = (0..packets).map(|_| kernel.arrive(Time(now), 0, &packet).expect("hers are not dropped"));
        left.filter(|f| f[15] >> 2 == 10).count()
    };
    assert_eq!(green(&mut kernel, 1_000_000, 5), 5);
    let bank = kernel.maps.state().unwrap().bank;
    // Of the bank in force, so that no reload sweeps them out.
    let filled = fill::<12, 8>(&mut kernel, "circuits", (bank * 2).to_ne_bytes());
    let with_bob = config(&file(&[alice, customer("bob", "vlan = 5")]));
    let refused = kernel.maps.apply(&with_bob, 2_000).unwrap_err();
    assert!(refused.contains("map `circuits`") && refused.contains("it is full: give fewer"), "{refused}");
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
