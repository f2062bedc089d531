//! The slow, obvious RED that tests compare with: everything recomputed at each arrival from the whole past.
//!
//! Written from Floyd and Jacobson 1993, Fig. 2 and §4, and sharing nothing with the fast code but types.

use crate::aqm::red::law::Curve;

/// The contribution of one arrival to an average.
#[derive(Clone, Copy, Debug)]
pub enum Sample {
    /// It found the link busy and this length.
    Length(f64),
    /// It ended so many packet times of idleness.
    Idle(f64),
}

/// The average after these, from first principles: each length weighs w, faded by everything after it.
pub fn average(samples: &[Sample], w_q: f64) -> f64 {
    let mut avg = 0.0;
    let mut fade = 1.0;
    for s in samples.iter().rev() {
        match *s {
            Sample::Length(q) => {
                avg += fade * w_q * q;
                fade *= 1.0 - w_q;
            }
            Sample::Idle(m) => fade *= libm::pow(1.0 - w_q, m),
        }
    }
    avg
}

/// One arrival that is over: the average it was tested with, and whether it was dropped.
#[derive(Clone, Copy, Debug)]
pub struct Past {
    /// The average it was tested with.
    pub avg: f64,
    /// For whatever cause.
    pub dropped: bool,
}

/// The chance that an arrival with this average is dropped, given all earlier arrivals of its colour.
pub fn p_a(past: &[Past], avg: f64, curve: &Curve, gentle: bool, wait: bool) -> f64 {
    let Curve { min_th, max_th, max_p, .. } = *curve;
    if avg < min_th {
        return 0.0;
    }
    let p_b = if avg < max_th {
        max_p * (avg - min_th) / (max_th - min_th)
    } else if gentle && avg < 2.0 * max_th {
        let share = (avg - max_th) / max_th;
        max_p * (1.0 - share) + share
    } else {
        return 1.0;
    };
    // Fig. 2: count starts at −1 below min_th and at 0 after a drop; this arrival adds 1.
    let mut count = 1.0;
    let below = |p: &Past| p.avg < min_th;
    match past.iter().rev().take_while(|p| !below(p) && !p.dropped).count() {
        n if n == past.len() || below(&past[past.len() - 1 - n]) => count += n as f64 - 1.0,
        n => count += n as f64,
    }
    let spread = count * p_b;
    if wait {
        return if spread < 1.0 { 0.0 } else { (p_b / (2.0 - spread).max(0.0)).min(1.0) };
    }
    if spread >= 1.0 { 1.0 } else { (p_b / (1.0 - spread)).min(1.0) }
}
