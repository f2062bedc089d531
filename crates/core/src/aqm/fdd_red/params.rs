//! FDD-RED's parameters: RED's, and an option for everything that the paper leaves open.

use super::ledger::{Charge, Latest, Ties};
use crate::aqm::red;
use crate::aqm::red::common::Common;
use crate::units::Backlog;

crate::choice! {
    /// Whose packet goes.
    pub enum VictimFlow {
        /// That of the flow which owes most: Fig. 2, line 5.
        Ledger = "ledger",
        /// Placebo: that of the arrival's own flow.
        Own = "own",
        /// Placebo: that of any flow which has a packet here, with equal chances.
        Random = "random",
    }
}

crate::choice! {
    /// Which packet of the victim goes: "select a packet from flow" says no more.
    pub enum VictimPacket {
        /// The next to leave; the arrival, if it is the victim's and none of the victim's waits.
        Head = "head",
        /// The last that came: the arrival itself, if it is the victim's.
        Tail = "tail",
        /// Any, with equal chances, the arrival included if it is the victim's.
        Random = "random",
    }
}

crate::choice! {
    /// What happens if the victim has no packet here.
    pub enum NoPacket {
        /// The arrival goes.
        Arrival = "arrival",
        /// A packet of the flow goes that owes most among those that have one here.
        NextVictim = "next_victim",
        /// The victim's next packet goes as it comes; the arrival joins if there is room.
        Defer = "defer",
    }
}

crate::choice! {
    /// Which drops the ledger decides on.
    pub enum AppliesTo {
        /// Those that RED's average decides, and those of a full queue.
        EarlyAndOverflow = "early_and_overflow",
        /// Those that RED's average decides.
        Early = "early",
    }
}

crate::choice! {
    /// What counts as a flow's round-trip time.
    pub enum Rtt {
        /// Without the wait in this queue.
        Base = "base",
        /// With the time that what waits here takes to send.
        WithQueue = "with_queue",
    }
}

crate::choice! {
    /// What becomes of the account of a flow of which nothing has passed or waited for avgRTT.
    pub enum IdlePenalty {
        /// It is closed, and a new one opened when the flow comes back.
        Forget = "forget",
        /// It is put aside, as long as there is room, and goes on when the flow comes back.
        Keep = "keep",
        /// It stays open, and the flow a partner and a victim, as long as there is room: Fig. 2 closes none.
        Never = "never",
    }
}

crate::choice! {
    /// From when on a flow is idle: §II keeps those that "have passed through the queue during the last RTTavg".
    pub enum IdleFrom {
        /// Its last packet's departure: what waits has not passed yet, and no account is closed with packets waiting.
        Departure = "departure",
        /// Its last packet's arrival, though packets of it may wait: with a queue of more than avgRTT accounts are closed all the time.
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
    /// What an operator sets.
    pub struct Params {
        /// Average below which nothing is dropped. Its unit, packets or bytes, is the average's.
        min_th: Backlog [NON_NEGATIVE];
        /// Average at which the drop probability has risen to max_p. In min_th's unit.
        max_th: Backlog [POSITIVE];
        /// Drop probability just below max_th.
        max_p: f64 [UNIT_POSITIVE];
        /// Whom an arrival's flow is penalised together with: the one whose last drop is longest ago, or the latest.
        latest: Latest = Latest::Oldest;
        /// Who is chosen among equals.
        ties: Ties = Ties::Random;
        /// Whom a decision charges: the arrival's flow and its partner, or the partner alone.
        charge: Charge = Charge::Both;
        /// Whose packet goes: the ledger's choice, or a placebo's.
        victim_flow: VictimFlow = VictimFlow::Ledger;
        /// Which packet of the victim goes.
        victim_packet: VictimPacket = VictimPacket::Head;
        /// What happens if the victim has no packet here.
        no_packet: NoPacket = NoPacket::Arrival;
        /// Whether the ledger also decides who goes when the queue is full.
        applies_to: AppliesTo = AppliesTo::EarlyAndOverflow;
        /// Whether round-trip times are taken without or with the wait in this queue.
        rtt: Rtt = Rtt::Base;
        /// What becomes of the penalty of a flow of which nothing has passed or waited for avgRTT.
        idle_penalty: IdlePenalty = IdlePenalty::Forget;
        /// From when on a flow is idle: its last departure, or its last arrival.
        idle_from: IdleFrom = IdleFrom::Departure;
        /// Who says what the round-trip times are.
        rtt_source: RttSource = RttSource::Estimated;
        /// Flows it keeps state of at most: of more, those seen longest ago are forgotten.
        flows: u64 [FLOWS] = 4096;
        ..common: Common { gentle = true };
    }
}

impl Params {
    /// The RED that decides that a packet goes. Whether it is marked is decided here.
    pub(super) fn as_red(&self) -> red::Params {
        let Params { min_th, max_th, max_p, .. } = *self;
        let common = Common { ecn: false, ..self.common.clone() };
        red::Params { min_th, max_th, max_p, byte_scaled: false, drop: red::DropAt::Tail, common }
    }
}
