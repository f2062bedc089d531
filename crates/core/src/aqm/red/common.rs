//! Whether two thresholds, as an operator writes them, make a curve, and what is odd about them.
//!
//! Papers use thresholds above the queue's limit and thresholds that are not whole: remarked on, never refused.

use crate::params::{Context, Fault, Warning};
use crate::units::Backlog;

/// The paths of a pair of thresholds in the experiment file.
#[derive(Clone, Copy, Debug)]
pub struct Paths {
    /// Of the lower.
    pub min_th: &'static str,
    /// Of the upper.
    pub max_th: &'static str,
}

/// Whether two thresholds make a curve; what is allowed but odd goes to `warnings`.
///
/// # Errors
/// Mixed units, or a lower threshold that is not below the upper.
pub fn check_thresholds(
    min_th: Backlog,
    max_th: Backlog,
    paths: Paths,
    context: &Context,
    warnings: &mut Vec<Warning>,
) -> Result<(), Fault> {
    if !min_th.same_unit(max_th) {
        return Err(Fault {
            field: paths.max_th,
            problem: format!("min_th is {min_th} and max_th is {max_th}: one average can't be in both units"),
            remedy: "both in packets or both in bytes".into(),
        });
    }
    if min_th.amount() >= max_th.amount() {
        return Err(Fault {
            field: paths.min_th,
            problem: format!("min_th ({min_th}) is not below max_th ({max_th})"),
            remedy: "a min_th below max_th; Floyd advises max_th = 3 · min_th".into(),
        });
    }
    for (path, th) in [(paths.min_th, min_th), (paths.max_th, max_th)] {
        if let Some(limit) = context.limit
            && th.bytes(context.packet) > limit.bytes(context.packet)
        {
            let text = format!("{th} is above the queue's limit of {limit}: the average can't get there");
            warnings.push(Warning { field: path, text });
        }
        if th.amount().fract() != 0.0 {
            let text = format!("{th} is not a whole number; kept as it is, the average is not whole either");
            warnings.push(Warning { field: path, text });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    #[test]
    fn thresholds_that_make_no_curve_are_refused() {
        let context = Context {
            link_rate: None,
            contract: None,
            packet: Bytes(1000),
            limit: Some(Backlog::Packets(50.0)),
        };
        let paths = Paths { min_th: "min_th", max_th: "max_th" };
        let check = |min, max| {
            let mut warnings = Vec::new();
            check_thresholds(min, max, paths, &context, &mut warnings)
                .map(|()| warnings.iter().map(|w| w.field).collect::<Vec<_>>())
                .map_err(|f| f.field)
        };
        use Backlog::{Bytes as B, Packets as P};
        assert_eq!(check(P(5.0), P(15.0)), Ok(vec![]));
        assert_eq!(check(P(15.0), P(15.0)), Err("min_th"));
        assert_eq!(check(P(5.0), B(15_000.0)), Err("max_th"));
        assert_eq!(check(P(0.1), P(60.0)), Ok(vec!["min_th", "max_th"]));
        assert_eq!(check(B(5_000.0), B(50_001.0)), Ok(vec!["max_th"]));
    }
}
