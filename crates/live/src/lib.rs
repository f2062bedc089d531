//! The mechanisms of `inprofile-core` on real packets, in wall time or under a virtual clock.
//!
//! A frame comes in through a driver of [`io`]; [`packet`] reads its headers, [`flow`] identifies its flow; a [`datapath`] marks
//! it, queues it and sends it at its deadline, with the DSCP of its colour. Only the driver knows what the time is: under
//! [`io::replay`] the same code runs in virtual time.
//!
//! ```text
//! io ─→ packet::parse ─→ Policy ─→ markers ─→ queue and its discipline ─→ shaper ─→ DSCP, ECN ─→ io
//! ```

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod capture;
pub mod code_points;
pub mod datapath;
#[cfg(target_os = "linux")]
pub mod emulate;
pub mod flow;
pub mod io;
pub mod packet;

#[expect(unsafe_code, reason = "the standard library's prefetch is an intrinsic of the processor")]
pub mod prefetch {
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
}

pub mod addresses {
    //! The addresses of a flow's two hosts and the code point of its class, between namespaces as in captures.

    use std::net::Ipv4Addr;

    use inprofile_sim::network::{Flow, Network};

    use crate::code_points::Dscp;

    /// Where receivers listen, and datagrams come from.
    pub const PORT: u16 = 5001;

    /// So many flows have addresses.
    pub const MOST: u32 = (1 << 20) - 1;

    /// A sender's address and its receiver's: the flow's number in 10.64.0.0/12 and in 10.80.0.0/12.
    #[must_use]
    pub fn of(flow: u32) -> (Ipv4Addr, Ipv4Addr) {
        let within = |base: [u8; 4]| Ipv4Addr::from(u32::from_be_bytes(base) + flow + 1);
        (within([10, 64, 0, 0]), within([10, 80, 0, 0]))
    }

    /// The flow that an address belongs to, and whether it is the sender's.
    #[must_use]
    pub fn flow_of(address: Ipv4Addr) -> Option<(u32, bool)> {
        let n = u32::from(address);
        let within = |base: [u8; 4]| n.checked_sub(u32::from_be_bytes(base) + 1).filter(|i| *i < MOST);
        within([10, 80, 0, 0]).map(|f| (f, false)).or_else(|| within([10, 64, 0, 0]).map(|f| (f, true)))
    }

    /// The code point that a flow's class is named after, at the first link of its way that has classes: `ef`, `cs1`, `be`.
    #[must_use]
    pub fn of_class(network: &Network, flow: &Flow) -> Option<Dscp> {
        let mut queues = flow.path.iter().map(|l| network.links[*l as usize].queue.classes());
        let own = queues.find(|c| !c.is_empty())?.iter().find(|c| c.setup.number == flow.class)?;
        Dscp::parse(&own.name)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn addresses_name_their_flow() {
            for flow in [0, 1, 255, 256, 70_000, MOST - 1] {
                let (sender, receiver) = of(flow);
                assert_eq!((flow_of(sender), flow_of(receiver)), (Some((flow, true)), Some((flow, false))));
            }
            assert_eq!(of(0).0, Ipv4Addr::new(10, 64, 0, 1));
            let others = [[10, 64, 0, 0], [10, 63, 255, 255], [10, 96, 0, 1], [192, 168, 0, 1]];
            assert!(others.iter().all(|a| flow_of(Ipv4Addr::from(*a)).is_none()));
        }
    }
}

#[cfg(target_os = "linux")]
pub mod namespace {
    //! Network namespaces without names: one exists while a descriptor, a thread or a socket holds it, so the kernel removes it
    //! whenever and however this process ends.

    use std::fs::File;
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd};

    use crate::io::sys;

    /// A network namespace.
    #[derive(Debug)]
    pub struct Namespace(File);

    /// Why no namespace can be made, and what to do.
    pub const HINT: &str = "making network namespaces needs root (CAP_SYS_ADMIN), or `unshare -Urn` where user namespaces are allowed";

    impl Namespace {
        /// A new one, with nothing in it but a loopback interface that is down.
        ///
        /// # Errors
        /// `PermissionDenied`, with what to do; else what the system says.
        pub fn create() -> io::Result<Namespace> {
            // A thread that leaves for the new namespace and ends; what is left is the descriptor.
            apart(|| {
                sys::unshare_network().map_err(|e| match e.kind() {
                    io::ErrorKind::PermissionDenied => io::Error::new(e.kind(), HINT),
                    _ => e,
                })?;
                Namespace::current()
            })
        }

        /// That of the calling thread.
        ///
        /// # Errors
        /// The system's error.
        pub fn current() -> io::Result<Namespace> {
            File::open("/proc/thread-self/ns/net").map(Namespace)
        }

        /// Moves the calling thread into it, for good.
        ///
        /// # Errors
        /// The system's error.
        pub fn enter(&self) -> io::Result<()> {
            sys::enter_network(self.0.as_fd())
        }

        /// Does something inside it, on a thread of its own.
        ///
        /// # Errors
        /// The error of the system or of `work`.
        pub fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
            apart(|| {
                self.enter()?;
                work()
            })
        }

        /// The descriptor: `nsenter --net=/proc/PID/fd/N` looks inside.
        #[must_use]
        pub fn descriptor(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }

    fn apart<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            scope.spawn(work).join().unwrap_or_else(|_| Err(io::Error::other("a thread in a namespace died")))
        })
    }
}
