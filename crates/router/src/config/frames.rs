//! `[frames]`: what becomes of frames that can't be metered as somebody's packets.

use inprofile_core::units::{Bytes, Duration, Rate};
use inprofile_experiment::text::problem::Wrong;
use inprofile_experiment::text::{Entry, Section};

/// Policed rates of a kind of control frames, if the file doesn't say: this share of a direction's rate, within these bounds, or
/// so much a customer where that is more, but no more than [`MOST_SHARE`].
const CONTROL_SHARE: u64 = 200;
const LEAST_CONTROL: Rate = Rate(32_000);
const MOST_CONTROL: Rate = Rate(1_000_000);
const CONTROL_A_CUSTOMER: Rate = Rate(1_000);
const MOST_SHARE: u64 = 100;
/// The burst: so many full packets, or so much time at the rate where that is more.
const CONTROL_BURST: u64 = 4;
const CONTROL_BURST_TIME: Duration = Duration::from_millis(50);
/// Of that for each sender: this share of the rate, within these bounds, but no more than half; and a quarter of the burst, one or
/// two full packets.
const SENDERS_SHARE: u64 = 8;
const LEAST_SENDER: Rate = Rate(16_000);
const MOST_SENDER: Rate = Rate(64_000);

/// The treatment of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames {
    /// Not IP, or not to be read: dropped, rather than best effort; `None`: [by direction](super::Direction::drops_unreadable).
    pub drop_unreadable: Option<bool>,
    /// With a length field that says something else than what was received: dropped, rather than charged what was.
    pub drop_length_mismatch: bool,
    /// How late a packet may leave.
    pub age_limit: Duration,
    /// How much of each kind of control frames is let through; `None`: a share of the direction's rate.
    pub control: Option<Policing>,
    /// How much of that each sender may have; `None`: a share of it.
    pub control_sender: Option<Policing>,
}

/// A rate, and a burst, that are let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policing {
    /// Counted as the shaper counts.
    pub rate: Rate,
    /// The burst.
    pub burst: Bytes,
}

impl Policing {
    /// Half the rate and half the burst.
    #[must_use]
    pub fn half(self) -> Policing {
        Policing { rate: Rate((self.rate.0 / 2).max(1)), burst: Bytes((self.burst.0 / 2).max(1)) }
    }
}

impl Frames {
    /// How much of each kind of control frames is let through in a direction of this rate with so many customers: in all, and of
    /// each sender.
    pub(super) fn control(&self, rate: Rate, customers: usize, packet: Bytes) -> (Policing, Policing) {
        let share = (rate.0 / CONTROL_SHARE).clamp(LEAST_CONTROL.0, MOST_CONTROL.0);
        let of_customers = (CONTROL_A_CUSTOMER.0 * customers as u64).min(rate.0 / MOST_SHARE);
        let of_all = Rate(share.max(of_customers).min(rate.0));
        let in_time = of_all.bytes_in(CONTROL_BURST_TIME) as u64;
        let all = Policing { rate: of_all, burst: Bytes(in_time.max(packet.0 * CONTROL_BURST)) };
        let all = self.control.unwrap_or(all);
        let of_sender = (all.rate.0 / SENDERS_SHARE).clamp(LEAST_SENDER.0, MOST_SENDER.0);
        let burst = Bytes((all.burst.0 / 4).clamp(packet.0, packet.0 * 2));
        let sender = Policing { rate: Rate(of_sender.min(all.half().rate.0)), burst };
        (all, self.control_sender.unwrap_or(sender))
    }
}

/// Reads the table; `packet` is the size of a full one.
pub(super) fn read(root: &Section<'_, '_>, packet: Option<Bytes>) -> Option<Frames> {
    let mut frames = Frames {
        drop_unreadable: None,
        drop_length_mismatch: false,
        age_limit: Duration::from_millis(500),
        control: None,
        control_sender: None,
    };
    let Some(entry) = root.get("frames") else { return Some(frames) };
    let section =
        entry.section(&["unreadable", "length_mismatch", "age_limit", "control", "control_sender"])?;
    let unreadable = match section.get("unreadable") {
        Some(e) => e.word(&["best_effort", "drop"], "choice").map(|word| Some(word == "drop")),
        None => Some(None),
    };
    let mismatch =
        section.get("length_mismatch").map_or(Some("charge"), |e| e.word(&["charge", "drop"], "choice"));
    let age_limit = section.get("age_limit").map_or(Some(frames.age_limit), |e| e.positive_duration());
    let policer = |key| match section.get(key) {
        Some(e) => {
            let table = e.section(&["rate", "burst"]);
            table.and_then(|t| policing(&t, packet)).map(Some)
        }
        None => Some(None),
    };
    let (control, control_sender) = (policer("control"), policer("control_sender"));
    frames.drop_unreadable = unreadable?;
    frames.drop_length_mismatch = mismatch? == "drop";
    frames.age_limit = age_limit?;
    frames.control = control?;
    frames.control_sender = control_sender?;
    Some(frames)
}

/// `rate` and `burst`, which must hold a full packet.
pub(super) fn policing(section: &Section<'_, '_>, packet: Option<Bytes>) -> Option<Policing> {
    let rate = section.need("rate", "\"1 Mbit/s\"").and_then(|e| e.positive_rate());
    let burst = section.need("burst", "\"15 kB\"").and_then(|e| burst(&e, packet));
    Some(Policing { rate: rate?, burst: burst? })
}

fn burst(entry: &Entry<'_, '_>, packet: Option<Bytes>) -> Option<Bytes> {
    let (burst, packet) = (entry.bytes()?, packet?);
    if burst < packet {
        let problem = format!("less than a full packet of {packet}: none would ever be let through");
        return entry.wrong(Wrong::new(problem, format!("write at least \"{packet}\"")));
    }
    Some(burst)
}
