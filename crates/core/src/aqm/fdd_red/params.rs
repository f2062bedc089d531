//! FDD-RED's parameters: RED's, and an option for everything that the paper leaves open.

use super::ledger::{Charge, Latest, Ties};
use crate::aqm::red;
use crate::aqm::red::common::Common;
use crate::units::Backlog;

crate::choice! {
    /// Whose packet is dropped.
    pub enum VictimFlow {
        /// That of the flow with the largest penalty: Fig. 2, line 5.
        Ledger = "ledger",
        /// Placebo: that of the arriving packet's own flow.
        Own = "own",
        /// Placebo: that of any flow with a packet in the queue, all equally likely.
        Random = "random",
    }
}

crate::choice! {
    /// Which packet of the victim is dropped; the paper says no more than "select a packet from flow".
    pub enum VictimPacket {
        /// The next to leave; the arrival, if it is the victim's and no other packet of the victim is waiting.
        Head = "head",
        /// The last to arrive: the arrival itself, if it is the victim's.
        Tail = "tail",
        /// Any, all equally likely, the arrival included if it is the victim's.
        Random = "random",
    }
}

crate::choice! {
    /// The rule where the victim has no packet in the queue.
    pub enum NoPacket {
        /// The arrival is dropped.
        Arrival = "arrival",
        /// The flow with the largest penalty among those with a packet in the queue loses one.
        NextVictim = "next_victim",
        /// The victim's next packet is dropped on arrival; this one joins if there is room.
        Defer = "defer",
    }
}

crate::choice! {
    /// Which drops the ledger decides on.
    pub enum AppliesTo {
        /// Those that RED decides on by its average, and those of a full queue.
        EarlyAndOverflow = "early_and_overflow",
        /// Those that RED decides on by its average.
        Early = "early",
    }
}

crate::choice! {
    /// The definition of a flow's round-trip time.
    pub enum Rtt {
        /// Without the wait in this queue.
        Base = "base",
        /// Plus the time it takes to send what is waiting in this queue.
        WithQueue = "with_queue",
    }
}

crate::choice! {
    /// The rule for the account of a flow of which no packet has passed or waited for avgRTT.
    pub enum IdlePenalty {
        /// It is closed, and a new one opened when the flow comes back.
        Forget = "forget",
        /// It is set aside, while there is room, and resumes when the flow comes back.
        Keep = "keep",
        /// It stays open, while there is room, and the flow may be charged and be the victim: Fig. 2 closes no account.
        Never = "never",
    }
}

crate::choice! {
    /// When a flow becomes idle: §II keeps those that "have passed through the queue during the last RTTavg".
    pub enum IdleFrom {
        /// At its last packet's departure: what is waiting has not passed yet, and no account is closed with packets waiting.
        Departure = "departure",
        /// At its last packet's arrival, even if packets of it are still waiting: in a queue longer than avgRTT accounts are closed all the
        /// time.
        Arrival = "arrival",
    }
}

crate::choice! {
    /// Who says what the round-trip times are.
    pub enum RttSource {
        /// The router estimates them from what passes.
        Estimated = "estimated",
        /// The simulator tells propagation times: for comparison.
        Oracle = "oracle",
    }
}

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// Average below which nothing is dropped. Its unit, packets or bytes, is the average's.
        min_th: Backlog [NON_NEGATIVE];
        /// Average at which the drop probability has risen to max_p. In min_th's unit.
        max_th: Backlog [POSITIVE];
        /// Drop probability just below max_th.
        max_p: f64 [UNIT_POSITIVE];
        /// Which flow is penalised together with the arrival's: the one whose last drop is the longest ago, or the most recent.
        latest: Latest = Latest::Oldest;
        /// Which of several equal flows is chosen.
        ties: Ties = Ties::Random;
        /// Which flows a decision charges: the arrival's and its partner, or the partner alone.
        charge: Charge = Charge::Both;
        /// Whose packet is dropped: the ledger's choice, or a placebo's.
        victim_flow: VictimFlow = VictimFlow::Ledger;
        /// Which packet of the victim is dropped.
        victim_packet: VictimPacket = VictimPacket::Head;
        /// What happens if the victim has no packet in the queue.
        no_packet: NoPacket = NoPacket::Arrival;
        /// Whether the ledger also decides whose packet is dropped when the queue is full.
        applies_to: AppliesTo = AppliesTo::EarlyAndOverflow;
        /// Whether round-trip times are without or with the delay in this queue.
        rtt: Rtt = Rtt::Base;
        /// What happens to the penalty of a flow of which no packet has passed or waited for avgRTT.
        idle_penalty: IdlePenalty = IdlePenalty::Forget;
        /// When a flow becomes idle: at its last departure, or at its last arrival.
        idle_from: IdleFrom = IdleFrom::Departure;
        /// Who says what the round-trip times are.
        rtt_source: RttSource = RttSource::Estimated;
        /// The most flows that it keeps state of; beyond that, those seen the longest ago are forgotten.
        flows: u64 [FLOWS] = 4096;
        ..common: Common { gentle = true };
    }
}

impl Params {
    /// The RED that decides when a packet is dropped. Whether it is marked instead is decided here.
    pub(super) fn as_red(&self) -> red::Params {
        let Params { min_th, max_th, max_p, .. } = *self;
        let common = Common { ecn: false, ..self.common.clone() };
        red::Params { min_th, max_th, max_p, byte_scaled: false, drop: red::DropAt::Tail, common }
    }
}
