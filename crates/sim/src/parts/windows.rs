//! The windows of time that all parts of a run simulate at once, and the exchange at their ends.
//!
//! A window ends one lookahead after the earliest moment at which anything may still leave a part. Threads meet once a window: what leaves
//! a part is laid out for the others, with the part's earliest moment, and everybody finds the end of the next window from these. Two
//! sets of both take turns, so that a thread that is ahead writes into one while others still read the other.

use std::mem::{swap, take};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use inprofile_core::units::Duration;

use crate::calendar::Event;
use crate::clock::Exact;
use crate::engine::{Failure, Run};
use crate::event::EventKind;
use crate::parts::Windows;
use crate::parts::border::Parcel;

/// How often a thread looks whether the others have come before it sleeps: some microseconds.
const LOOKS: u32 = 4096;

/// Runs all parts to the end of the run, on up to so many threads.
///
/// # Errors
/// [`Failure::Stopped`] if `stop` was set.
pub(crate) fn run(
    parts: &mut [Run<Exact, false>],
    lookahead: Duration,
    threads: usize,
    stop: &AtomicBool,
    reached: &AtomicU64,
    clock: &(dyn Fn() -> u64 + Sync),
) -> Result<Windows, Failure> {
    let all = parts.len();
    let each = all.div_ceil(threads.max(1));
    // Mechanisms that begin at once may have signalled already.
    let first = parts.iter().map(|run| run.world.earliest()).min().unwrap_or(u64::MAX);
    let shared = Shared {
        turns: [Turn::new(all), Turn::new(all)],
        first,
        lookahead,
        meeting: Meeting::new(all.div_ceil(each)),
        stop,
        reached,
        clock,
    };
    let groups = (0..all).step_by(each).zip(parts.chunks_mut(each));
    let groups: Vec<Mutex<Group<'_>>> =
        groups.map(|(number, group)| Mutex::new((number..).zip(group).collect())).collect();
    let taken = |group: &Mutex<_>| take(&mut *group.lock().unwrap_or_else(PoisonError::into_inner));
    let windows = std::thread::scope(|scope| {
        let (mut own, shared) = (Group::new(), &shared);
        for (place, group) in groups.iter().enumerate() {
            let work = move || {
                shared.work(taken(group));
            };
            // The first is this thread's, and so is each for which the system has no thread.
            if place == 0 || std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                shared.meeting.all.fetch_sub(usize::from(place > 0), Ordering::SeqCst);
                own.append(&mut taken(group));
            }
        }
        shared.work(own)
    });
    let crossed = parts.iter().filter_map(|run| run.world.border.as_ref()).map(|border| border.crossed).sum();
    if shared.turns.iter().any(|t| t.stopped.load(Ordering::Relaxed)) {
        Err(Failure::Stopped)
    } else {
        Ok(Windows { crossed, ..windows })
    }
}

/// The parts of one thread, with their numbers.
type Group<'a> = Vec<(usize, &'a mut Run<Exact, false>)>;

/// What parts lay out for each other.
struct Turn {
    /// What leaves for each part, from each part: `parcels[to][from]`.
    parcels: Vec<Vec<Mutex<Parcel>>>,
    /// The earliest moment at which anything may still leave each part.
    earliest: Vec<AtomicU64>,
    /// How long each part has taken.
    took: Vec<AtomicU64>,
    /// A part was stopped.
    stopped: AtomicBool,
}

impl Turn {
    fn new(parts: usize) -> Turn {
        let boxes = || (0..parts).map(|_| Mutex::default()).collect();
        Turn {
            parcels: (0..parts).map(|_| boxes()).collect(),
            earliest: (0..parts).map(|_| AtomicU64::new(u64::MAX)).collect(),
            took: (0..parts).map(|_| AtomicU64::new(0)).collect(),
            stopped: AtomicBool::new(false),
        }
    }
}

struct Shared<'a> {
    turns: [Turn; 2],
    /// The earliest moment of all parts at the start of the run.
    first: u64,
    lookahead: Duration,
    meeting: Meeting,
    stop: &'a AtomicBool,
    reached: &'a AtomicU64,
    clock: &'a (dyn Fn() -> u64 + Sync),
}

impl Shared<'_> {
    /// One thread, with its parts.
    fn work(&self, mut parts: Group<'_>) -> Windows {
        let _leaves = Leaves(&self.meeting);
        let (mut earliest, mut windows) = (self.first, Windows::default());
        let mut took = vec![0; self.turns[0].took.len()];
        for turn in (0..2).cycle() {
            let (here, before) = (&self.turns[turn], &self.turns[1 - turn]);
            let until = earliest.saturating_add(self.lookahead.0);
            for (place, run) in &mut parts {
                let began = (self.clock)();
                collect(run, &before.parcels[*place]);
                self.simulate(run, *place, until, here);
                here.took[*place].store((self.clock)() - began, Ordering::Relaxed);
            }
            if !self.meeting.meet() || here.stopped.load(Ordering::Relaxed) {
                return windows;
            }
            self.reached.fetch_max(earliest, Ordering::Relaxed);
            windows.count += 1;
            let each = here.took.iter().map(|took| took.load(Ordering::Relaxed));
            windows.critical += each.clone().max().unwrap_or(0);
            took.iter_mut().zip(each).for_each(|(all, took)| *all += took);
            if parts.iter().all(|(_, run)| run.over) {
                break;
            }
            earliest = least(&here.earliest);
        }
        windows.largest = took.into_iter().max().unwrap_or(0);
        // All end in the same window. What is still on its way counts as in flight.
        for (place, run) in parts {
            self.turns.iter().for_each(|turn| collect(run, &turn.parcels[place]));
        }
        windows
    }

    /// A part simulates a window, and lays out what leaves it.
    fn simulate(&self, run: &mut Run<Exact, false>, place: usize, until: u64, here: &Turn) {
        let pause = EventKind::Pause;
        run.world.calendar.push(Event::new(until, pause.rank(), pause.pack()));
        let nobody = AtomicU64::new(0);
        if run.advance(self.stop, &nobody).is_err() || self.stop.load(Ordering::Relaxed) {
            here.stopped.store(true, Ordering::Relaxed);
        }
        here.earliest[place].store(run.world.earliest(), Ordering::Relaxed);
        if let Some(border) = &mut run.world.border {
            border.soonest = u64::MAX;
            for (to, parcel) in border.out.iter_mut().enumerate().filter(|(_, parcel)| !parcel.is_empty()) {
                // What was in it before has been taken in the window between.
                swap(&mut *here.parcels[to][place].lock().unwrap_or_else(PoisonError::into_inner), parcel);
            }
        }
    }
}

fn least(of: &[AtomicU64]) -> u64 {
    of.iter().map(|n| n.load(Ordering::Relaxed)).min().unwrap_or(u64::MAX)
}

/// A part takes what has been laid out for it.
fn collect(run: &mut Run<Exact, false>, parcels: &[Mutex<Parcel>]) {
    for from in parcels {
        run.world.take_parcel(&mut from.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Where threads wait for each other: looking for a while, then asleep.
struct Meeting {
    /// How many come.
    all: AtomicUsize,
    here: AtomicUsize,
    held: AtomicUsize,
    asleep: AtomicUsize,
    /// A thread has left for good, as it panicked.
    broken: AtomicBool,
    lock: Mutex<()>,
    bell: Condvar,
}

impl Meeting {
    fn new(all: usize) -> Meeting {
        Meeting {
            all: AtomicUsize::new(all),
            here: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            asleep: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            lock: Mutex::new(()),
            bell: Condvar::new(),
        }
    }

    /// Waits until all have come. False: one never will.
    fn meet(&self) -> bool {
        let held = self.held.load(Ordering::SeqCst);
        if self.here.fetch_add(1, Ordering::SeqCst) + 1 == self.all.load(Ordering::SeqCst) {
            self.here.store(0, Ordering::SeqCst);
            self.end(held + 1);
        } else {
            let broken = || self.broken.load(Ordering::SeqCst);
            self.wait_for(|| self.held.load(Ordering::SeqCst) != held || broken());
        }
        !self.broken.load(Ordering::SeqCst)
    }

    fn wait_for(&self, over: impl Fn() -> bool) {
        for _ in 0..LOOKS {
            if over() {
                return;
            }
            std::hint::spin_loop();
        }
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.asleep.fetch_add(1, Ordering::SeqCst);
        while !over() {
            guard = self.bell.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.asleep.fetch_sub(1, Ordering::SeqCst);
    }

    /// The meeting is over.
    fn end(&self, held: usize) {
        self.held.store(held, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) > 0 {
            let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.bell.notify_all();
        }
    }
}

/// Lets the others go if a thread panics.
struct Leaves<'a>(&'a Meeting);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::SeqCst);
            self.0.end(self.0.held.load(Ordering::SeqCst) + 1);
        }
    }
}
