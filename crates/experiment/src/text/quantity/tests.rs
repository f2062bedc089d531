//! Quantities: the exact value of each text, and the remedy for each that is refused.

use super::*;
use proptest::prelude::*;

#[test]
fn rates_times_and_sizes_are_exact() {
    assert_eq!(rate("1.2 Mbit/s"), Ok(Rate(1_200_000)));
    assert_eq!(rate("1200 kbit/s"), Ok(Rate(1_200_000)));
    assert_eq!(rate("1.2e6 bit/s"), Ok(Rate(1_200_000)));
    assert_eq!(rate("  10Gbit/s "), Ok(Rate(10_000_000_000)));
    assert_eq!(duration("26.4 ms"), Ok(Duration(26_400_000_000)));
    assert_eq!(duration("0.1 s"), Ok(Duration(100_000_000_000)));
    assert_eq!(duration("100 µs"), duration("100 μs"));
    assert_eq!(duration("0.000000000001 s"), Ok(Duration(1)));
    // In floating point this one loses its last picosecond.
    assert_eq!(duration("999999.999999999999 s"), Ok(Duration(999_999_999_999_999_999)));
    assert_eq!(bytes("1.5 KiB"), Ok(Bytes(1536)));
    assert_eq!(bytes("1 kB"), Ok(Bytes(1000)));
    assert_eq!(backlog("2.5 packets"), Ok(Backlog::Packets(2.5)));
    assert_eq!(backlog("1 packet"), Ok(Backlog::Packets(1.0)));
    assert_eq!(backlog("8 kB"), Ok(Backlog::Bytes(8000.0)));
}

/// Products in floating point as JSON and Python print them: 1.15 * 25, 0.1 + 0.2, 1.1 * 1.1e6, 3 * 1.1.
#[test]
fn whole_numbers_but_for_a_floats_error_are_taken() {
    assert_eq!(rate("28.749999999999996 Mbit/s"), Ok(Rate(28_750_000)));
    assert_eq!(duration("0.30000000000000004 s"), Ok(Duration(300_000_000_000)));
    assert_eq!(rate("1210000.0000000002 bit/s"), Ok(Rate(1_210_000)));
    assert_eq!(rate("3.3000000000000003 Gbit/s"), Ok(Rate(3_300_000_000)));
    assert_eq!(bytes("1499.9999999999998 B"), Ok(Bytes(1500)));
    // What differs by more was meant.
    for text in
        ["28.7499999999 Mbit/s", "28749999.99999996 bit/s", "0.9999999999 bit/s", "3.3333333333333335 Mbit/s"]
    {
        assert!(rate(text).unwrap_err().problem.contains("whole number of bit/s"), "{text}");
    }
    assert!(duration("0.1234567890123456 s").is_err());
    // Exact digits stay what they are.
    assert_eq!(duration("999999.999999999999 s"), Ok(Duration(999_999_999_999_999_999)));
}

#[test]
fn ranges_share_the_unit_of_their_end() {
    assert_eq!(span("26..32 ms"), Ok((Duration::from_millis(26), Duration::from_millis(32))));
    assert_eq!(span("26.4 .. 34.0 ms"), Ok((Duration(26_400_000_000), Duration::from_millis(34))));
    assert_eq!(span("500 us..1 ms"), Ok((Duration::from_micros(500), Duration::from_millis(1))));
    assert!(span("32..26 ms").unwrap_err().problem.contains("before its start"));
    assert!(span("0..1").unwrap_err().problem.contains("needs a unit"));
    for text in ["..", "1..", "..1 s", "1...2 s", "a..b"] {
        assert!(span(text).is_err(), "{text}");
    }
}

#[test]
fn other_spellings_are_refused_with_the_right_one() {
    for (text, remedy) in [
        ("1.2 Mbps", "\"1.2 Mbit/s\""),
        ("1.2 mbit/s", "\"1.2 Mbit/s\""),
        ("1.2 Mb/s", "\"1.2 Mbit/s\""),
        ("64 Kbit/s", "\"64 kbit/s\""),
        ("64 bps", "\"64 bit/s\""),
        ("1.2", "\"1.2 Mbit/s\""),
        ("1 MB/s", "multiply by eight"),
    ] {
        let wrong = rate(text).unwrap_err();
        assert!(wrong.remedy.contains(remedy), "{text}: {wrong:?}");
    }
    assert!(duration("60").unwrap_err().remedy.contains("\"60 ms\""));
    assert!(moment("60").unwrap_err().remedy.contains("\"60 s\""));
    assert!(duration("5 sec").unwrap_err().remedy.contains("\"5 s\""));
    assert!(duration("5 msec").unwrap_err().remedy.contains("\"5 ms\""));
    assert!(duration("5 milliseconds").unwrap_err().remedy.contains("\"5 ms\""));
    assert!(bytes("5 KB").unwrap_err().remedy.contains("\"5 kB\""));
    assert!(bytes("5 bytes").unwrap_err().remedy.contains("\"5 B\""));
    assert!(backlog("5 pkts").unwrap_err().remedy.contains("\"5 packets\""));
    assert!(rate("5 ms").unwrap_err().problem.contains("a unit of a time"));
    assert!(duration("5 Mbit/s").unwrap_err().problem.contains("a unit of a rate"));
}

#[test]
fn what_is_no_quantity_is_refused() {
    for text in [
        "",
        " ",
        "fast",
        "-1 Mbit/s",
        "1,200 kbit/s",
        "1 200 kbit/s",
        "1_200 kbit/s",
        "NaN bit/s",
        "inf Mbit/s",
        "1.2.3 Mbit/s",
        "1e Mbit/s",
        "0.5 bit/s",
        "1e30 bit/s",
        "1e99999999999 bit/s",
        "1-2 bit/s",
        ".",
        "+",
        "1e-99 bit/s",
        "99999 Gbit/s",
    ] {
        assert!(rate(text).is_err(), "{text:?} was read as {:?}", rate(text));
    }
    assert!(duration("0.5 ps").unwrap_err().problem.contains("whole number of ps"));
    assert!(duration("1e7 s").unwrap_err().remedy.contains("1000000 s"));
    assert!(backlog("1e400 packets").is_err());
}

proptest! {
    #[test]
    fn what_core_prints_reads_back(bits in 0u64..=FASTEST.0, ps in 0u64..=LONGEST.0) {
        prop_assert_eq!(rate(&Rate(bits).to_string()), Ok(Rate(bits)));
        prop_assert_eq!(duration(&Duration(ps).to_string()), Ok(Duration(ps)));
    }

    #[test]
    fn what_a_float_prints_reads_as_what_was_computed(kbits in 1u64..10_000_000, factor in 1u32..1000) {
        // kbits · factor / 100 in floating point, where that is whole in bit/s: always, by 1000 / 100.
        let computed = kbits as f64 / 1000.0 * (f64::from(factor) / 100.0);
        prop_assert_eq!(rate(&format!("{computed} Mbit/s")), Ok(Rate(kbits * u64::from(factor) * 10)));
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,40}", number in "[-+0-9.,eE_ ]{0,30}", unit in "[a-zA-Zµ/ ]{0,8}") {
        for t in [text, format!("{number} {unit}"), format!("{number}..{number} {unit}")] {
            let _ = (rate(&t), duration(&t), bytes(&t), backlog(&t), span(&t));
        }
    }
}
