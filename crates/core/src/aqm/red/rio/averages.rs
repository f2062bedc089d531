//! RIO's two averages: which arrivals move them, and what idle time does to them, in Floyd and Jacobson's reading and in ns-2's.

use super::AvgUpdate;
use super::discipline::{Aside, Config};
use crate::aqm::spacing::Countdown;
use crate::estimate::ewma::{QueueAverage, Weight};
use crate::units::Time;

/// What one colour goes by.
#[derive(Clone, Debug, Default)]
pub struct Group {
    pub(super) average: QueueAverage,
    pub(super) count: Countdown,
}

/// State between packets.
#[derive(Clone, Debug, Default)]
pub struct Vars {
    /// Average of IN packets, count of IN.
    pub(super) r#in: Group,
    /// Average of all packets, count of OUT.
    pub(super) out: Group,
}

/// Idle time in ns-2's reading, in seconds of double precision.
#[derive(Clone, Debug, Default)]
pub struct Ns2Idle {
    /// The moment of the arrival under way, where it was told.
    pub(super) told: Option<f64>,
    /// `avg_update = ns2`: start of an idle stretch that an OUT packet ended and no IN packet has seen yet.
    pub(super) unseen: Option<f64>,
}

impl Vars {
    /// What a packet of this colour goes by.
    #[inline]
    pub(super) fn of(&mut self, is_in: bool) -> &mut Group {
        if is_in { &mut self.r#in } else { &mut self.out }
    }

    /// After a forced drop, as ns-2 does it.
    #[cold]
    pub(super) fn restart_ns2(&mut self, is_in: bool) {
        if is_in {
            self.r#in.count.restart();
        }
    }

    /// Brings the averages up to date with an arrival that found `all` and `ins` waiting.
    #[inline]
    pub(super) fn update(
        &mut self,
        c: &Config,
        now: Time,
        is_in: bool,
        lengths: (f64, f64),
        idle: Option<Time>,
        aside: &mut Option<Box<Aside>>,
    ) {
        let w = &c.weight;
        let (all, ins) = lengths;
        if c.avg_update != AvgUpdate::Ns2 {
            match idle {
                Some(since) if w.ages() => {
                    self.out.average.age(w, now, since);
                    self.r#in.average.age(w, now, since);
                }
                _ => {
                    let [of_all, of_in] = c.weights[usize::from(is_in)];
                    self.out.average.step(of_all, all);
                    self.r#in.average.step(of_in, ins);
                }
            }
            return;
        }
        self.update_at_in_only(w, now, is_in, lengths, idle, &mut aside.get_or_insert_default().ns2);
    }

    /// `avg_update = ns2`.
    #[cold]
    fn update_at_in_only(
        &mut self,
        w: &Weight,
        now: Time,
        is_in: bool,
        (all, ins): (f64, f64),
        idle: Option<Time>,
        ns2: &mut Ns2Idle,
    ) {
        if is_in {
            self.out.average.sample(w, now, all, idle);
            let unseen = ns2.unseen.take().map(Time::from_secs);
            self.r#in.average.sample(w, now, ins, idle.or(unseen));
        } else {
            ns2.unseen = idle.map(Time::secs).or(ns2.unseen);
        }
    }

    /// [`Vars::update`] in ns-2's arithmetic, the link having been idle for `idle` seconds.
    #[cold]
    pub(super) fn update_ns2(
        &mut self,
        c: &Config,
        now: Time,
        is_in: bool,
        lengths: (f64, f64),
        idle: Option<f64>,
        ns2: &mut Ns2Idle,
    ) {
        let w = &c.weight;
        let secs = ns2.told.take().unwrap_or_else(|| now.secs());
        let sample = |a: &mut QueueAverage, q, idle: Option<f64>| {
            if let Some(idle) = idle {
                a.age_ns2_for(w, now, idle);
            }
            a.sample_ns2(w, now, q, None);
        };
        let (all, ins) = lengths;
        match c.avg_update {
            AvgUpdate::Ns2 if !is_in => ns2.unseen = idle.map(|idle| secs - idle).or(ns2.unseen),
            AvgUpdate::Ns2 => {
                sample(&mut self.out.average, all, idle);
                let unseen = ns2.unseen.take().map(|since| secs - since);
                sample(&mut self.r#in.average, ins, idle.or(unseen));
            }
            AvgUpdate::ClarkFang | AvgUpdate::OwnColour if !is_in => {
                sample(&mut self.out.average, all, idle);
                if let Some(idle) = idle {
                    self.r#in.average.age_ns2_for(w, now, idle);
                }
            }
            AvgUpdate::OwnColour => {
                if let Some(idle) = idle {
                    self.out.average.age_ns2_for(w, now, idle);
                }
                sample(&mut self.r#in.average, ins, idle);
            }
            AvgUpdate::ClarkFang | AvgUpdate::EveryArrival => {
                sample(&mut self.out.average, all, idle);
                sample(&mut self.r#in.average, ins, idle);
            }
        }
    }
}
