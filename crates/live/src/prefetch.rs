//! Asks the processor for memory that will be needed soon, so that the cache misses of several packets overlap. A hint: it changes
//! nothing but time, and nothing at all on processors other than x86-64.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Prefetches all cache lines of `what`.
#[inline]
pub fn prefetch<T: ?Sized>(what: &T) {
    let start = std::ptr::from_ref(what).cast::<i8>();
    let first = start.map_addr(|address| address & !(LINE - 1));
    let end = start.addr() + size_of_val(what);
    for at in (0..end - first.addr()).step_by(LINE) {
        line(first.wrapping_add(at));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn line(at: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing that the program sees and faults at no address; SSE is part of x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn line(_: *const i8) {}
