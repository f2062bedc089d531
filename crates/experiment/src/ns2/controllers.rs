//! ns-2's PI and REM: their settings, and what it has no word for.

use inprofile_core::aqm::{pi, rem};
use inprofile_core::ns2::offer::{is_set, word};
use inprofile_core::params::{Params, Values};
use inprofile_core::units::{Backlog, Bytes};

use super::queues::{Class, in_packets, not_whole};
use super::{Aim, Script};

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

    pub(super) fn pi(&mut self, link: &str, values: &Values, limit: Backlog, size: Bytes) -> Option<Class> {
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

    pub(super) fn rem(&mut self, link: &str, values: &Values, limit: Backlog, size: Bytes) -> Option<Class> {
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
