//! DualPI2 as a line of tc's (tc-dualpi2(8); in Linux from 6.17): the same law but for a step in place of the ramp, and dice in place of
//! even spacing.

use inprofile_core::aqm::dualpi2::Params;
use inprofile_core::aqm::l4s::coupling::{MOST_COUPLING, Saturation};
use inprofile_core::aqm::l4s::order::Bound;
use inprofile_core::params::Params as _;
use inprofile_core::params::Values;
use inprofile_core::units::{Backlog, Bytes, Duration};

/// The words after `dualpi2`, and what they do not say: a setting, and why.
pub(super) fn words(values: &Values, limit: Backlog, packet: Bytes) -> (String, Vec<(String, String)>) {
    let p = Params::from_values(values);
    let (c, common) = (&p.controller, &p.controller.coupling);
    let gains = c.gains();
    let us = |d: Duration| format!("{:.0}us", d.secs() * 1e6);
    let mut unsaid = Vec::new();
    let mut cannot = |what: String, why: String| unsaid.push((what, why));
    let packets = match limit {
        Backlog::Packets(n) => n,
        Backlog::Bytes(_) => {
            cannot(format!("limit = {limit}"), "dualpi2 counts packets; this is of full ones".into());
            limit.bytes(packet) / packet.0 as f64
        }
    };
    // Half way up the ramp; tc takes no step at 0.
    let step = Duration((p.min_th.0 + p.range.0 / 2).max(Duration::from_micros(1).0));
    if p.range > Duration::ZERO {
        let why = format!("dualpi2 has a step, here at {step}, half way up");
        cannot(format!("range = {}", p.range), why);
    }
    let factor = common.k.round().clamp(1.0, MOST_COUPLING);
    if factor.to_bits() != common.k.to_bits() {
        cannot(format!("k = {}", common.k), format!("coupling_factor is a whole number: {factor}"));
    }
    let percent = (p.classic_weight * 100.0).round().max(1.0);
    match p.l4s_priority {
        Bound::Wrr if (percent - p.classic_weight * 100.0).abs() > 1e-9 => cannot(
            format!("classic_weight = {}", p.classic_weight),
            format!("classic_protection is in whole per cent: {percent} %"),
        ),
        Bound::Wrr => {}
        Bound::TsFifo => cannot("l4s_priority = ts_fifo".into(), "dualpi2 has weighted round robin".into()),
    }
    for (differs, what, why) in [
        (common.derandomise, "derandomise = true".to_owned(), "dualpi2 draws random numbers"),
        (!common.l4s, "l4s = false".to_owned(), "dualpi2 always treats ECT(1) as L4S"),
        (!common.ecn, "ecn = false".to_owned(), "dualpi2 marks ECT(0) where ours drops it"),
        (
            common.p_cmax.is_some(),
            format!("p_cmax = {}", common.p_cmax.unwrap_or_default()),
            "dualpi2 has 1/coupling_factor²",
        ),
        (
            common.min_backlog != Bytes(2 * packet.0),
            format!("min_backlog = {}", common.min_backlog),
            "dualpi2 has two MTUs: neither dropped nor marked by the base probability while less waits",
        ),
    ] {
        if differs {
            cannot(what, why.into());
        }
    }
    let overload = match common.saturation {
        Saturation::Drop => "drop_on_overload",
        Saturation::Delay => "overflow",
    };
    let words = format!(
        "limit {packets:.0} target {} tupdate {} alpha {:.6} beta {:.6} step_thresh {} min_qlen_step {} coupling_factor {factor} {overload} drop_dequeue l4s_ect classic_protection {percent}%",
        us(c.target),
        us(gains.t_update),
        gains.alpha,
        gains.beta,
        us(step),
        p.th_len,
    );
    (words, unsaid)
}
