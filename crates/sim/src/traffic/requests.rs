//! A TCP connection over which an application asks for one piece of data after another, each when it has the last one.
//!
//! The application is at the receiver, the sender is the server. A request travels with the acknowledgement of the piece before it;
//! one that is made later, as the first one is, takes the propagation delay of the way back. So with the handshake, the first data
//! arrives two round trips after the client began.

use inprofile_core::units::{Bytes, Time};

use crate::clock::Clock;
use crate::ends::FlowHost;
use crate::event::EventKind;
use crate::outcome::Download;
use crate::tcp::{Ack, Host, Sender, TimerKind};
use crate::traffic::video::{Next, Player};
use crate::world::World;

/// Who asks.
#[derive(Debug)]
pub enum Application {
    /// One of the connections of this page.
    Page(u32),
    /// A player of video.
    Video(Player),
}

/// The connection's sender.
#[derive(Debug)]
pub struct Requests<C: Clock> {
    /// The TCP.
    pub sender: Sender<C>,
    application: Application,
    /// One past the last segment that was asked for; segment 0 is the SYN.
    end: u32,
    /// When what is on its way was asked for, and its bits.
    asked: Option<(Time, f64)>,
    /// Nothing more is asked for.
    stopped: bool,
    /// How many segments the sender has sent, and when the last of them.
    sent: (u64, C),
}

impl<C: Clock> Requests<C> {
    /// Nothing has been asked for.
    pub fn new(sender: Sender<C>, application: Application) -> Requests<C> {
        Requests { sender, application, end: 1, asked: None, stopped: false, sent: (0, C::ZERO) }
    }

    /// A request that was made without an acknowledgement to travel with arrives, if the application wants anything.
    pub fn start<const TRACE: bool>(&mut self, host: &mut FlowHost<'_, C, TRACE>) {
        let travelled = C::span_ps(host.world.way_back(host.flow));
        self.ask(Time(host.now().time().0.saturating_sub(travelled)), host);
    }

    /// The application asks for something, if it wants anything at `time`, which is the client's: the request is with the
    /// server now.
    fn ask<const TRACE: bool>(&mut self, time: Time, host: &mut FlowHost<'_, C, TRACE>) {
        if self.stopped || self.asked.is_some() {
            return;
        }
        let flow = host.flow;
        let segment = host.world.flows[flow as usize].segment;
        let segments = match &mut self.application {
            Application::Page(page) => {
                let page = *page;
                match host.world.ask_for_object(page) {
                    Some(segments) => segments,
                    None => return host.world.page_may_be_complete(page),
                }
            }
            Application::Video(player) => match player.next(time) {
                Next::Chunk(bits) => (bits / 8.0 / f64::from(segment)).ceil().max(1.0) as u32,
                Next::Wait(pause) => return host.world.request_later(flow, time + pause),
            },
        };
        self.asked = Some((time, f64::from(segments) * f64::from(segment) * 8.0));
        self.end = self.end.saturating_add(segments);
        self.sender.set_data_end(self.end);
        host.world.flows[flow as usize].expect_until(self.end);
        if self.sent.0 == 0 {
            self.sender.start(host);
        } else {
            self.sender.resume(self.sent.1, host);
        }
        self.note_sent(host.now());
    }

    /// Notes when the last segment left.
    fn note_sent(&mut self, now: C) {
        let transmissions = self.sender.transmissions();
        if transmissions > self.sent.0 {
            self.sent = (transmissions, now);
        }
    }

    /// An acknowledgement arrived: with that of the last segment comes the next request.
    pub fn on_ack<const TRACE: bool>(&mut self, ack: Ack<'_>, host: &mut FlowHost<'_, C, TRACE>) {
        self.sender.on_ack(ack, host);
        self.note_sent(host.now());
        // What was cut short by the flow's stop has not arrived.
        if !self.stopped
            && self.sender.all_acknowledged()
            && let Some((asked, bits)) = self.asked.take()
        {
            let received = host.world.flows[host.flow as usize].completed.unwrap_or(host.now().time());
            self.arrived(asked, bits, received, host);
            self.ask(received, host);
        }
    }

    /// The piece of so many bits that was asked for at `asked` has been `received`, both by the client's time.
    fn arrived<const TRACE: bool>(
        &mut self,
        asked: Time,
        bits: f64,
        received: Time,
        host: &mut FlowHost<'_, C, TRACE>,
    ) {
        match &mut self.application {
            Application::Page(page) => host.world.object_arrived(*page),
            Application::Video(player) => {
                let stalled = player.arrived(bits, received.since(asked), received);
                host.world.note_download(Download {
                    flow: host.flow,
                    number: player.asked - 1,
                    size: Bytes((bits / 8.0) as u64),
                    asked,
                    completed: received,
                    stalled,
                });
            }
        }
    }

    /// One of the sender's timers expired.
    pub fn on_timer<const TRACE: bool>(&mut self, which: TimerKind, host: &mut FlowHost<'_, C, TRACE>) {
        self.sender.on_timer(which, host);
        self.note_sent(host.now());
    }

    /// Nothing more is asked for.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.sender.stop();
    }
}

impl<C: Clock, const TRACE: bool> World<C, TRACE> {
    /// How long a request takes that travels alone: the propagation delay of the way of a flow's acknowledgements.
    fn way_back(&self, flow: u32) -> C::Span {
        let (first, hops) = self.flows[flow as usize].back;
        let hops = &self.routes.hops()[first as usize..][..usize::from(hops)];
        hops.iter().fold(C::NO_TIME, |sum, hop| C::add(sum, self.links[hop.link as usize].delay()))
    }

    /// A request that the client of a flow makes at `time` will arrive; now, if it should have arrived before.
    pub fn request_later(&mut self, flow: u32, time: Time) {
        let at = C::at(time).after(self.way_back(flow)).max(self.now);
        self.schedule(at, EventKind::FlowStarts(flow));
    }
}
