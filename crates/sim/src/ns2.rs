//! Support for comparing a run with ns-2 2.35 event by event: its clock, its packet trace, the times
//! at which its scripts send datagrams. Its TCP is in [`crate::tcp::ns2`].
//!
//! The engine meets ns-2 in two places: [`Clock::NS2`], its order of events, and the one random stream that all
//! components share (`World::shared`). TCP meets it in [`Profile::Ns2`](crate::tcp::Profile::Ns2).

pub mod clock;
pub mod trace;

use inprofile_core::rng::Rng;
use inprofile_core::units::Time;

use crate::clock::Clock;
use crate::traffic::udp;
use clock::Seconds;

/// When a source that is not [steady](udp::Config::is_steady) and starts at `start` sends in the ns-2 profile: in
/// seconds, each the sum of the one before and the time to wait.
pub fn datagram_times(
    config: udp::Config,
    start: Time,
    stop: Option<Time>,
    rng: Rng,
) -> impl Iterator<Item = f64> {
    let mut schedule = udp::Schedule::new(config, stop, rng);
    let mut due = schedule.begin(start);
    let mut now = Seconds::at(start);
    std::iter::from_fn(move || {
        now = now.after(Seconds::span(udp::until(due?, now)));
        due = schedule.following();
        Some(now.secs())
    })
}
