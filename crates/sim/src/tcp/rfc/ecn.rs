//! Explicit congestion notification at the sender (RFC 3168): the bits its segments carry, and its reaction to ECN-Echo.
//!
//! Until the SYN/ACK arrives it is what the sender asks for; then what the two ends [agree on](crate::tcp::negotiation).

use inprofile_core::packet;

use crate::clock::Clock;
use crate::tcp::control::Cause;
use crate::tcp::negotiation::{self, Agreed};
use crate::tcp::{Config, EcnBits, Feedback, Flags, Host, TimerKind, accurate_ecn};

use super::Sender;

/// The sender's record of its window reductions.
#[derive(Clone, Debug)]
pub struct Ecn {
    /// How marks come back.
    feedback: Feedback,
    code_point: packet::Ecn,
    /// The two with a receiver that knows no more than RFC 3168's flags.
    classic: (Feedback, packet::Ecn),
    /// A scalable control answers them.
    scalable: bool,
    /// SND.MAX when the window was last reduced.
    reduced_at: u32,
    /// That reduction was a reaction to an ECN-Echo.
    by_echo: bool,
    /// The next new segment carries CWR.
    send_cwr: bool,
    /// An ECN-Echo arrived while the window was one segment: nothing is sent until the timer expires.
    pub paused: bool,
    /// How often in a row that has happened.
    pub pauses: u32,
}

impl Ecn {
    /// Nothing is reduced yet; `None` where the sender asks for no ECN.
    pub fn new(config: &Config) -> Option<Ecn> {
        let feedback = config.speaks()?;
        Some(Ecn {
            feedback,
            code_point: config.code_point_in(Some(feedback)),
            classic: (config.classic(), config.code_point_in(Some(config.classic()))),
            scalable: config.congestion.is_scalable() && feedback != Feedback::Echo,
            reduced_at: 0,
            by_echo: false,
            send_cwr: false,
            paused: false,
            pauses: 0,
        })
    }

    /// The first SYN/ACK has arrived, after so many timeouts: what the two ends agree on (RFC 3168 §6.1.1, RFC 9768 §3.1.1). Without ECN this
    /// has no more to say.
    pub fn agree(&mut self, answer: Flags, timeouts: u32) -> Agreed {
        let sent = if self.scalable { self.code_point } else { packet::Ecn::NotCapable };
        let agreed = negotiation::client(Some(self.feedback), self.classic.0, sent, answer);
        if agreed.mode.is_some_and(|mode| mode != self.feedback) {
            (self.feedback, self.code_point) = self.classic;
            self.scalable &= self.feedback != Feedback::Echo;
        }
        // SYNs of two kinds have been sent where one asks for nothing, and this may be the answer to either.
        let alike = negotiation::syn(Some(Feedback::Counter), timeouts) != Flags::NONE;
        if alike && agreed.arrived.is_some_and(|arrived| negotiation::is_mangled(sent, arrived)) {
            // RFC 9768 §3.2.2.3: no ECT from now on; marks are still answered.
            self.code_point = packet::Ecn::NotCapable;
        }
        agreed
    }

    /// Whether an ECN-Echo on the acknowledgement of everything before `ack` is a reason to reduce the window.
    /// RFC 3168 §6.1.2: once a window of data. The receiver repeats the echo until it sees CWR, which the first new segment
    /// after a reduction carries.
    pub fn is_new_congestion(&self, ack: u32) -> bool {
        ack > self.reduced_at
    }

    /// Whether the window has been reduced because of an ECN-Echo since `segment` was sent: its loss is then no reason to
    /// reduce it again (RFC 3168 §6.1.2). A scalable control's reaction to a mark is no substitute for one to a loss (RFC 8257 §3.5).
    pub fn has_reacted_to_loss_of(&self, segment: u32) -> bool {
        !self.scalable && self.by_echo && segment < self.reduced_at
    }

    /// The code point of what is sent.
    pub fn code_point(&self) -> packet::Ecn {
        self.code_point
    }

    /// Whether marks are answered by less than a loss is.
    pub fn is_scalable(&self) -> bool {
        self.scalable
    }

    /// The last reduction is undone: no CWR tells of it, and the next ECN-Echo is new.
    pub fn withdraw(&mut self) {
        (self.reduced_at, self.send_cwr) = (0, false);
    }

    /// The window was reduced, for whatever reason: the next new segment carries CWR (RFC 3168 §6.1.2).
    pub fn on_reduction(&mut self, snd_max: u32, by_echo: bool) {
        self.reduced_at = snd_max;
        self.by_echo = by_echo;
        self.send_cwr = true;
    }

    /// The bits of a segment, after so many timeouts. RFC 3168 §6.1.1: a SYN is never ECT. §6.1.5: neither is a retransmission, and it
    /// carries no CWR. As in Linux, everything that a scalable control sends is ECT (RFC 8257 §3.6, §4.1).
    pub fn bits(&mut self, segment: u32, retransmission: bool, timeouts: u32) -> EcnBits {
        if segment == 0 {
            return self.bits_of_syn(timeouts);
        }
        let ip = if retransmission && !self.scalable { packet::Ecn::NotCapable } else { self.code_point };
        // RFC 9768 §3.1.5: with accurate feedback there is no CWR; the field counts what comes from the receiver, which is never marked.
        let flags = match self.feedback {
            Feedback::Counter => accurate_ecn::UNMARKED,
            _ if !retransmission && std::mem::take(&mut self.send_cwr) => Flags::CWR,
            _ => Flags::NONE,
        };
        EcnBits { ip, flags }
    }

    /// The bits of the SYN, after so many timeouts. RFC 9768 §3.1.4.1: one that asks for nothing is not ECT either.
    #[cold]
    fn bits_of_syn(&self, timeouts: u32) -> EcnBits {
        let flags = negotiation::syn(Some(self.feedback), timeouts);
        let capable = self.scalable && flags != Flags::NONE;
        EcnBits { ip: if capable { self.code_point } else { packet::Ecn::NotCapable }, flags }
    }
}

impl<C: Clock> Sender<C> {
    /// An acknowledgement arrived, with or without ECN-Echo, perhaps a SYN/ACK; `flight`: FlightSize before it.
    #[inline(never)]
    pub(super) fn on_ecn_echo<H: Host<Clock = C>>(
        &mut self,
        ack: u32,
        flags: Flags,
        flight: f64,
        host: &mut H,
    ) {
        let Some(ecn) = &mut self.ecn else { return };
        if flags.has(Flags::SYN) {
            // RFC 3168 §6.1.1, RFC 9768 §3.1.5: it grants ECN, and echoes nothing.
            return;
        }
        if !flags.has(Flags::ECE) {
            ecn.pauses = 0;
            return;
        }
        if !ecn.is_new_congestion(ack) {
            return;
        }
        // RFC 3168 §6.1.2: as for a loss, except that nothing is retransmitted. RFC 9438 §4.6: down to one segment.
        ecn.on_reduction(self.snd_max, true);
        // RFC 9406 §4.2: a mark ends the first slow start.
        self.first_slow_start = None;
        let one_segment = self.cwnd < 2.0;
        let reduced = self.reduce(Cause::Mark, flight);
        self.ssthresh = reduced.max(2.0);
        self.cwnd = reduced.max(1.0).min(self.cwnd);
        if one_segment && let Some(ecn) = &mut self.ecn {
            // RFC 3168 §6.1.2: less than one segment a round trip is one segment a timeout; RFC 9438 §5.5: a timeout that
            // doubles as long as echoes arrive.
            ecn.paused = true;
            let wait = self.rto.backed_off(ecn.pauses);
            ecn.pauses += 1;
            host.set_timer(TimerKind::Retransmit, C::span_secs(wait));
        }
    }
}
