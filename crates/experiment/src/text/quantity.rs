//! Numbers with units, exactly: decimal digits become whole picoseconds, bits per second and bytes
//! without passing through floating point.
//!
//! Prefixes are decimal (k = 1000) but for KiB and MiB, which are powers of two. Units are spelt one
//! way only; other spellings are refused with the right one, because `Mb` and `MB` are eightfold apart.

use inprofile_core::units::{Backlog, Bytes, Duration, PS_PER_S, Rate};

use crate::text::problem::Wrong;

/// The longest time a file may name: 1,000,000 s. Sums of such times stay far inside 64 bits of picoseconds.
pub const LONGEST: Duration = Duration(1_000_000 * PS_PER_S);
/// The greatest rate a file may name: 10 Tbit/s, at which 40 B still take 32 ps.
pub const FASTEST: Rate = Rate(10_000_000_000_000);
/// The greatest size or amount of queue a file may name, in bytes or packets.
pub const LARGEST: u64 = 1_000_000_000_000;

/// A family of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bits per second.
    Rate,
    /// Picoseconds.
    Time,
    /// Picoseconds too, of a run: when something happens, or how long it takes. Without a unit, seconds are meant.
    Moment,
    /// Bytes.
    Size,
    /// Packets, or bytes.
    Backlog,
}

impl Unit {
    /// With its article, in messages.
    #[must_use]
    pub fn noun(self) -> &'static str {
        ["a rate", "a time", "a time", "a size", "an amount of packets or bytes"][self as usize]
    }

    /// Units by name, each so many of the base unit. A backlog in bytes has the units of [`Unit::Size`], see [`parse`].
    fn names(self) -> &'static [(&'static str, u64)] {
        match self {
            Unit::Rate => {
                &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)]
            }
            Unit::Time | Unit::Moment => &[
                ("s", PS_PER_S),
                ("ms", 1_000_000_000),
                ("us", 1_000_000),
                ("µs", 1_000_000), // U+00B5, the micro sign
                ("μs", 1_000_000), // U+03BC, the Greek letter
                ("ns", 1_000),
                ("ps", 1),
            ],
            Unit::Size => &[("B", 1), ("kB", 1_000), ("KiB", 1_024), ("MB", 1_000_000), ("MiB", 1_048_576)],
            Unit::Backlog => &[("packets", 1), ("packet", 1)],
        }
    }

    /// The values allowed, in messages.
    #[must_use]
    pub fn choices(self) -> &'static str {
        match self {
            Unit::Rate => "bit/s, kbit/s, Mbit/s or Gbit/s",
            Unit::Time | Unit::Moment => "s, ms, us, ns or ps",
            Unit::Size => "B, kB, KiB, MB or MiB",
            Unit::Backlog => "packets, B, kB, KiB, MB or MiB",
        }
    }

    /// A well-formed quantity, in messages.
    #[must_use]
    pub fn example(self) -> &'static str {
        ["1.2 Mbit/s", "5 ms", "60 s", "1000 B", "50 packets"][self as usize]
    }

    /// The likeliest unit of a number without one.
    fn usual(self) -> &'static str {
        ["Mbit/s", "ms", "s", "B", "packets"][self as usize]
    }

    /// The likeliest unit of this number without one: 10000 without a unit is not meant in Mbit/s.
    fn likely(self, number: &Decimal<'_>) -> &'static str {
        match self {
            Unit::Rate if number.times_f64(1) >= 10_000.0 => "bit/s",
            _ => self.usual(),
        }
    }

    fn find(self, name: &str) -> Option<u64> {
        self.names().iter().find(|(n, _)| *n == name).map(|(_, f)| *f)
    }

    /// The unit of this family that `text` probably means.
    fn meant(self, text: &str) -> Option<&'static str> {
        let t: String = text.to_lowercase().replace("bits", "bit");
        Some(match self {
            Unit::Rate => match t.as_str() {
                "bps" | "b/s" | "bit" | "bit/s" => "bit/s",
                "kbps" | "kb/s" | "kbit" | "kbit/s" => "kbit/s",
                "mbps" | "mb/s" | "mbit" | "mbit/s" | "m" => "Mbit/s",
                "gbps" | "gb/s" | "gbit" | "gbit/s" | "g" => "Gbit/s",
                _ => return None,
            },
            Unit::Time | Unit::Moment => match t.as_str() {
                "s" | "sec" | "secs" | "second" | "seconds" => "s",
                "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => "ms",
                "us" | "usec" | "micros" | "microsecond" | "microseconds" => "us",
                "ns" | "nsec" | "nanos" | "nanosecond" | "nanoseconds" => "ns",
                _ => return None,
            },
            Unit::Size => match t.as_str() {
                "b" | "byte" | "bytes" | "octets" => "B",
                "kb" | "k" => "kB",
                "kib" => "KiB",
                "mb" | "m" => "MB",
                "mib" => "MiB",
                _ => return None,
            },
            Unit::Backlog => match t.as_str() {
                "p" | "pkt" | "pkts" | "packet" | "packets" | "pck" | "segments" => "packets",
                _ => return Unit::Size.meant(text),
            },
        })
    }
}

/// A decimal number as it was written: `digits` · 10^−`scale`.
struct Decimal<'a> {
    text: &'a str,
    digits: u128,
    scale: u32,
}

/// A number within 2^−50 of itself of a whole one, a few of a double's last places, is that one: what a script computed in floating
/// point and printed, such as 28.749999999999996 Mbit/s for 1.15 · 25. Nobody means such a difference: to write it takes 15 digits.
const FLOAT_ERROR: u32 = 50;

/// More digits than any quantity here needs, and few enough that products fit 128 bits.
const MOST_DIGITS: usize = 24;

impl Decimal<'_> {
    /// So many base units of `factor` each; `None` unless that is a whole number, or one but for [`FLOAT_ERROR`].
    fn times(&self, factor: u64) -> Result<Option<u128>, ()> {
        let product = self.digits.checked_mul(u128::from(factor)).ok_or(())?;
        let divisor = 10u128.pow(self.scale);
        let (below, beyond) = (product / divisor, product % divisor);
        let (nearest, error) =
            if beyond <= divisor / 2 { (below, beyond) } else { (below + 1, divisor - beyond) };
        Ok((error <= product >> FLOAT_ERROR).then_some(nearest))
    }

    /// As a fraction of base units; exact wherever the result is whole.
    fn times_f64(&self, factor: u64) -> f64 {
        match self.times(factor) {
            Ok(Some(whole)) => whole as f64,
            _ => self.text.parse::<f64>().unwrap_or(f64::NAN) * factor as f64,
        }
    }
}

/// Splits `text` into a number and the text of its unit.
fn split(text: &str, unit: Unit) -> Result<(Decimal<'_>, &str), Wrong> {
    let shape = || format!("write a number and its unit, such as \"{}\"", unit.example());
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(Wrong::new("the value is empty", shape()));
    }
    let lower = trimmed.trim_start_matches(['+', '-']).to_lowercase();
    if lower.starts_with("nan") || lower.starts_with("inf") {
        return Err(Wrong::new(format!("{} must be a finite number", unit.noun()), shape()));
    }
    let end = number_end(trimmed);
    let (number, rest) = (trimmed[..end].trim(), trimmed[end..].trim());
    if !number.contains(|c: char| c.is_ascii_digit()) {
        return Err(Wrong::new(format!("{} starts with a number", unit.noun()), shape()));
    }
    if number.contains([',', '_', ' ', '\'']) {
        return Err(Wrong::new(
            "numbers are written without separators and with a decimal point",
            format!("write digits and at most one point, such as \"{}\"", unit.example()),
        ));
    }
    if number.starts_with('-') {
        return Err(Wrong::new(format!("{} can't be negative", unit.noun()), shape()));
    }
    let digits = number.trim_start_matches('+');
    decimal(digits).map(|d| (d, rest)).ok_or_else(|| {
        Wrong::new(format!("\"{}\" is not a number of at most {MOST_DIGITS} digits", clip(number)), shape())
    })
}

/// Where the characters that can belong to a number end, an exponent included.
fn number_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let plain = |b: u8| b.is_ascii_digit() || matches!(b, b'.' | b',' | b'_' | b'+' | b'-' | b'\'');
    let mut i = 0;
    while i < bytes.len() {
        let exponent = i > 0
            && matches!(bytes[i], b'e' | b'E')
            && bytes.get(i + 1).is_some_and(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-'));
        // A blank between digits is a separator too: 1 000 B.
        let gap = bytes[i] == b' ' && bytes.get(i + 1).is_some_and(u8::is_ascii_digit);
        if !(plain(bytes[i]) || exponent || gap) {
            break;
        }
        i += 1;
    }
    i
}

/// Digits with at most one point and an optional exponent.
fn decimal(text: &str) -> Option<Decimal<'_>> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((m, e)) => (m, e.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let all: String = [whole.trim_start_matches('0'), fraction].concat();
    let is_number = mantissa.bytes().any(|b| b.is_ascii_digit()) && all.bytes().all(|b| b.is_ascii_digit());
    if !is_number || all.len() > MOST_DIGITS {
        return None;
    }
    let mut digits: u128 = if all.is_empty() { 0 } else { all.parse().ok()? };
    let mut scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    if scale < 0 {
        let room = scale.unsigned_abs();
        digits =
            if digits == 0 { 0 } else { 10u128.checked_pow(room).and_then(|p| digits.checked_mul(p))? };
        scale = 0;
    }
    // 10^38 is the greatest power of ten in 128 bits.
    (scale <= 38).then_some(Decimal { text, digits, scale: scale.unsigned_abs() })
}

/// Number, factor and name of the unit.
fn parse(text: &str, unit: Unit) -> Result<(Decimal<'_>, u64, &str), Wrong> {
    let (number, name) = split(text, unit)?;
    if let Some(factor) = unit.find(name) {
        return Ok((number, factor, name));
    }
    if unit == Unit::Backlog
        && let Some(factor) = Unit::Size.find(name)
    {
        return Ok((number, factor, name));
    }
    Err(wrong_unit(&number, name, unit))
}

fn wrong_unit(number: &Decimal<'_>, name: &str, unit: Unit) -> Wrong {
    let likely = unit.likely(number);
    let number = number.text;
    let (noun, choices) = (unit.noun(), unit.choices());
    if name.is_empty() {
        let example = format!("\"{number} {likely}\"");
        return Wrong::new(format!("{noun} needs a unit"), format!("write {example} (units: {choices})"));
    }
    let shown = clip(name);
    if unit == Unit::Rate && (name.ends_with("B/s") || name.ends_with("Bps")) {
        return Wrong::new(
            format!("\"{shown}\" counts bytes; a rate counts bits"),
            format!("multiply by eight and write {choices}"),
        );
    }
    if let Some(meant) = unit.meant(name) {
        return Wrong::new(
            format!("\"{shown}\" is not how this unit is written"),
            format!("write \"{number} {meant}\" (units: {choices})"),
        );
    }
    let other =
        [Unit::Rate, Unit::Time, Unit::Size, Unit::Backlog].into_iter().find(|u| u.find(name).is_some());
    let problem = match other {
        Some(other) => format!("\"{shown}\" is a unit of {}, not of {noun}", other.noun()),
        None => format!("\"{shown}\" is not a unit of {noun}"),
    };
    Wrong::new(problem, format!("write a number and one of {choices}, such as \"{}\"", unit.example()))
}

/// At most 40 characters of a text for messages, control characters replaced.
pub(crate) fn clip(text: &str) -> String {
    let shown: String = text.chars().take(40).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if shown.chars().count() < text.chars().take(41).count() { format!("{shown}…") } else { shown }
}

fn whole(text: &str, unit: Unit, base: &str, most: u64, most_text: &str) -> Result<u64, Wrong> {
    let (number, factor, name) = parse(text, unit)?;
    let value = number.times(factor);
    if let Ok(Some(v)) = value
        && v <= u128::from(most)
    {
        return Ok(v as u64);
    }
    match value {
        Ok(None) => Err(Wrong::new(
            format!("{} {name} is not a whole number of {base}", number.text),
            format!("round it to a whole number of {base}"),
        )),
        _ => Err(Wrong::new(
            format!("{} is more than {most_text}", text.trim()),
            format!("write at most \"{most_text}\""),
        )),
    }
}

/// Reads `1.2 Mbit/s`.
///
/// # Errors
/// The fault in the text and its remedy; so in all of this module.
pub fn rate(text: &str) -> Result<Rate, Wrong> {
    whole(text, Unit::Rate, "bit/s", FASTEST.0, "10000 Gbit/s").map(Rate)
}

/// Reads `26.4 ms`.
///
/// # Errors
/// See [`rate`].
pub fn duration(text: &str) -> Result<Duration, Wrong> {
    whole(text, Unit::Time, "ps", LONGEST.0, "1000000 s").map(Duration)
}

/// Reads `60 s`: a time of a run.
///
/// # Errors
/// See [`rate`].
pub fn moment(text: &str) -> Result<Duration, Wrong> {
    whole(text, Unit::Moment, "ps", LONGEST.0, "1000000 s").map(Duration)
}

/// Reads `1000 B`.
///
/// # Errors
/// See [`rate`].
pub fn bytes(text: &str) -> Result<Bytes, Wrong> {
    whole(text, Unit::Size, "B", LARGEST, "1000000 MB").map(Bytes)
}

/// Reads `2.5 packets` or `8 kB`.
///
/// # Errors
/// See [`rate`].
pub fn backlog(text: &str) -> Result<Backlog, Wrong> {
    let (number, factor, name) = parse(text, Unit::Backlog)?;
    let amount = number.times_f64(factor);
    if amount.is_nan() || amount > LARGEST as f64 {
        return Err(Wrong::new(
            format!("{} is more than any queue can hold", text.trim()),
            format!("write at most \"{LARGEST} packets\" or as many bytes"),
        ));
    }
    Ok(if name.starts_with("packet") { Backlog::Packets(amount) } else { Backlog::Bytes(amount) })
}

/// Reads `26..32 ms`: two times, the first in its own unit or in that of the second.
///
/// # Errors
/// See [`rate`]; also if the second is less than the first.
pub fn span(text: &str) -> Result<(Duration, Duration), Wrong> {
    let Some((low, high)) = text.split_once("..") else {
        return Err(Wrong::new("this is not a range", "write two numbers, such as \"26..32 ms\""));
    };
    let (first, unit) = split(low, Unit::Time)?;
    let to = duration(high)?;
    let from = if unit.is_empty() {
        let (_, name) = split(high, Unit::Time)?;
        duration(&format!("{} {name}", first.text))?
    } else {
        duration(low)?
    };
    if from > to {
        return Err(Wrong::new(
            format!("the range ends at {to}, before its start at {from}"),
            "write the smaller time first, such as \"26..32 ms\"",
        ));
    }
    Ok((from, to))
}

#[cfg(test)]
mod tests;
