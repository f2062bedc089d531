//! The world as a flow's sender sees it: the clock, its timers, and where its segments go.

use crate::clock::Clock;
use crate::event::EventKind;
use crate::tcp::{EcnBits, Host, TimerKind};
use crate::timer::Timers;
use crate::world::World;

/// A flow's sender's access to the world.
pub struct FlowHost<'a, C: Clock, const TRACE: bool> {
    /// The world.
    pub world: &'a mut World<C, TRACE>,
    /// The sender's timers.
    pub timers: &'a mut Timers<C>,
    /// The flow.
    pub flow: u32,
}

impl<C: Clock, const TRACE: bool> Host for FlowHost<'_, C, TRACE> {
    type Clock = C;

    #[inline]
    fn now(&self) -> C {
        self.world.now
    }
    #[inline(always)]
    fn send(&mut self, segment: u32, bits: EcnBits) {
        self.world.send(self.flow, segment, bits);
    }
    #[inline]
    fn set_timer(&mut self, which: TimerKind, after: C::Span) {
        let what = EventKind::Timer(self.flow, which);
        let due = self.world.due(what, after);
        if self.timers[which as usize].set(due) {
            self.world.requeue(due, what);
        }
    }
    fn cancel_timer(&mut self, which: TimerKind) {
        self.timers[which as usize].cancel();
    }
    #[inline]
    fn timer_is_set(&self, which: TimerKind) -> bool {
        self.timers[which as usize].is_set()
    }
    fn uniform(&mut self) -> f64 {
        let own = self.world.flows[self.flow as usize].jitter();
        self.world
            .shared
            .as_mut()
            .or(own)
            .expect("only senders that jitter, or whose congestion control draws, ask")
            .uniform()
    }
}
