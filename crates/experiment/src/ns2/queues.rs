//! ns-2's disciplines: class and settings of a queue that drops what ours drops.

use inprofile_core::aqm::red::DropAt;
use inprofile_core::aqm::red::common::Common;
use inprofile_core::aqm::rio::{AvgUpdate, Counted};
use inprofile_core::aqm::wred::Averages;
use inprofile_core::aqm::{red, rio, wred};
use inprofile_core::ns2::offer::{is_set, without_fault, word};
use inprofile_core::ns2::{drr, dsred, fq, sfq};
use inprofile_core::params::{Params, Values};
use inprofile_core::registry::AnyAqm;
use inprofile_core::units::{Backlog, Bytes};

use super::{Aim, Script};
use crate::model::{Mechanism, Queue};

/// Thresholds of a dsRED queue that only polices: above any limit.
const NEVER: &str = "{1000000 1000001 0.5} {1000000 1000001 0.5} {1000000 1000001 0.5}";

/// A queue's tasks besides dropping.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use<'a> {
    /// Mark, as dsRED's edge.
    pub polices: bool,
    /// Count arrivals by colour, which dsRED does.
    pub counts: bool,
    /// Of FQ: the flows that have packets here, acknowledgements included.
    pub flows: &'a [u32],
}

/// A queue in ns-2.
pub(super) struct Class {
    /// ns-2's name of the discipline.
    pub class: &'static str,
    /// Variables and their values.
    pub settings: String,
    /// A procedure of the script to call then, and its arguments after the link's nodes.
    pub after: Option<(&'static str, String)>,
}

impl Script {
    /// The class of a queue and its settings.
    pub(super) fn queue(&mut self, link: &str, queue: &Queue, size: Bytes, use_: Use<'_>) -> Option<Class> {
        let Queue { aqm, limit, .. } = queue;
        let dsred = if use_.polices { "dsRED/edge" } else { "dsRED/core" };
        if aqm.name == "red" && !use_.polices {
            return self.red(link, &aqm.values, *limit, size);
        }
        match aqm.name {
            "pi" if !use_.polices => return self.pi(link, &aqm.values, *limit, size),
            "rem" if !use_.polices => return self.rem(link, &aqm.values, *limit, size),
            _ => {}
        }
        if aqm.name == "ns2_drr" && !use_.polices {
            let Backlog::Bytes(limit) = *limit else {
                let bytes = limit.bytes(size);
                self.lacks(format!(
                    "links.{link}.queue.limit: {limit}, and DRR's is in bytes; write limit = \"{bytes} B\""
                ));
                return None;
            };
            let p = drr::Params::from_values(&aqm.values);
            let (buckets, quantum) = (p.buckets, p.flow_quantum.0);
            let settings = format!("buckets_ {buckets} quantum_ {quantum} blimit_ {}", limit.floor());
            return Some(Class { class: "DRR", settings, after: None });
        }
        let Backlog::Packets(limit) = *limit else {
            self.lacks(in_packets(link, *limit, size));
            return None;
        };
        match aqm.name {
            "drop_tail" => {
                let waiting =
                    if is_set(&aqm.values, "limit_rule") { limit.ceil() - 1.0 } else { limit.floor() };
                // Where dsRED polices, it holds all of its limit.
                Some(if use_.polices || use_.counts {
                    let after = Some(("dsred", format!("{} DROP {{{NEVER}}}", size.0)));
                    Class { class: dsred, settings: format!("limit_ {waiting}"), after }
                } else {
                    Class { class: "DropTail", settings: format!("limit_ {}", waiting + 1.0), after: None }
                })
            }
            "dsred" => {
                let p = dsred::Params::from_values(&aqm.values);
                let after = Some(("dsred", dsred_commands(&p, size)));
                Some(Class { class: dsred, settings: format!("limit_ {}", limit.floor()), after })
            }
            "rio" | "wred" if self.aim == Aim::Counts => {
                let p = self.kin(link, aqm)?;
                let after = Some(("dsred", dsred_commands(&p, size)));
                Some(Class { class: dsred, settings: format!("limit_ {}", limit.floor()), after })
            }
            name if use_.polices => {
                self.lacks(format!(
                    "links.{link}.queue.aqm: {name} where packets are marked; drop_tail or dsred"
                ));
                None
            }
            "ns2_sfq" => {
                let buckets = sfq::Params::from_values(&aqm.values).buckets;
                let settings = format!("buckets_ {buckets} maxqueue_ {}", limit.floor());
                Some(Class { class: "SFQ", settings, after: None })
            }
            "ns2_fq" => self.fq(link, &fq::Params::from_values(&aqm.values), limit, use_.flows),
            "rio" => self.rio(link, &aqm.values, limit, size),
            name => {
                let known = match self.aim {
                    Aim::Events => "drop_tail, red, rio, dsred, pi, rem, ns2_sfq, ns2_drr and ns2_fq",
                    Aim::Counts => "drop_tail, red, rio, wred, dsred, pi, rem, ns2_sfq and ns2_drr",
                };
                self.lacks(format!("links.{link}.queue.aqm: {name}; ns-2 has {known}"));
                None
            }
        }
    }

    /// A drop-tail queue for each flow, behind which FQ takes what would finish first.
    fn fq(&mut self, link: &str, p: &fq::Params, limit: f64, flows: &[u32]) -> Option<Class> {
        let before = self.missing.len();
        if self.aim == Aim::Counts {
            self.lacks(format!(
                "links.{link}.queue.aqm: ns2_fq, whose FQLink runs only with a trace of every event; [engine] profile = \"ns2\" compares events"
            ));
        }
        let queues = p.buckets.min(u64::from(fq::MAX_FLOWS));
        if let Some(flow) = flows.iter().find(|flow| u64::from(**flow) >= queues) {
            self.lacks(format!(
                "links.{link}.queue.aqm: ns2_fq with {queues} queues before flow {flow}, counted from 0; every flow needs its own, and ns-2 has {}",
                fq::MAX_FLOWS
            ));
        }
        let needed = p.flow_limit * flows.len() as u64;
        if limit < needed as f64 {
            self.lacks(format!(
                "links.{link}.queue.limit: {limit} packets of all flows, which ns-2's FQ doesn't count; write at least {needed} packets, \
                 flow_limit for each"
            ));
        }
        let numbers = flows.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        let after = Some(("fq", format!("{} {{{numbers}}}", p.flow_limit)));
        (self.missing.len() == before).then_some(Class { class: "FQ", settings: String::new(), after })
    }

    fn red(&mut self, link: &str, values: &Values, limit: Backlog, size: Bytes) -> Option<Class> {
        let (p, is_ns2) = (red::Params::from_values(values), is_set(values, "variant"));
        let before = self.missing.len();
        if !is_ns2 && self.aim == Aim::Events {
            let text =
                format!("links.{link}.queue.variant: {}; write variant = \"ns2\"", word(values, "variant"));
            self.lacks(text);
        }
        let mean = p.common.mean_packet.unwrap_or(size).0 as f64;
        let in_bytes = matches!(p.min_th, Backlog::Bytes(_));
        let unit = if in_bytes { mean } else { 1.0 };
        let mut threshold = |name: &str, value: f64| {
            // ns-2's are in packets of the mean size; 0 means that ns-2 is to choose.
            let written = value / unit;
            if written * unit != value || written == 0.0 {
                self.lacks(format!("links.{link}.queue.{name}: {value} with packets of {mean} B"));
            }
            written
        };
        let (min, max) = (threshold("min_th", p.min_th.amount()), threshold("max_th", p.max_th.amount()));
        // With thresholds in bytes ns-2 multiplies this by the mean size, too.
        let limit = match limit {
            Backlog::Packets(n) => n.floor(),
            Backlog::Bytes(n) if in_bytes && is_ns2 && n % mean == 0.0 => n / mean,
            Backlog::Bytes(n) if in_bytes && is_ns2 => {
                self.lacks(not_whole(link, n, mean));
                n
            }
            Backlog::Bytes(n) => {
                self.lacks(in_packets(link, limit, size));
                n
            }
        };
        if self.missing.len() > before {
            return None;
        }
        let settings = format!(
            "limit_ {limit} thresh_ {min} maxthresh_ {max} linterm_ {} q_weight_ {} mean_pktsize_ {mean} bytes_ {} \
             queue_in_bytes_ {in_bytes} gentle_ {} wait_ {} setbit_ {}{}",
            1.0 / p.max_p,
            p.common.w_q,
            p.byte_scaled,
            p.common.gentle,
            p.common.wait,
            p.common.ecn,
            match p.drop {
                DropAt::Tail => "",
                DropAt::Front => " drop_front_ true",
                DropAt::Random => " drop_rand_ true",
            }
        );
        Some(Class { class: "RED", settings, after: None })
    }

    /// The dsRED that corresponds to this RIO or WRED, if it uses nothing that dsRED lacks.
    fn kin(&mut self, link: &str, aqm: &Mechanism<AnyAqm>) -> Option<dsred::Params> {
        let before = self.missing.len();
        let mut lacks = |it_does: bool, what: &str| {
            if it_does {
                self.lacks(format!("links.{link}.queue.{what}"));
            }
        };
        let p = if aqm.name == "rio" {
            let p = rio::Params::from_values(&without_fault(&aqm.values));
            let at_in = is_set(&aqm.values, "avg_update");
            lacks(
                at_in || p.avg_update != AvgUpdate::ClarkFang,
                &format!("avg_update: {}, without its queue's", word(&aqm.values, "avg_update")),
            );
            lacks(p.count != Counted::Own, "count: dsRED counts each colour's packets apart");
            lacks(p.byte_scaled, "byte_scaled: dsRED doesn't scale");
            wred::Params {
                green: p.r#in,
                yellow: p.out,
                red: None,
                green_ecn: None,
                yellow_ecn: None,
                red_ecn: None,
                averages: Averages::Coupled,
                common: p.common,
            }
        } else {
            wred::Params::from_values(&aqm.values)
        };
        lacks(p.common.gentle, "gentle: dsRED isn't");
        lacks(p.common.wait, "wait: dsRED doesn't");
        lacks(p.common.ecn, "ecn: dsRED counts marked packets as queued before it decides");
        lacks(
            p.green_ecn.is_some() || p.yellow_ecn.is_some() || p.red_ecn.is_some(),
            "green_ecn and its like: dsRED has one curve a colour",
        );
        for th in [&p.green, &p.yellow].into_iter().chain(&p.red).flat_map(|t| [t.min_th, t.max_th]) {
            let whole = matches!(th, Backlog::Packets(n) if n.fract() == 0.0);
            lacks(!whole, &format!("{th}: dsRED's thresholds are whole packets"));
        }
        let wred::Params { green, yellow, red, averages, common: Common { w_q, mean_packet, .. }, .. } = p;
        (self.missing.len() == before).then_some(dsred::Params {
            green,
            yellow,
            red,
            averages,
            w_q,
            mean_packet,
        })
    }

    fn rio(&mut self, link: &str, values: &Values, limit: f64, size: Bytes) -> Option<Class> {
        let p = rio::Params::from_values(&without_fault(values));
        let before = self.missing.len();
        let mut lacks = |what: &str| self.lacks(format!("links.{link}.queue.{what}"));
        if !is_set(values, "variant") {
            lacks(&format!("variant: {}; write variant = \"ns2\"", word(values, "variant")));
        }
        if !is_set(values, "avg_update") {
            lacks(&format!("avg_update: {}; write avg_update = \"ns2\"", word(values, "avg_update")));
        }
        if matches!(p.out.min_th, Backlog::Bytes(_)) {
            lacks("out.min_th: bytes (RED/RIO scales its thresholds again at each reset)");
        }
        if self.missing.len() > before {
            return None;
        }
        let (i, o) = (&p.r#in, &p.out);
        let settings = format!(
            "limit_ {} in_thresh_ {} in_maxthresh_ {} in_linterm_ {} out_thresh_ {} out_maxthresh_ {} linterm_ {} \
             q_weight_ {} mean_pktsize_ {} bytes_ {} gentle_ {} wait_ {} setbit_ {}",
            limit.floor(),
            i.min_th.amount(),
            i.max_th.amount(),
            1.0 / i.max_p,
            o.min_th.amount(),
            o.max_th.amount(),
            1.0 / o.max_p,
            p.common.w_q,
            p.common.mean_packet.unwrap_or(size).0,
            p.byte_scaled,
            p.common.gentle,
            p.common.wait,
            p.common.ecn
        );
        Some(Class { class: "RED/RIO", settings, after: None })
    }
}

/// A limit in bytes where ns-2 counts packets.
pub(super) fn in_packets(link: &str, limit: Backlog, size: Bytes) -> String {
    let packets = limit.packets(size).floor().max(1.0);
    format!(
        "links.{link}.queue.limit: {limit}, and ns-2's is in packets; write limit = \"{packets} packets\""
    )
}

/// A limit in bytes that is no whole number of packets of the mean size.
pub(super) fn not_whole(link: &str, bytes: f64, mean: f64) -> String {
    let whole = (bytes / mean).floor().max(1.0) * mean;
    format!("links.{link}.queue.limit: {bytes} B with packets of {mean} B; write limit = \"{whole} B\"")
}

/// Mean packet size, mode, and a level for each colour.
fn dsred_commands(p: &dsred::Params, size: Bytes) -> String {
    let mode = match p.averages {
        Averages::Shared => "WRED",
        Averages::Coupled => "RIO-C",
        Averages::Decoupled => "RIO-D",
    };
    let levels = [&p.green, &p.yellow, p.red.as_ref().unwrap_or(&p.yellow)]
        .map(|t| format!("{{{} {} {} {}}}", t.min_th.amount(), t.max_th.amount(), t.max_p, p.w_q));
    format!("{} {mode} {{{}}}", p.mean_packet.unwrap_or(size).0, levels.join(" "))
}

pub(super) mod controllers {
    //! ns-2's PI and REM: their settings, and what it has no word for.

    use inprofile_core::aqm::{pi, rem};
    use inprofile_core::ns2::offer::{is_set, word};
    use inprofile_core::params::{Params, Values};
    use inprofile_core::units::{Backlog, Bytes};

    use super::super::queues::{Class, in_packets, not_whole};
    use super::super::{Aim, Script};

    impl Script {
        /// Both are compared event by event only as ns-2 computes them.
        fn of_ns2(&mut self, link: &str, values: &Values) {
            if !is_set(values, "variant") && self.aim == Aim::Events {
                let said = word(values, "variant");
                self.lacks(format!("links.{link}.queue.variant: {said}; write variant = \"ns2\""));
            }
        }

        /// `limit_`: packets; where the queue counts bytes, so many of the mean size.
        fn limit_of(&mut self, link: &str, limit: Backlog, in_bytes: bool, mean: u64) -> f64 {
            match limit {
                Backlog::Packets(n) => n.floor(),
                Backlog::Bytes(n) if in_bytes && n % mean as f64 == 0.0 => n / mean as f64,
                Backlog::Bytes(n) if in_bytes => {
                    self.lacks(not_whole(link, n, mean as f64));
                    n
                }
                Backlog::Bytes(n) => {
                    self.lacks(in_packets(link, limit, Bytes(mean)));
                    n
                }
            }
        }

        pub(crate) fn pi(
            &mut self,
            link: &str,
            values: &Values,
            limit: Backlog,
            size: Bytes,
        ) -> Option<Class> {
            let (p, before) = (pi::Params::from_values(values), self.missing.len());
            self.of_ns2(link, values);
            let mean = p.mean_packet.unwrap_or(size).0;
            let (q_ref, in_bytes) = counted(p.q_ref, mean);
            let limit = self.limit_of(link, limit, in_bytes, mean);
            let settings = format!(
                "limit_ {limit} a_ {} b_ {} w_ {} qref_ {q_ref} mean_pktsize_ {mean} bytes_ {} queue_in_bytes_ {in_bytes} \
                 setbit_ {}",
                p.a, p.b, p.w, p.byte_scaled, p.ecn
            );
            (self.missing.len() == before).then_some(Class { class: "PI", settings, after: None })
        }

        pub(crate) fn rem(
            &mut self,
            link: &str,
            values: &Values,
            limit: Backlog,
            size: Bytes,
        ) -> Option<Class> {
            let (p, before) = (rem::Params::from_values(values), self.missing.len());
            self.of_ns2(link, values);
            // With variant = "ns2" both have been refused when the file was read.
            if p.mismatch != rem::Mismatch::Rate {
                self.lacks(format!("links.{link}.queue.mismatch: backlog; write mismatch = \"rate\""));
            }
            if p.alpha != inprofile_core::ns2::rem::ALPHA {
                self.lacks(format!("links.{link}.queue.alpha: {}; ns-2's is 0.1", p.alpha));
            }
            if p.ecn {
                self.lacks(format!(
                    "links.{link}.queue.ecn: marking, ns-2's REM draws a random number even when nothing is left to send; write \
                     ecn = false"
                ));
            }
            let mean = p.mean_packet.unwrap_or(size).0;
            let (b_star, in_bytes) = counted(p.b_star, mean);
            let limit = self.limit_of(link, limit, in_bytes, mean);
            let settings = format!(
                "limit_ {limit} gamma_ {} phi_ {} inw_ {} mean_pktsize_ {mean} pupdtime_ {} pbo_ {b_star} qib_ {in_bytes} \
                 markpkts_ false",
                p.gamma,
                p.phi,
                p.in_weight,
                p.t_update.secs()
            );
            (self.missing.len() == before).then_some(Class { class: "REM", settings, after: None })
        }
    }

    /// A target in packets, and whether bytes are counted.
    fn counted(target: Backlog, mean: u64) -> (f64, bool) {
        match target {
            Backlog::Packets(n) => (n, false),
            Backlog::Bytes(n) => (n / mean as f64, true),
        }
    }
}
