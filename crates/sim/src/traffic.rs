//! The traffic of flows: TCP with unlimited data, TCP transfers of a given size, pages of the web and adaptive video over TCP, and
//! datagrams on a schedule of their own.

pub mod distribution;
pub mod page_load;
pub mod requests;
pub mod udp;
pub mod video;

use crate::clock::Clock;
use crate::ends::FlowHost;
use crate::network::Transport;
use crate::tcp::{Ack, Host, Sender, Tally, TimerKind};
use crate::traffic::requests::{Application, Requests};
use crate::traffic::video::Player;

/// The sender of a flow's data, if it is not [among Linux's](crate::senders).
#[derive(Debug)]
pub enum Source<C: Clock> {
    /// TCP.
    Tcp(Sender<C>),
    /// TCP, for an application that asks for one piece of data after another.
    Requests(Box<Requests<C>>),
    /// Datagrams.
    Udp(udp::Source),
    /// An external host, and the state its TCP reports, if it is TCP.
    Outside(Option<ExternalSender>),
    /// It is in another part of the run.
    Elsewhere,
}

impl<C: Clock> Source<C> {
    /// Not started. `uniform` is drawn once by TCP's ns-2 profile; `rng` is for random times.
    pub fn new(
        transport: &Transport,
        stop: Option<inprofile_core::units::Time>,
        rng: inprofile_core::rng::Rng,
        uniform: impl FnOnce() -> f64,
    ) -> Source<C> {
        match transport {
            Transport::Tcp(config) => Source::Tcp(Sender::new(config, uniform)),
            Transport::Transfer(config, segments) => {
                let mut sender = Sender::new(config, uniform);
                // Segment 0 is the SYN.
                sender.set_data_end(segments.saturating_add(1));
                Source::Tcp(sender)
            }
            Transport::Web(config, page) => {
                let sender = Sender::new(config, uniform);
                Source::Requests(Box::new(Requests::new(sender, Application::Page(*page))))
            }
            Transport::Video(config, video) => {
                let (sender, player) = (Sender::new(config, uniform), Player::new(*video));
                Source::Requests(Box::new(Requests::new(sender, Application::Video(player))))
            }
            Transport::Udp(config) => Source::Udp(udp::Source::new(*config, stop, rng)),
        }
    }

    /// The flow starts.
    pub fn start<const TRACE: bool>(&mut self, host: &mut FlowHost<'_, C, TRACE>) {
        match self {
            Source::Tcp(sender) => sender.start(host),
            Source::Requests(requests) => requests.start(host),
            Source::Udp(source) if source.is_ns2_cbr::<C>() => send_datagram(source, host),
            Source::Udp(source) => {
                let first = source.start(host.now());
                wait(first, host);
            }
            Source::Outside(_) | Source::Elsewhere => {}
        }
    }

    /// The application has no more data.
    pub fn stop<const TRACE: bool>(&mut self, host: &mut FlowHost<'_, C, TRACE>) {
        match self {
            Source::Tcp(sender) => sender.stop(),
            Source::Requests(requests) => requests.stop(),
            Source::Udp(_) => host.cancel_timer(TimerKind::Send),
            Source::Outside(_) | Source::Elsewhere => {}
        }
    }

    /// An acknowledgement arrived: see [`Sender::on_ack`].
    #[inline]
    pub fn on_ack<const TRACE: bool>(&mut self, ack: Ack<'_>, host: &mut FlowHost<'_, C, TRACE>) {
        match self {
            Source::Tcp(sender) => sender.on_ack(ack, host),
            Source::Requests(requests) => requests.on_ack(ack, host),
            Source::Udp(_) | Source::Outside(_) | Source::Elsewhere => {}
        }
    }

    /// Reads from each cache line that every acknowledgement touches, where many flows have such a source: what it reads means
    /// nothing.
    #[inline]
    pub fn touch(&self) -> u64 {
        match self {
            Source::Tcp(Sender::Rfc(sender)) => sender.touch(),
            other => other.window().map_or(0, |(cwnd, _)| cwnd.to_bits()),
        }
    }

    /// One of its timers expired.
    pub fn on_timer<const TRACE: bool>(&mut self, which: TimerKind, host: &mut FlowHost<'_, C, TRACE>) {
        match self {
            Source::Tcp(sender) => sender.on_timer(which, host),
            Source::Requests(requests) => requests.on_timer(which, host),
            Source::Udp(source) => send_datagram(source, host),
            Source::Outside(_) | Source::Elsewhere => {}
        }
    }

    /// Whether it is a TCP sender.
    pub fn is_tcp(&self) -> bool {
        !matches!(self, Source::Udp(_) | Source::Outside(None) | Source::Elsewhere)
    }

    /// A TCP sender's congestion window and slow-start threshold in segments.
    pub fn window(&self) -> Option<(f64, f64)> {
        match self {
            Source::Tcp(sender) => Some((sender.cwnd(), sender.ssthresh())),
            Source::Requests(r) => Some((r.sender.cwnd(), r.sender.ssthresh())),
            Source::Outside(sender) => sender.map(|s| (s.cwnd, s.ssthresh)),
            Source::Udp(_) | Source::Elsewhere => None,
        }
    }

    /// The counts of a TCP sender since the start of the run; zero for others.
    pub fn tally(&self) -> Tally {
        match self {
            Source::Tcp(sender) => sender.tally(),
            Source::Requests(requests) => requests.sender.tally(),
            Source::Outside(sender) => sender.map_or_else(Tally::default, |s| s.tally),
            Source::Udp(_) | Source::Elsewhere => Tally::default(),
        }
    }
}

/// A datagram is due: it is sent, and the timer set for the next one.
fn send_datagram<C: Clock, const TRACE: bool>(source: &mut udp::Source, host: &mut FlowHost<'_, C, TRACE>) {
    let (number, size, ecn) = source.packet();
    host.world.send_datagram(host.flow, number, size, ecn);
    let next = source.next(host.now());
    wait(next, host);
}

fn wait<C: Clock, const TRACE: bool>(span: Option<C::Span>, host: &mut FlowHost<'_, C, TRACE>) {
    if let Some(span) = span {
        host.set_timer(TimerKind::Send, span);
    }
}

/// The last report of an external sender.
#[derive(Clone, Copy, Debug)]
pub struct ExternalSender {
    /// Congestion window in segments.
    pub cwnd: f64,
    /// Slow-start threshold in segments; infinite before the first loss.
    pub ssthresh: f64,
    /// The counts of it since the start of the run.
    pub tally: Tally,
}

/// Before its first report.
impl Default for ExternalSender {
    fn default() -> ExternalSender {
        ExternalSender { cwnd: 0.0, ssthresh: f64::INFINITY, tally: Tally::default() }
    }
}
