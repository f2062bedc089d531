//! The router without its ports, under a virtual clock: what went in, what came out, and when.

use inprofile_core::rng::Rng;
use inprofile_core::units::{Duration, Time};
use inprofile_live::datapath::Totals;
use inprofile_live::packet::{self, Layer, Unread};
use inprofile_router::config::{self, Config};
use inprofile_router::router::{self, Router};

use crate::frames::Frame;

/// A file in effect, with its warnings.
pub fn config(text: &str) -> Config {
    let (config, _) = config::parse(text.as_bytes(), "attack.toml", &router::registry())
        .unwrap_or_else(|p| panic!("{p:#?}"));
    config
}

/// The output of the other port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Out {
    /// Frames, and their bytes behind the link layer.
    pub frames: u64,
    pub bytes: u64,
    /// Bytes that left as IN, and as EF.
    pub green: u64,
    pub ef: u64,
    /// Frames by the DSCP they left with.
    pub dscps: [u64; 64],
    /// Frames whose tags or labels have a class.
    pub link_classes: u64,
    /// IPv4 headers with a wrong checksum.
    pub wrong_checksums: u64,
    /// Frames with a VLAN tag.
    pub tagged: u64,
    /// Bytes of control frames, behind the Ethernet header.
    pub control: u64,
}

impl Default for Out {
    fn default() -> Out {
        let [frames, bytes, green, ef, link_classes, wrong_checksums, tagged, control] = [0; 8];
        Out { frames, bytes, green, ef, dscps: [0; 64], link_classes, wrong_checksums, tagged, control }
    }
}

impl Out {
    fn add(&mut self, frame: &[u8]) {
        let is_control = match packet::parse(Layer::Ethernet, frame) {
            Ok(headers) => headers.control.is_some(),
            Err(opaque) => matches!(opaque.why, Unread::Control(_)),
        };
        self.control += if is_control { frame.len() as u64 - 14 } else { 0 };
        let frame = Frame(frame.to_vec());
        self.frames += 1;
        self.tagged += u64::from(frame.0[12..14] == [0x81, 0x00]);
        self.bytes += frame.bytes();
        self.link_classes += u64::from(frame.has_link_class());
        self.wrong_checksums += u64::from(frame.has_wrong_checksum());
        if let Some(dscp) = frame.dscp() {
            self.dscps[usize::from(dscp)] += 1;
        }
        match frame.dscp() {
            Some(10) => self.green += frame.bytes(),
            Some(46) => self.ef += frame.bytes(),
            _ => {}
        }
    }
}

/// The router, and what has come out of its upstream direction.
pub struct Bench {
    pub router: Option<Router>,
    pub now: Time,
    pub out: Out,
    /// When the last frame's turn came.
    pub last: Time,
    pub rng: Rng,
}

impl Bench {
    pub fn new(text: &str) -> Bench {
        let router = Router::new(config(text), Layer::Ethernet, 1);
        let rng = Rng::for_component(7, "attacker");
        let (now, last) = (Time::ZERO, Time::ZERO);
        Bench { router: Some(router), now, out: Out::default(), last, rng }
    }

    fn router(&mut self) -> &mut Router {
        self.router.as_mut().expect("a reload is over at once")
    }

    /// A frame comes in at the inside port after this gap.
    pub fn send(&mut self, gap: Duration, frame: &Frame) {
        self.now += gap;
        let now = self.now;
        self.router().arrive(now, 0, Layer::Ethernet, &mut frame.0.clone());
        self.collect();
    }

    /// Reconfigured from this file.
    pub fn reload(&mut self, text: &str) {
        let router = self.router.take().expect("a reload is over at once");
        self.router = Some(router.reconfigure(config(text), Layer::Ethernet, 1, self.now));
    }

    fn collect(&mut self) {
        let Bench { router, out, last, .. } = self;
        let leaving = &mut router.as_mut().expect("a reload is over at once").lanes[0].leaving;
        leaving.iter().for_each(|frame| out.add(frame));
        *last = leaving.times().last().copied().unwrap_or(*last);
        leaving.clear();
    }

    /// Nothing comes until all that waits has left; then the accounts are right.
    pub fn drain(&mut self) {
        while self.router().waiting() > 0 {
            let Some(due) = self.router().due() else { break };
            self.now = self.now.max(due);
            self.router().advance(due);
            self.collect();
        }
        self.check();
    }

    /// Where packets went.
    pub fn totals(&self) -> Totals {
        *self.router.as_ref().expect("a reload is over at once").lanes[0].path.totals()
    }

    /// Packets that a customer has lost.
    pub fn lost_of(&self, customer: usize) -> u64 {
        let router = self.router.as_ref().expect("a reload is over at once");
        let counts = &router.lanes[0].path.customers()[customer];
        counts.dropped.iter().sum::<u64>() + counts.no_buffer + counts.too_late
    }

    /// The accounts.
    pub fn check(&self) {
        self.router.as_ref().expect("a reload is over at once").check().unwrap();
    }
}
