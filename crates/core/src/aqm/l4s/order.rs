//! Which of the two queues sends next where both have something to send: L4S first, within a bound (RFC 9332 §4.2.2).

use crate::aqm::l4s::coupling::{CLASSIC, L4S};
use crate::params::{Context, Fault};
use crate::units::Duration;

crate::choice! {
    /// How the priority of the L4S queue is bounded.
    pub enum Bound {
        /// Weighted round robin: while both have packets, Classic gets its weight of the bytes.
        Wrr = "wrr",
        /// Time-shifted FIFO: the head that has waited longest, L4S heads counting as `tshift` older.
        TsFifo = "ts_fifo",
    }
}

/// The scheduler of the two queues.
#[derive(Clone, Debug)]
pub enum Order {
    /// Weighted round robin.
    Wrr {
        /// Classic's share of the bytes.
        weight: f64,
        /// The bytes that Classic is owed, where above 0.
        credit: f64,
        /// The credit after an idle period.
        rested: f64,
    },
    /// Time-shifted FIFO: in seconds.
    TsFifo(f64),
}

/// Whether Classic's weight leaves L4S its priority.
///
/// # Errors
/// If it is one half or more.
pub fn fit(classic_weight: f64) -> Result<(), Fault> {
    if classic_weight < 0.5 {
        return Ok(());
    }
    Err(Fault {
        field: "classic_weight",
        problem: format!("a Classic weight of {classic_weight} leaves L4S packets no priority"),
        remedy: "classic_weight = 0.0625 (RFC 9332 §4.2.2), or another below 0.5".into(),
    })
}

impl Order {
    /// From the operator's settings.
    #[must_use]
    pub fn new(bound: Bound, classic_weight: f64, tshift: Duration, context: &Context) -> Order {
        match bound {
            Bound::Wrr => {
                // §A.1: in favour of the L4S queue, as if a full Classic packet had just been sent.
                let rested = -(1.0 - 2.0 * classic_weight) * context.packet.0 as f64;
                Order::Wrr { weight: classic_weight, credit: rested, rested }
            }
            Bound::TsFifo => Order::TsFifo(tshift.secs()),
        }
    }

    /// The link was idle (§A.1: "reset in favour of the L queue when the link is idle").
    pub fn rest(&mut self) {
        if let Order::Wrr { credit, rested, .. } = self {
            *credit = *rested;
        }
    }

    /// Whose turn it is when both have something to send, given how long each head has waited, in seconds.
    #[must_use]
    pub fn next(&self, [l4s, classic]: [f64; 2]) -> usize {
        let l4s_first = match self {
            Order::Wrr { credit, .. } => *credit <= 0.0,
            // Figure 10, lines 28 to 33.
            Order::TsFifo(tshift) => l4s + tshift >= classic,
        };
        if l4s_first { L4S } else { CLASSIC }
    }

    /// A packet of one kind is sent while the other waits: only then does it count (§A.1).
    pub fn sent(&mut self, kind: usize, size: u32) {
        if let Order::Wrr { weight, credit, .. } = self {
            let bytes = f64::from(size);
            *credit += if kind == L4S { *weight * bytes } else { (*weight - 1.0) * bytes };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    const CONTEXT: Context = Context { link_rate: None, contract: None, packet: Bytes(1500), limit: None };

    fn wrr(weight: f64) -> Order {
        Order::new(Bound::Wrr, weight, Duration::ZERO, &CONTEXT)
    }

    /// RFC 9332 §4.2.2: "if the Classic weight is 1/16, the maximum that a Classic packet at the head of the queue can be delayed by
    /// L traffic is the serialization delay of 15 MTU-sized packets".
    #[test]
    fn fifteen_l4s_packets_to_one() {
        let mut order = wrr(1.0 / 16.0);
        let turns: Vec<usize> = (0..64)
            .map(|_| {
                let kind = order.next([0.0, 9.0]);
                order.sent(kind, 1500);
                kind
            })
            .collect();
        let expected: Vec<usize> = (1..=64).map(|i| if i % 16 == 0 { CLASSIC } else { L4S }).collect();
        assert_eq!(turns, expected);
        // After an idle period it is as at the start.
        (0..10).for_each(|_| order.sent(L4S, 1500));
        order.rest();
        assert_eq!(format!("{order:?}"), format!("{:?}", wrr(1.0 / 16.0)));
    }

    /// By bytes, whatever the sizes; a Classic head waits for at most (1/w − 1) full packets and the one that overdraws.
    #[test]
    fn shares_are_of_bytes() {
        let mut order = wrr(0.1);
        let (mut bytes, mut since) = ([0u64; 2], 0);
        for i in 0..100_000u32 {
            let kind = order.next([0.0; 2]);
            let size = if kind == L4S { 40 + i * 7919 % 1461 } else { 300 };
            order.sent(kind, size);
            bytes[kind] += u64::from(size);
            since = if kind == CLASSIC { 0 } else { since + size };
            assert!(since <= 9 * 1500 + 1500, "{since} B of L4S in a row");
        }
        let share = bytes[CLASSIC] as f64 / (bytes[L4S] + bytes[CLASSIC]) as f64;
        assert!((share - 0.1).abs() < 1e-3, "{share}");
    }

    #[test]
    fn a_shifted_fifo_is_strict_until_the_shift() {
        let order = Order::new(Bound::TsFifo, 0.1, Duration::from_millis(50), &CONTEXT);
        assert_eq!([0.049, 0.050, 0.051].map(|classic| order.next([0.0, classic])), [L4S, L4S, CLASSIC]);
        assert_eq!(order.next([0.001, 0.0515]), CLASSIC);
    }

    #[test]
    fn a_weight_without_priority_is_refused() {
        assert!(fit(0.0625).is_ok() && fit(0.49).is_ok());
        assert_eq!([0.5, 1.0].map(|w| fit(w).map_err(|f| f.field)), [Err("classic_weight"); 2]);
    }
}
