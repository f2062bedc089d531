//! ns-2's Sack1: keeps the number of segments in the pipe as a counter instead of computing it, and has a scoreboard.

use super::{Action, Base, DUP_THRESH};
use crate::clock::Clock;
use crate::tcp::{Host, Sack, TimerKind};

/// The state of recovery.
#[derive(Clone, Debug)]
pub struct Sack1 {
    /// Segments believed to be in the network during recovery (`pipe_`).
    pipe: i32,
    recovering: bool,
    /// No new data has been acknowledged since a timeout (`timeout_`).
    timed_out: bool,
    /// Highest acknowledged outside recovery (`last_ack_`).
    last_ack: i32,
    scoreboard: Scoreboard,
}

impl Default for Sack1 {
    fn default() -> Sack1 {
        Sack1 {
            pipe: -1,
            recovering: false,
            timed_out: false,
            last_ack: -1,
            scoreboard: Scoreboard::default(),
        }
    }
}

impl Sack1 {
    #[inline(never)]
    pub fn on_ack<C: Clock, H: Host<Clock = C>>(
        &mut self,
        b: &mut Base<C>,
        ack: i32,
        sack: &Sack,
        host: &mut H,
    ) {
        if !self.recovering {
            if ack > self.last_ack {
                b.new_data(ack, host);
                self.last_ack = ack;
                self.timed_out = false;
                self.scoreboard.clear();
            } else if ack == self.last_ack && !self.timed_out {
                // Only an acknowledgement that SACKs something new counts as a duplicate.
                if self.scoreboard.update(b.acked, sack) {
                    b.dup_acks += 1;
                    if b.dup_acks == DUP_THRESH {
                        self.loss_suspected(b, host);
                    } else if b.dup_acks < DUP_THRESH && b.limited_transmit {
                        b.send_one(host);
                    }
                }
            }
            if b.dup_acks == 0 {
                self.send(b, false, host);
            }
            return;
        }
        self.pipe -= 1;
        if ack >= b.recover {
            b.recover = 0;
            self.recovering = false;
            b.advance(ack, host);
            self.last_ack = ack;
            self.timed_out = false;
            self.scoreboard.clear();
        } else if ack > b.acked {
            // A partial acknowledgement: one more segment has left the pipe.
            b.acked = ack;
            self.scoreboard.update(ack, sack);
            self.pipe -= 1;
            b.new_timer(ack, host);
            b.end_backoff();
        } else if !self.timed_out && self.scoreboard.update(b.acked, sack) && b.dup_acks > 0 {
            b.dup_acks += 1;
        }
        self.send(b, false, host);
    }

    pub fn on_rto<C: Clock>(&mut self, b: &mut Base<C>) {
        self.recovering = false;
        self.timed_out = true;
        self.last_ack = self.last_ack.max(b.acked);
        self.scoreboard.clear();
    }

    fn loss_suspected<C: Clock, H: Host<Clock = C>>(&mut self, b: &mut Base<C>, host: &mut H) {
        if b.acked <= b.recover && b.acked != 0 {
            return;
        }
        b.tally.fast_retransmits += 1;
        b.recover = b.highest_sent;
        self.pipe = b.highest_sent - b.acked - DUP_THRESH;
        b.restart_timer(host);
        self.recovering = true;
        self.scoreboard.mark_sent_again(b.acked + 1);
        b.last_action = Action::Duplicates;
        b.slow_down(b.cwnd.min(f64::from(b.window)));
        b.output_one(self.last_ack + 1, host);
    }

    /// Sends as much as the window allows, or in recovery as the pipe allows; holes first.
    pub fn send<C: Clock, H: Host<Clock = C>>(&mut self, b: &mut Base<C>, jitter_over: bool, host: &mut H) {
        if !jitter_over && host.timer_is_set(TimerKind::Send) {
            return;
        }
        let window = (b.cwnd.min(f64::from(b.window))) as i32;
        loop {
            let open =
                if self.recovering { self.pipe < b.cwnd as i32 } else { b.next <= self.last_ack + window };
            // ns-2 checks only whether everything has been acknowledged (`last_ack_ + 1 < curseq_`).
            let open = open && self.last_ack < b.last;
            if !open || b.waits(jitter_over, host) {
                return;
            }
            let reach = (b.acked + if self.recovering { b.window } else { window }).min(b.last);
            let segment = match self.scoreboard.next_hole() {
                None if b.next <= reach => {
                    b.next += 1;
                    b.next - 1
                }
                Some(hole) if b.recover > 0 && hole <= b.acked + b.window => {
                    self.scoreboard.mark_sent_again(hole);
                    hole
                }
                _ => return,
            };
            b.output_one(segment, host);
            b.next = b.next.max(segment + 1);
            self.pipe += 1;
        }
    }
}

/// The segments received above the first hole, and how far holes have been retransmitted (`ScoreBoardRQ`).
#[derive(Clone, Debug)]
struct Scoreboard {
    /// From, to (excluded); ascending and disjoint.
    blocks: Vec<(i32, i32)>,
    /// Holes below this are not retransmitted again (`h_seqno_`).
    filled: i32,
    /// One past the highest acknowledged (`sack_min`).
    least: i32,
}

impl Default for Scoreboard {
    fn default() -> Scoreboard {
        Scoreboard { blocks: Vec::new(), filled: -1, least: -1 }
    }
}

impl Scoreboard {
    fn clear(&mut self) {
        self.blocks.clear();
        self.filled = -1;
    }

    /// Records an acknowledgement; true if it changes anything.
    fn update(&mut self, acked: i32, sack: &Sack) -> bool {
        let before = self.total();
        let mut changed = false;
        if self.least <= acked {
            self.least = acked + 1;
            if !self.blocks.is_empty() {
                let least = self.least;
                self.blocks.retain_mut(|block| {
                    block.0 = block.0.max(least);
                    block.0 < block.1
                });
                changed = true;
            }
        }
        for &(from, to) in sack.blocks() {
            self.add(from as i32, to as i32);
        }
        changed || before != self.total()
    }

    fn total(&self) -> i32 {
        self.blocks.iter().map(|(from, to)| to - from).sum()
    }

    fn add(&mut self, from: i32, to: i32) {
        let first = self.blocks.partition_point(|b| b.1 < from);
        let last = self.blocks.partition_point(|b| b.0 <= to);
        let mut merged = (from, to);
        for b in &self.blocks[first..last] {
            merged = (merged.0.min(b.0), merged.1.max(b.1));
        }
        self.blocks.splice(first..last, [merged]);
    }

    fn mark_sent_again(&mut self, segment: i32) {
        if segment >= self.filled {
            self.filled = segment + 1;
        }
    }

    /// The next hole with something received above it.
    fn next_hole(&mut self) -> Option<i32> {
        self.filled = self.filled.max(self.least);
        for (i, &(from, to)) in self.blocks.iter().enumerate() {
            if from > self.filled {
                return (self.filled > 0).then_some(self.filled);
            }
            if to >= self.filled {
                if i + 1 == self.blocks.len() {
                    return None;
                }
                self.filled = to;
                return Some(to);
            }
        }
        None
    }
}
