//! The traffic of flows: TCP with unlimited data, TCP transfers of a given size, pages of the web and adaptive video over TCP, and
//! datagrams on a schedule of their own.

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

pub mod distribution {
    //! How lengths are drawn around a mean: periods of on/off sources, sizes of transfers, times between arrivals.

    use inprofile_core::rng::Rng;

    /// A distribution with a mean that is given apart from it.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub enum Distribution {
        /// Always the mean.
        Fixed,
        /// Exponential: times between events of a Poisson process.
        Exponential,
        /// Pareto with this shape, above 1: few are very long (below 2 the variance is infinite).
        Pareto(f64),
    }

    impl Distribution {
        /// A random value with this mean; `Fixed` uses no random number.
        #[must_use]
        pub fn draw(self, mean: f64, rng: &mut Rng) -> f64 {
            match self {
                Distribution::Fixed => mean,
                // Inverses of the distribution functions, with 1 − u in (0, 1].
                Distribution::Exponential => -mean * libm::log(1.0 - rng.uniform()),
                Distribution::Pareto(shape) => {
                    let least = mean * (shape - 1.0) / shape;
                    least * libm::pow(1.0 - rng.uniform(), -1.0 / shape)
                }
            }
        }

        /// The mean of such a value when what is below `least` becomes that and what is above `most` becomes that: the integral of
        /// P(X > x) from `least` to `most`, above `least`.
        #[must_use]
        pub fn mean_within(self, mean: f64, least: f64, most: f64) -> f64 {
            match self {
                Distribution::Fixed => mean.clamp(least, most),
                Distribution::Exponential => {
                    least + mean * (libm::exp(-least / mean) - libm::exp(-most / mean))
                }
                Distribution::Pareto(shape) => {
                    let scale = mean * (shape - 1.0) / shape;
                    let from = scale.clamp(least, most);
                    let tail = |x: f64| libm::pow(scale / x, shape - 1.0) * scale / (shape - 1.0);
                    from + if most > scale { tail(from) - tail(most) } else { 0.0 }
                }
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn drawn(law: Distribution, n: u32) -> Vec<f64> {
            let mut rng = Rng::for_component(5, "law");
            let mut all: Vec<f64> = (0..n).map(|_| law.draw(2.0, &mut rng)).collect();
            all.sort_by(f64::total_cmp);
            all
        }

        /// Mean and median by hand: 2 and 2 ln 2; Pareto of shape 3: 2, and least 4/3 times the cube root of 2.
        #[test]
        fn means_and_medians() {
            let n = 100_000;
            for (law, median, sigma) in [
                (Distribution::Exponential, 2.0 * std::f64::consts::LN_2, 2.0),
                (Distribution::Pareto(3.0), 4.0 / 3.0 * 2f64.cbrt(), 4.0 / 3.0 * 0.75f64.sqrt()),
            ] {
                let all = drawn(law, n);
                let mean = all.iter().sum::<f64>() / f64::from(n);
                // Five standard errors.
                assert!((mean - 2.0).abs() < 5.0 * sigma / f64::from(n).sqrt(), "{law:?}: mean {mean}");
                assert!(
                    (all[n as usize / 2] / median - 1.0).abs() < 0.02,
                    "{law:?}: {}",
                    all[n as usize / 2]
                );
            }
            for law in [Distribution::Exponential, Distribution::Pareto(3.0), Distribution::Pareto(1.5)] {
                for (least, most) in [(0.1, 100.0), (1.0, 3.0), (1.7, 1.9), (3.0, 5.0)] {
                    let all = drawn(law, n);
                    let bounded = all.iter().map(|x| x.clamp(least, most)).sum::<f64>() / f64::from(n);
                    let mean = law.mean_within(2.0, least, most);
                    assert!((bounded / mean - 1.0).abs() < 0.02, "{law:?} {least} {most}: {bounded} {mean}");
                }
            }
            assert_eq!(drawn(Distribution::Fixed, 3), [2.0; 3]);
            assert!(drawn(Distribution::Pareto(3.0), n)[0] >= 4.0 / 3.0);
        }
    }
}

pub mod page_load {
    //! A page of the web in a run: which of its objects have been asked for, and how many are on their way.

    use std::ops::Range;

    use inprofile_core::units::{Bytes, Duration, Time};

    use crate::clock::Clock;
    use crate::network::Page;
    use crate::outcome::Download;
    use crate::world::World;

    /// A page in a run.
    #[derive(Debug)]
    pub struct PageLoad {
        page: Page,
        /// Objects that have been asked for.
        asked: usize,
        /// Connections that are waiting for an object.
        waiting: u32,
    }

    impl PageLoad {
        /// Not begun.
        #[must_use]
        pub fn new(page: Page) -> PageLoad {
            PageLoad { page, asked: 0, waiting: 0 }
        }

        /// The flows that fetch it.
        #[must_use]
        pub fn connections(&self) -> Range<u32> {
            self.page.connections.clone()
        }

        /// A connection asks for an object: how many segments it has. `None`: there are no more.
        pub fn ask(&mut self) -> Option<u32> {
            let size = self.page.objects.get(self.asked).copied()?;
            self.asked += 1;
            self.waiting += 1;
            Some(size)
        }

        /// A connection has received its object.
        pub fn object_arrived(&mut self) {
            self.waiting -= 1;
        }

        /// The page, if all of it has arrived.
        #[must_use]
        pub fn complete(&self) -> Option<&Page> {
            (self.waiting == 0 && self.asked == self.page.objects.len()).then_some(&self.page)
        }
    }

    impl<C: Clock, const TRACE: bool> World<C, TRACE> {
        /// A page or a chunk of video has been received whole, as is known now.
        pub(crate) fn note_download(&mut self, download: Download) {
            self.downloads.push(((self.now, self.order), download));
        }

        /// A connection of a page asks for an object: how many segments it has. `None`: there are no more.
        pub fn ask_for_object(&mut self, page: u32) -> Option<u32> {
            self.pages[page as usize].ask()
        }

        /// A connection has received its object.
        pub fn object_arrived(&mut self, page: u32) {
            self.pages[page as usize].object_arrived();
        }

        /// A connection finds no more objects. If it was the last to wait, the page is complete, and the next one is due.
        pub fn page_may_be_complete(&mut self, page: u32) {
            let Some(page) = self.pages[page as usize].complete() else { return };
            let flows = &self.flows[page.connections.start as usize..page.connections.end as usize];
            let payload = |f: &crate::flow::FlowState<C>| f.counts.in_order_payload_bytes;
            let download = Download {
                flow: page.connections.start,
                number: page.number,
                size: Bytes(flows.iter().map(payload).sum()),
                asked: flows[0].start,
                completed: flows.iter().filter_map(|f| f.completed).max().unwrap_or(Time::ZERO),
                stalled: Duration::ZERO,
            };
            let (next, think) = (page.next, page.think);
            let start = download.completed + think;
            self.note_download(download);
            let Some(next) = next else { return };
            for flow in self.pages[next as usize].connections() {
                self.flows[flow as usize].start = start;
                self.request_later(flow, start);
            }
        }
    }
}
