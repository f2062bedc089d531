//! The base AQM: a PI controller that moves the probability p′ so that the queueing delay comes to a target.
//!
//! Every `t_update`, p′ moves by how far the delay is from the target (the integral part) and by how much it has changed since last
//! time (the proportional part). Its gains are the same at every p′, where PIE has to tune them: squaring p′ for Classic traffic
//! makes the loop linear. Source: RFC 9332, Figures 2, 6 and 8, §A.1. Delays are how long the packet at the head has waited.

use crate::aqm::l4s::coupling::Common;
use crate::params::{Context, Fault, Warning};
use crate::units::{Duration, Time};

crate::params! {
    /// The operator's settings of the controller and of the coupling.
    pub struct Params {
        /// The queueing delay to aim at (target).
        target: Duration [POSITIVE] = Duration::from_millis(15);
        /// The longest round-trip time for which the queue is to be stable (RTT_max).
        rtt_max: Duration [POSITIVE] = Duration::from_millis(100);
        /// How often p′ moves (Tupdate). Default: the lesser of target and a third of rtt_max.
        t_update: Option<Duration> [POSITIVE];
        /// Integral gain, in Hz: how much p′ moves at an update for each second that the delay is from target. Default: 0.1 t_update/rtt_max².
        alpha: Option<f64> [GAIN];
        /// Proportional gain, in Hz: how much p′ moves for each second by which the delay has changed. Default: 0.3/rtt_max.
        beta: Option<f64> [GAIN];
        ..coupling: Common;
    }
}

/// The shortest time between updates.
const SHORTEST_UPDATE: Duration = Duration::from_micros(1);

/// The controller's settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gains {
    /// In seconds.
    pub target: f64,
    /// Time between updates.
    pub t_update: Duration,
    /// In Hz.
    pub alpha: f64,
    /// In Hz.
    pub beta: f64,
}

impl Params {
    /// Figure 2, lines 12 to 14.
    #[must_use]
    pub fn gains(&self) -> Gains {
        let t_update = self.t_update.unwrap_or(self.target.min(Duration(self.rtt_max.0 / 3)));
        let rtt_max = self.rtt_max.secs();
        Gains {
            target: self.target.secs(),
            t_update,
            alpha: self.alpha.unwrap_or(0.1 * t_update.secs() / (rtt_max * rtt_max)),
            beta: self.beta.unwrap_or(0.3 / rtt_max),
        }
    }

    /// Whether the values go together, and in this place.
    ///
    /// # Errors
    /// See [`Common::check`]; and for updates too close to each other.
    pub fn fit(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let mut warnings = self.coupling.check(context)?;
        let t_update = self.gains().t_update;
        if t_update < SHORTEST_UPDATE {
            return Err(Fault {
                field: if self.t_update.is_some() { "t_update" } else { "rtt_max" },
                problem: format!("p′ would move every {t_update}: no link needs it, and none keeps up"),
                remedy: "t_update = \"16 ms\" (RFC 9332 §A.1), or another of at least 1 us".into(),
            });
        }
        if let (Some(limit), Some(rate)) = (context.limit, context.link_rate)
            && rate.bytes_in(self.target) >= limit.bytes(context.packet)
        {
            let text = format!(
                "a full queue ({limit}) delays by less than target ({}): the limit drops, the controller never does",
                self.target
            );
            warnings.push(Warning { field: "target", text });
        }
        if let Some(t_update) = self.t_update
            && (t_update > self.target || t_update.0 > self.rtt_max.0 / 3)
        {
            let text = format!(
                "p′ moves every {t_update}: a queue may come and go between two updates; at most target ({}) and a third of rtt_max ({})",
                self.target, self.rtt_max
            );
            warnings.push(Warning { field: "t_update", text });
        }
        Ok(warnings)
    }
}

/// Figure 6, line 3: by how much p′ moves; delays in seconds.
#[must_use]
pub fn step(gains: &Gains, curq: f64, prevq: f64) -> f64 {
    gains.alpha * (curq - gains.target) + gains.beta * (curq - prevq)
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Pi {
    gains: Gains,
    p_prime: f64,
    /// The delay at the last update, in seconds.
    prevq: f64,
}

impl Pi {
    /// At rest.
    #[must_use]
    pub fn new(gains: Gains) -> Pi {
        Pi { gains, p_prime: 0.0, prevq: 0.0 }
    }

    /// p′, 0 to 1.
    #[must_use]
    pub fn p_prime(&self) -> f64 {
        self.p_prime
    }

    /// Updates by the current delay, in seconds; returns when the next update is due. On an empty queue, as at the start of a run,
    /// p′ = 0 stays 0.
    pub fn update(&mut self, now: Time, curq: f64) -> Time {
        self.p_prime = (self.p_prime + step(&self.gains, curq, self.prevq)).clamp(0.0, 1.0);
        self.prevq = curq;
        now + self.gains.t_update
    }
}
