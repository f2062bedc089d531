//! The memory that a flow takes. The benchmark's row measures pages of the process; here bytes are counted as they are allocated, so that the
//! figure is the same on every machine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use inprofile_benches::{Laws, dumbbell, run};

/// The system's allocator, and a count of what this thread holds and has held at most.
struct Counted;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
    static MOST: Cell<i64> = const { Cell::new(0) };
}

#[expect(
    unsafe_code,
    reason = "an allocator is unsafe by its trait; this one hands everything on to the system's"
)]
// SAFETY: as the system's allocator, which does all the work.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get() + layout.size() as i64);
        MOST.set(MOST.get().max(HELD.get()));
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as i64);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        HELD.set(HELD.get() + size as i64 - layout.size() as i64);
        MOST.set(MOST.get().max(HELD.get()));
        // SAFETY: the caller's promise is handed on.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// The most that a run of so many flows holds beyond what was held before.
fn most(flows: u64, laws: Laws) -> i64 {
    let scenario = dumbbell(flows, 2.0, laws);
    let before = HELD.get();
    MOST.set(before);
    let (outcome, _) = run(&scenario, 1);
    assert_eq!(outcome.flows.len() as u64, flows);
    MOST.get() - before
}

/// The difference between one number of flows and twice as many, so that a run's fixed cost cancels out and what grows by doubling is as
/// full in both. These are a 64th and a 32nd of the benchmark's flows, where it is as full again.
fn each_takes_at_most(bytes: f64, laws: Laws) {
    let (some, twice) = (most(1_563, laws), most(3_125, laws));
    let each = (twice - some) as f64 / 1_562.0;
    assert!(each <= bytes, "{each:.0} B a flow are allocated, packets under way and room for more included");
}

// Bounds are about 3 % above what is taken.

#[test]
fn a_flow_by_the_rfcs_takes_no_more_than_it_did() {
    each_takes_at_most(2130.0, Laws::Own);
}

#[test]
fn a_flow_of_linux_takes_no_more_than_it_did() {
    each_takes_at_most(4490.0, Laws::Linux);
}
