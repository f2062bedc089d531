//! BPF programs at an interface's clsact hooks, for kernels without tcx: asked before the filters that [close](super::closed) the interface,
//! and before all others, as they have the first preference and the newest filter of one is asked first (`cls_bpf_change`).
//!
//! A program is replaced at its place: no frame passes between the two. It is the interface's, as those filters are: it stays when the
//! process dies, and goes with the interface.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::closed::{Hook, MARK, about_filter, lacking, number};
use super::netlink::{Message, Netlink};

/// A program's number among filters of our preference, and its name.
pub(super) const PROGRAM: u32 = MARK + 1;
/// See [`PROGRAM`].
pub(super) const NAME: &[u8] = b"inprofiled\0";
const HOOKS: [Hook; 2] = [Hook::Ingress, Hook::Egress];

impl Netlink {
    /// Puts a loaded program first at a hook of an interface that is [closed](Netlink::close), in place of the one before. Takes
    /// CAP_NET_ADMIN.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn put_program(&self, device: u32, hook: Hook, program: BorrowedFd<'_>) -> io::Result<()> {
        if !self.has_program(device, hook)? {
            // Replaced, it would stay behind what has come before it.
            self.take_program(device, hook)?;
        }
        let options = Message::attributes()
            .attribute(number::TCA_BPF_FD, &program.as_raw_fd().to_ne_bytes())
            .attribute(number::TCA_BPF_NAME, NAME)
            .attribute(number::TCA_BPF_FLAGS, &number::TCA_BPF_FLAG_ACT_DIRECT.to_ne_bytes())
            .attribute(number::TCA_BPF_FLAGS_GEN, &number::TCA_CLS_FLAGS_SKIP_HW.to_ne_bytes());
        let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        let message = Message::new(libc::RTM_NEWTFILTER, flags, &about_filter(device, hook, PROGRAM))
            .attribute(number::TCA_KIND, b"bpf\0")
            .attribute(number::TCA_OPTIONS, &options.finish_attributes());
        self.ask(message).map_err(|e| lacking(e, "CONFIG_NET_CLS_BPF", "cls_bpf"))
    }

    /// Whether a program of ours is there and is asked first.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn has_program(&self, device: u32, hook: Hook) -> io::Result<bool> {
        Ok(self.filters(device, hook)?.first().is_some_and(|f| f.program))
    }

    /// Takes ours away from both hooks, if they are there.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn take_programs(&self, device: u32) -> io::Result<()> {
        HOOKS.into_iter().try_for_each(|hook| self.take_program(device, hook))
    }

    fn take_program(&self, device: u32, hook: Hook) -> io::Result<()> {
        if !self.filters(device, hook)?.iter().any(|f| f.program) {
            return Ok(());
        }
        let message = Message::new(libc::RTM_DELTFILTER, 0, &about_filter(device, hook, PROGRAM));
        self.ask(message.attribute(number::TCA_KIND, b"bpf\0"))
    }
}
