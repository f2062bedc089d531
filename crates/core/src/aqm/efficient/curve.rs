//! A curve in grains, and whether whole numbers can hold it.

use crate::aqm::curve::{Curve, Rule};
use crate::aqm::thresholds::Paths;
use crate::estimate::fixed::{LEAST_WEIGHT, Scale};
use crate::params::Fault;
use crate::units::Backlog;

/// A curve in grains.
#[derive(Clone, Copy, Debug)]
pub(super) struct WholeCurve {
    pub(super) min_th: i64,
    /// From min_th to where all are dropped.
    pub(super) span: u64,
    /// From min_th to where the line bends, as a number that no average reaches if it doesn't.
    pub(super) bend: i64,
    /// (max_th − min_th) / max_p: how far above min_th every packet would be dropped, went the line on.
    pub(super) reach: u64,
    /// How much steeper the line is from the bend on, in 2⁻³².
    steeper: u64,
}

impl WholeCurve {
    pub(super) fn new(curve: &Curve, rule: &Rule, scale: &Scale) -> WholeCurve {
        let (min_th, max_th) = (scale.grains(curve.min_th), scale.grains(curve.max_th));
        let reach = (curve.max_th - curve.min_th) / curve.max_p;
        let steeper = (1.0 - curve.max_p) / curve.max_th * reach;
        WholeCurve {
            min_th,
            span: (if rule.gentle { 2 * max_th } else { max_th } - min_th) as u64,
            bend: if rule.gentle { max_th - min_th } else { i64::MAX },
            reach: scale.grains(reach) as u64,
            steeper: (steeper * (1u64 << 32) as f64) as u64,
        }
    }

    /// p_b in parts of `reach`, so far above min_th.
    pub(super) fn p_b(&self, above: i64) -> u64 {
        let beyond = (above - self.bend).max(0);
        let more = (u128::from(beyond as u64) * u128::from(self.steeper)) >> 32;
        ((above - beyond) as u64).saturating_add(more as u64).min(self.reach)
    }
}

/// Whether whole numbers can hold it all.
///
/// # Errors
/// A weight too small, or a curve too wide.
pub fn check(w_q: f64, min_th: Backlog, max_th: Backlog, max_p: f64, paths: Paths) -> Result<(), Fault> {
    if w_q < LEAST_WEIGHT {
        return Err(Fault {
            field: "w_q",
            problem: format!(
                "with variant = \"efficient\" a w_q of {w_q} is less than an average in whole numbers can follow"
            ),
            remedy: "at least 0.000001, or variant = \"floyd93\"".into(),
        });
    }
    let most = (1u64 << if matches!(max_th, Backlog::Bytes(_)) { 44 } else { 31 }) as f64;
    let reach = (max_th.amount() - min_th.amount()) / max_p;
    if max_th.amount() >= most || reach >= 8.0 * most {
        return Err(Fault {
            field: paths.max_th,
            problem: format!(
                "with variant = \"efficient\" a max_th of {max_th} and a max_p of {max_p} are more than whole numbers hold"
            ),
            remedy: format!(
                "a max_th below {most} and (max_th − min_th) / max_p below {}, or variant = \"floyd93\"",
                8.0 * most
            ),
        });
    }
    Ok(())
}
