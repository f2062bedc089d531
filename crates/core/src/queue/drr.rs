//! Deficit round robin: classes take turns; each may send a quantum of bytes per turn, and what it does not use is kept for its
//! next turn (Shreedhar and Varghese 1996).
//!
//! Over any time in which two classes are backlogged, the bytes they have sent, in units of their quanta, differ by no more than
//! 1 + (2 · the largest packet) / (the smaller quantum) (the paper's bound on its fairness measure): shares are as the quanta,
//! whatever the packet sizes. The paper keeps a list of the backlogged queues, so that a decision costs the same with ten
//! thousand of them; here there are few classes, which are visited one after the other.
//!
//! Non-goal: delay. A class waits for a turn of every other; see [`priority`](crate::queue::priority).

use crate::params::{Context, Fault, Warning};
use crate::queue::Scheduler;
use crate::units::{Backlog, Bytes};

/// The smallest quantum: with less, one packet could take thousands of turns.
const LEAST: f64 = 64.0;
/// The greatest: deficits stay far inside their 64 bits.
const MOST: f64 = 1e9;

crate::params! {
    /// The operator's settings of each class.
    pub struct Params {
        /// What it may send in one turn: shares of the link are as the quanta of the classes that have something to send.
        quantum: Backlog [POSITIVE];
    }
}

/// The scheduler.
#[derive(Clone, Debug)]
pub struct Drr {
    /// Bytes a turn, by class.
    quanta: Vec<i64>,
    /// Bytes that each may still send in this turn, or has kept for its next; below zero by at most a packet where a
    /// discipline dropped the head and let a larger one go.
    deficits: Vec<i64>,
    /// Whose turn it is.
    turn: usize,
    /// Whether it has been given this turn's quantum.
    granted: bool,
}

impl Params {
    fn bytes(&self, packet: Bytes) -> f64 {
        self.quantum.bytes(packet)
    }

    /// Whether the quantum makes sense.
    ///
    /// # Errors
    /// If it is so small that a packet would take thousands of turns, or beyond counting.
    pub fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let (bytes, packet) = (self.bytes(context.packet), context.packet);
        if !(LEAST..=MOST).contains(&bytes) {
            return Err(Fault {
                field: "quantum",
                problem: format!("a quantum of {bytes} B is out of bounds"),
                remedy: format!(
                    "an amount from {LEAST} B to {MOST} B, such as \"{packet}\" or \"1 packets\""
                ),
            });
        }
        if bytes < packet.0 as f64 {
            // Their §3: with less than a packet a turn the work per packet is no longer O(1).
            let text = format!(
                "a quantum of {bytes} B is less than a full packet of {packet}, which waits several turns"
            );
            return Ok(vec![Warning { field: "quantum", text }]);
        }
        Ok(Vec::new())
    }

    /// The scheduler of classes with these quanta.
    #[must_use]
    pub fn build(classes: &[Params], context: &Context) -> Drr {
        Drr::new(classes.iter().map(|p| p.bytes(context.packet) as u64))
    }
}

impl Drr {
    /// Of classes with these quanta in bytes, each above 0.
    #[must_use]
    pub fn new(quanta: impl Iterator<Item = u64>) -> Drr {
        let quanta: Vec<i64> = quanta.map(|q| q.clamp(1, MOST as u64) as i64).collect();
        Drr { deficits: vec![0; quanta.len()], quanta, turn: 0, granted: false }
    }

    fn pass_on(&mut self) {
        // Not by a remainder: a division for each packet is felt.
        self.turn = if self.turn + 1 < self.quanta.len() { self.turn + 1 } else { 0 };
        self.granted = false;
    }
}

impl Scheduler for Drr {
    fn next(&mut self, heads: &[Option<u32>]) -> Option<usize> {
        if heads[self.turn].is_none() && heads.iter().all(Option::is_none) {
            self.deficits.fill(0);
            self.granted = false;
            return None;
        }
        loop {
            let class = self.turn;
            match heads[class] {
                // Their Fig. 4: a queue that has become empty keeps nothing.
                None => self.deficits[class] = 0,
                Some(size) => {
                    if !self.granted {
                        self.deficits[class] += self.quanta[class];
                        self.granted = true;
                    }
                    if self.deficits[class] >= i64::from(size) {
                        return Some(class);
                    }
                }
            }
            self.pass_on();
        }
    }

    fn sent(&mut self, class: usize, bytes: u32) {
        self.deficits[class] -= i64::from(bytes);
    }

    fn emptied(&mut self, class: usize) {
        // Their Fig. 4, and what it owes for a packet larger than was shown goes with it.
        self.deficits[class] = 0;
        self.granted &= self.turn != class;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order in which queues of these packets are served: classes and sizes, in order.
    fn order(quanta: &[u64], mut queues: Vec<Vec<u32>>) -> Vec<(usize, u32)> {
        let mut drr = Drr::new(quanta.iter().copied());
        let mut sent = Vec::new();
        loop {
            let heads: Vec<_> = queues.iter().map(|q| q.first().copied()).collect();
            let Some(class) = drr.next(&heads) else { return sent };
            let size = queues[class].remove(0);
            drr.sent(class, size);
            sent.push((class, size));
        }
    }

    /// Four queues as in their Figs. 2 and 3, by hand.
    #[test]
    fn what_is_left_of_a_turn_is_kept_for_the_next() {
        let queues = vec![vec![200, 750, 20], vec![500, 500], vec![600, 100, 400], vec![50, 700, 180]];
        let by_hand = [
            (0, 200), // keeps 300
            (1, 500), // keeps 0
            (3, 50),  // the third keeps 500; the fourth 450
            (0, 750), // 300 + 500: keeps 50
            (0, 20),
            (1, 500),
            (2, 600), // 500 + 500: keeps 400
            (2, 100),
            (3, 700), // 450 + 500
            (3, 180),
            (2, 400), // 300 + 500, alone
        ];
        assert_eq!(order(&[500; 4], queues), by_hand);
    }

    #[test]
    fn a_quantum_below_a_packet_takes_several_turns() {
        // The first needs four turns of 250; the second sends one packet in each.
        let sent = order(&[250, 300], vec![vec![1000], vec![300; 4]]);
        assert_eq!(sent, [(1, 300), (1, 300), (1, 300), (0, 1000), (1, 300)]);
    }

    #[test]
    fn a_class_that_became_empty_keeps_nothing() {
        let mut drr = Drr::new([1000, 1000].into_iter());
        assert_eq!(drr.next(&[Some(100), None]), Some(0));
        drr.sent(0, 100);
        assert_eq!(drr.next(&[None, None]), None);
        // Nothing of the 900 is left: 1500 has to wait for a second turn, and 1000 of the other class go before.
        assert_eq!(drr.next(&[Some(1500), Some(1000)]), Some(1));
    }

    #[test]
    fn quanta_out_of_bounds_are_refused_and_small_ones_warned_of() {
        let context = Context { link_rate: None, contract: None, packet: Bytes(1040), limit: None };
        let check = |quantum| Params { quantum }.check(&context);
        assert!(check(Backlog::Bytes(63.0)).is_err() && check(Backlog::Packets(1e8)).is_err());
        assert_eq!(check(Backlog::Bytes(64.0)).unwrap().len(), 1);
        assert!(check(Backlog::Packets(1.0)).unwrap().is_empty());
    }
}
