//! Values that many tables have: names, and DSCPs.

use inprofile_experiment::text::Entry;
use inprofile_experiment::text::problem::Wrong;
use inprofile_live::code_points::Dscp;

/// The longest name of an interface (IFNAMSIZ, less the end).
const LONGEST_INTERFACE: usize = 15;

/// Whether an interface can be called so.
///
/// # Errors
/// That it can't, and what to write.
pub(crate) fn interface_name(name: &str) -> Result<(), Wrong> {
    let odd = |c: char| c.is_whitespace() || c == '/' || c.is_control();
    if name.is_empty() || name.len() > LONGEST_INTERFACE || name.contains(odd) {
        let remedy = format!("write one of those that `ip link` shows, at most {LONGEST_INTERFACE} bytes");
        return Err(Wrong::new("no interface can be called so", remedy));
    }
    Ok(())
}

/// A short name without blanks.
pub(super) fn name(entry: &Entry<'_, '_>, example: &str) -> Option<String> {
    let name = entry.text(example)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        let remedy = format!("write at most 64 letters, digits, \"_\", \"-\" or \".\", such as {example}");
        return entry.wrong(Wrong::new("not a name", remedy));
    }
    Some(name.to_owned())
}

/// A DSCP: a number, or a name in quotes.
pub(super) fn dscp(entry: &Entry<'_, '_>) -> Option<Dscp> {
    let example = "a DSCP such as \"AF11\", \"EF\" or 10";
    match entry.as_text() {
        Some(text) => Dscp::parse(text).or_else(|| {
            entry.wrong(Wrong::new(
                "no such DSCP",
                "write AF11 to AF43, EF, CS0 to CS7, BE, or a number from 0 to 63",
            ))
        }),
        None if entry.is_list() || entry.is_table() => entry.text(example).and(None),
        None => entry.count_in(0..=63).and_then(|n| Dscp::new(n as u8)),
    }
}
