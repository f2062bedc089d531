//! An interface that is closed to this machine's own network stack, while packet sockets go on: what arrives there reaches no
//! IP stack, nor VLAN, macvlan or the like above the interface, and nothing leaves by it but what [the router](MARK) sends.
//!
//! Two filters at the interface's clsact hooks (tc-bpf(8)) drop everything. On receipt that hook is behind the packet sockets and
//! before all protocols (`__netif_receive_skb_core`). On sending it is in `__dev_queue_xmit`, which a packet socket that bypasses
//! the queue doesn't pass; frames that do are told by their mark. The programs are classic BPF, which a filter takes as it is:
//! no compiler, no bpf(2), and CAP_NET_ADMIN in the network namespace is enough.
//! The filters are the interface's: they stay when a process dies, and go with the interface.
//! Non-goal: XDP, whose hook comes before the packet sockets. Not closed: root's own programs at these hooks that let frames
//! pass before ours are asked (tcx), and other packet sockets, which see what arrives.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::netlink::{HEADER, Message, Netlink, attribute};

/// The mark of the router's own frames (SO_MARK), "inpr": setting one takes CAP_NET_ADMIN, or CAP_NET_RAW.
pub const MARK: u32 = u32::from_be_bytes(*b"inpr");

/// linux/rtnetlink.h, linux/pkt_sched.h, linux/pkt_cls.h.
pub(super) mod number {
    pub const TCA_KIND: u16 = 1;
    pub const TCA_OPTIONS: u16 = 2;
    pub const TCA_BPF_OPS_LEN: u16 = 4;
    pub const TCA_BPF_OPS: u16 = 5;
    pub const TCA_BPF_FD: u16 = 6;
    pub const TCA_BPF_NAME: u16 = 7;
    pub const TCA_BPF_FLAGS: u16 = 8;
    pub const TCA_BPF_FLAGS_GEN: u16 = 9;
    /// The program's return value is the verdict on the packet.
    pub const TCA_BPF_FLAG_ACT_DIRECT: u32 = 1;
    /// Not by the interface itself, which would drop it before packet sockets see it.
    pub const TCA_CLS_FLAGS_SKIP_HW: u32 = 1;
    pub const CLSACT: u32 = 0xffff_fff1;
    pub const HANDLE: u32 = 0xffff_0000;
    /// TC_ACT_UNSPEC: ask the next filter.
    pub const NEXT: u32 = u32::MAX;
    /// TC_ACT_SHOT.
    pub const DROP: u32 = 2;
    /// SKF_AD_OFF + SKF_AD_MARK: where a classic program finds a packet's mark.
    pub const AT_MARK: u32 = (-0x1000_i32 + 20) as u32;
}

/// Our filters' place: the first of all, for every protocol.
const PREFERENCE: u32 = 1;
/// Our filters' number among those of the same preference.
const FILTER: u32 = MARK;

/// Where a filter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// On receipt.
    Ingress = 0xfff2,
    /// On sending.
    Egress = 0xfff3,
}

/// Who made the hooks, as a filter's program says by its first instruction, which has no other effect: so it is known to
/// the next process to remove the filter, however the one ended that put it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    Ours = 1,
    Others = 2,
}

/// A filter that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    preference: u32,
    /// It is a program of ours.
    pub(super) program: bool,
    /// As it was put there by us; `None`: somebody else's.
    ours: Option<(Made, Vec<u8>)>,
}

/// An instruction of classic BPF, struct sock_filter.
fn instruction(code: libc::c_uint, jumps: [u8; 2], k: u32) -> [u8; 8] {
    let [a, b] = (code as u16).to_ne_bytes();
    let [c, d, e, f] = k.to_ne_bytes();
    [a, b, jumps[0], jumps[1], c, d, e, f]
}

/// X := MARK + `made`: what our programs begin with.
fn signature(made: Made) -> [u8; 8] {
    instruction(libc::BPF_LDX | libc::BPF_W | libc::BPF_IMM, [0; 2], MARK + made as u32)
}

fn program(hook: Hook, made: Made) -> Vec<u8> {
    let back = |k| instruction(libc::BPF_RET | libc::BPF_K, [0; 2], k);
    let drop = back(number::DROP);
    match hook {
        Hook::Ingress => [signature(made), drop].concat(),
        Hook::Egress => {
            let load = instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, [0; 2], number::AT_MARK);
            let is_ours = instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, [0, 1], MARK);
            [signature(made), load, is_ours, back(number::NEXT), drop].concat()
        }
    }
}

/// struct tcmsg: family, pad, interface, handle, parent, info.
fn about(device: u32, handle: u32, parent: u32, info: u32) -> Vec<u8> {
    [0, device, handle, parent, info].iter().flat_map(|w| w.to_ne_bytes()).collect()
}

/// The filter of this number at our place.
pub(super) fn about_filter(device: u32, hook: Hook, filter: u32) -> Vec<u8> {
    let protocol = u32::from((libc::ETH_P_ALL as u16).to_be());
    about(device, filter, number::HANDLE | hook as u32, PREFERENCE << 16 | protocol)
}

impl Netlink {
    /// Closes an interface to this machine's network stack; whether anything had to be done for it. Done again, it completes
    /// what is missing and changes nothing else. Takes CAP_NET_ADMIN.
    ///
    /// # Errors
    /// `AddrInUse` if somebody else's filter or queueing discipline is in its place; `Unsupported` if the kernel has none; what
    /// to do; else what the kernel answers.
    pub fn close(&self, device: u32) -> io::Result<bool> {
        let there = [self.ours_alone(device, Hook::Ingress)?, self.ours_alone(device, Hook::Egress)?];
        let made = match there.iter().flatten().next() {
            Some((made, _)) => *made,
            None => self.make_hooks(device)?,
        };
        let mut done = false;
        for (hook, there) in [Hook::Ingress, Hook::Egress].into_iter().zip(there) {
            let program = program(hook, made);
            if there.is_some_and(|(_, found)| found == program) {
                continue;
            }
            let options = Message::attributes()
                .attribute(number::TCA_BPF_OPS_LEN, &((program.len() / 8) as u16).to_ne_bytes())
                .attribute(number::TCA_BPF_OPS, &program)
                .attribute(number::TCA_BPF_FLAGS, &number::TCA_BPF_FLAG_ACT_DIRECT.to_ne_bytes())
                .attribute(number::TCA_BPF_FLAGS_GEN, &number::TCA_CLS_FLAGS_SKIP_HW.to_ne_bytes());
            let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
            let message = Message::new(libc::RTM_NEWTFILTER, flags, &about_filter(device, hook, FILTER))
                .attribute(number::TCA_KIND, b"bpf\0")
                .attribute(number::TCA_OPTIONS, &options.finish_attributes());
            self.ask(message).map_err(|e| lacking(e, "CONFIG_NET_CLS_BPF", "cls_bpf"))?;
            done = true;
        }
        Ok(done)
    }

    /// Opens it again: removes our filters and programs, and the hooks if we made them and nobody else has a filter there. No harm where it
    /// isn't closed.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn reopen(&self, device: u32) -> io::Result<()> {
        self.take_programs(device)?;
        let mut ours = false;
        for hook in [Hook::Ingress, Hook::Egress] {
            let Some((made, _)) = self.ours(device, hook)? else { continue };
            ours |= made == Made::Ours;
            let message = Message::new(libc::RTM_DELTFILTER, 0, &about_filter(device, hook, FILTER));
            self.ask(message.attribute(number::TCA_KIND, b"bpf\0"))?;
        }
        let others = || {
            Ok::<_, io::Error>(
                !self.filters(device, Hook::Ingress)?.is_empty()
                    || !self.filters(device, Hook::Egress)?.is_empty(),
            )
        };
        if ours && !others()? {
            let body = about(device, number::HANDLE, number::CLSACT, 0);
            self.ask(Message::new(libc::RTM_DELQDISC, 0, &body).attribute(number::TCA_KIND, b"clsact\0"))?;
        }
        Ok(())
    }

    /// Whether an interface is closed, both ways.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn is_closed(&self, device: u32) -> io::Result<bool> {
        let closed = |hook| {
            let ours = self.ours(device, hook)?;
            Ok::<_, io::Error>(ours.is_some_and(|(made, found)| found == program(hook, made)))
        };
        Ok(closed(Hook::Ingress)? && closed(Hook::Egress)?)
    }

    fn make_hooks(&self, device: u32) -> io::Result<Made> {
        match self.hooks(device)?.as_deref() {
            Some("clsact") => return Ok(Made::Others),
            Some(other) => {
                let how = format!(
                    "the queueing discipline `{other}` is where the hooks are that keep the machine's own IP stack from the port\n  `tc qdisc del dev NAME {other}` removes it; `clsact` in its place does the same and more"
                );
                return Err(io::Error::new(io::ErrorKind::AddrInUse, how));
            }
            None => {}
        }
        let body = about(device, number::HANDLE, number::CLSACT, 0);
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let message = Message::new(libc::RTM_NEWQDISC, flags, &body);
        let made = self.ask(message.attribute(number::TCA_KIND, b"clsact\0"));
        made.map_err(|e| lacking(e, "CONFIG_NET_SCH_INGRESS", "sch_ingress"))?;
        Ok(Made::Ours)
    }

    /// The discipline that has the interface's hooks: `clsact`, or the older `ingress`.
    fn hooks(&self, device: u32) -> io::Result<Option<String>> {
        let (mut found, body) = (None, about(device, 0, 0, 0));
        self.dump(Message::question(libc::RTM_GETQDISC, libc::NLM_F_DUMP, &body), &mut |message| {
            let Some(Answer { device: of, parent, kind, .. }) = Answer::read(message) else { return };
            if of == device && parent == number::CLSACT {
                found = Some(kind);
            }
        })?;
        Ok(found)
    }

    /// Those of a hook, in the order in which they are asked.
    pub(super) fn filters(&self, device: u32, hook: Hook) -> io::Result<Vec<Filter>> {
        let (mut found, body) = (Vec::new(), about(device, 0, number::HANDLE | hook as u32, 0));
        self.dump(Message::question(libc::RTM_GETTFILTER, libc::NLM_F_DUMP, &body), &mut |message| {
            found.extend(Answer::read(message).and_then(|a| a.filter()));
        })?;
        Ok(found)
    }

    /// Our own filter there.
    fn ours(&self, device: u32, hook: Hook) -> io::Result<Option<(Made, Vec<u8>)>> {
        Ok(self.filters(device, hook)?.into_iter().find_map(|f| f.ours))
    }

    /// The same, if nobody else has a filter that would be asked before.
    fn ours_alone(&self, device: u32, hook: Hook) -> io::Result<Option<(Made, Vec<u8>)>> {
        let filters = self.filters(device, hook)?;
        if filters.iter().any(|f| f.ours.is_none() && !f.program && f.preference <= PREFERENCE) {
            let side = format!("{hook:?}").to_lowercase();
            let how = format!(
                "a filter of preference {PREFERENCE} is there: what it lets pass would reach the machine's own IP stack, or leave it\n  `tc filter show dev NAME {side}` shows it: give it a preference above {PREFERENCE}"
            );
            return Err(io::Error::new(io::ErrorKind::AddrInUse, how));
        }
        Ok(filters.into_iter().find_map(|f| f.ours))
    }
}

/// A message about a discipline or a filter.
struct Answer<'a> {
    device: u32,
    handle: u32,
    parent: u32,
    info: u32,
    kind: String,
    options: &'a [u8],
}

impl Answer<'_> {
    fn read(message: &[u8]) -> Option<Answer<'_>> {
        let body = message.get(HEADER..)?;
        let word = |at: usize| Some(u32::from_ne_bytes(body.get(at..at + 4)?.try_into().ok()?));
        let rest = body.get(20..)?;
        let kind = attribute(rest, number::TCA_KIND)?.strip_suffix(b"\0")?;
        Some(Answer {
            device: word(4)?,
            handle: word(8)?,
            parent: word(12)?,
            info: word(16)?,
            kind: String::from_utf8_lossy(kind).into_owned(),
            options: attribute(rest, number::TCA_OPTIONS).unwrap_or_default(),
        })
    }

    /// The filter it is about; `None` for the head of those that have a preference in common.
    fn filter(&self) -> Option<Filter> {
        let ours = || {
            let program = attribute(self.options, number::TCA_BPF_OPS)?;
            let made =
                [Made::Ours, Made::Others].into_iter().find(|m| program.starts_with(&signature(*m)))?;
            (self.kind == "bpf" && self.handle == FILTER).then(|| (made, program.to_vec()))
        };
        let named = attribute(self.options, number::TCA_BPF_NAME).is_some_and(|n| n == NAME);
        let program = self.kind == "bpf" && self.handle == PROGRAM && named;
        (self.handle != 0).then(|| Filter { preference: self.info >> 16, program, ours: ours() })
    }
}

/// The remedy where the kernel lacks a part.
pub(super) fn lacking(e: io::Error, part: &str, module: &str) -> io::Error {
    match e.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP) => io::Error::new(
            io::ErrorKind::Unsupported,
            format!(
                "the kernel can't close it to the machine's own IP stack: it lacks {part}\n  `modprobe {module}`, or a kernel that has it"
            ),
        ),
        Some(libc::EPERM) => io::Error::new(
            io::ErrorKind::PermissionDenied,
            "closing it to the machine's own IP stack takes CAP_NET_ADMIN: as root, or for ports of one's own through `unshare -Urn`",
        ),
        _ => e,
    }
}

// BPF programs at an interface's clsact hooks, for kernels without tcx: asked before the filters that [close](super::closed) the interface,
// and before all others, as they have the first preference and the newest filter of one is asked first (`cls_bpf_change`).
//
// A program is replaced at its place: no frame passes between the two. It is the interface's, as those filters are: it stays when the
// process dies, and goes with the interface.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::sys;
    use crate::namespace::Namespace;

    #[test]
    fn programs_are_what_tc_shows() {
        let text = |program: Vec<u8>| {
            let (instructions, _) = program.as_chunks::<8>();
            let one = |i: &[u8; 8]| {
                let code = u16::from_ne_bytes([i[0], i[1]]);
                let k = u32::from_ne_bytes([i[4], i[5], i[6], i[7]]);
                format!("{code} {} {} {k}", i[2], i[3])
            };
            instructions.iter().map(one).collect::<Vec<_>>().join(",")
        };
        assert_eq!(text(program(Hook::Ingress, Made::Ours)), "1 0 0 1768845427,6 0 0 2");
        assert_eq!(
            text(program(Hook::Egress, Made::Others)),
            "1 0 0 1768845428,32 0 0 4294963220,21 0 1 1768845426,6 0 0 4294967295,6 0 0 2"
        );
    }

    /// Closed, closed again and opened: of the loopback in a namespace of its own. What others have there stays.
    #[test]
    fn an_interface_is_closed_and_opened_as_it_was() {
        let Ok(namespace) = Namespace::create() else {
            let allowed = std::env::var("ALLOW_MISSING").is_ok_and(|v| v.split(',').any(|w| w == "live"));
            assert!(allowed, "this test can't make a namespace here; ALLOW_MISSING=live leaves it out");
            return;
        };
        let outcome = namespace.within(|| {
            let (netlink, lo) = (Netlink::open()?, sys::interface_index("lo")?);
            assert!(!netlink.is_closed(lo)? && netlink.hooks(lo)?.is_none());
            assert!(netlink.close(lo)? && netlink.is_closed(lo)?);
            assert!(!netlink.close(lo)?, "done before");
            // Half of it has gone.
            netlink.ask(Message::new(libc::RTM_DELTFILTER, 0, &about_filter(lo, Hook::Egress, FILTER)))?;
            assert!(!netlink.is_closed(lo)? && netlink.close(lo)? && netlink.is_closed(lo)?);
            netlink.reopen(lo)?;
            assert!(!netlink.is_closed(lo)? && netlink.hooks(lo)?.is_none());
            netlink.reopen(lo)?;
            // Hooks that somebody else made.
            assert_eq!(netlink.make_hooks(lo)?, Made::Ours);
            netlink.close(lo)?;
            netlink.reopen(lo)?;
            assert_eq!((netlink.hooks(lo)?.as_deref(), netlink.is_closed(lo)?), (Some("clsact"), false));
            assert_eq!(netlink.close(u32::MAX >> 1).unwrap_err().raw_os_error(), Some(libc::ENODEV));
            Ok(())
        });
        outcome.unwrap();
    }

    #[test]
    fn what_is_cut_short_is_no_filter() {
        let body = about(7, FILTER, number::HANDLE, PREFERENCE << 16);
        let options = Message::attributes()
            .attribute(number::TCA_BPF_OPS, &program(Hook::Ingress, Made::Ours))
            .finish_attributes();
        let message = Message::new(libc::RTM_NEWTFILTER, 0, &body)
            .attribute(number::TCA_KIND, b"bpf\0")
            .attribute(number::TCA_OPTIONS, &options)
            .finish();
        let read = |m: &[u8]| Answer::read(m).and_then(|a| a.filter());
        let ours = Some((Made::Ours, program(Hook::Ingress, Made::Ours)));
        assert_eq!(read(&message), Some(Filter { preference: 1, program: false, ours }));
        for length in 0..message.len() {
            assert!(read(&message[..length]).is_none_or(|f| f.ours.is_none()), "{length}");
        }
    }
}
