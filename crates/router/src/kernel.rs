//! `datapath = "kernel"`: contracts at the ports' ingress hooks. Two programs (`bpf/`, built by `make bpf`) read each frame, find its
//! customer, meter it, give it the DSCP of its colour or drop it, count it and send it by the other port. This process fills their maps,
//! reads their counts and answers the control socket; whether it lives makes no difference to a packet.
//!
//! ```text
//! file ─→ tables ─→ maps (two banks, one in force) ←─ programs ─→ the other port
//! socket ←─ counts ←────── accounts ←──────────────────┘
//! ```

pub mod export;
pub mod layout;
pub mod maps;
pub mod pins;
pub mod run;
mod shown;
pub mod tables;

pub mod attach {
    //! The programs at their ports: before all others there, at ingress and egress, so that nothing sees a frame that is ours. By tcx's links
    //! where there are any, pinned so that they outlive this process; else as filters of clsact, which are the interface's.

    use std::fs;
    use std::io;
    use std::os::fd::AsFd;
    use std::path::Path;

    use aya::programs::links::{FdLink, PinnedLink};
    use aya::programs::tc::TcAttachOptions;
    use aya::programs::{LinkOrder, TcAttachType};
    use aya::util::KernelVersion;
    use inprofile_live::io::closed::Hook;
    use inprofile_live::io::netlink::Netlink;
    use inprofile_live::io::sys::interface_index;

    use super::maps::{LEAVING, Maps, because};
    use super::pins::Pins;
    use crate::config::datapath::Attach;

    /// Where a program is at a port, and which.
    struct Place {
        program: usize,
        at: TcAttachType,
        hook: Hook,
    }

    /// Frames come in by the first, and leave by the second.
    fn places(port: usize) -> [Place; 2] {
        [
            Place { program: port, at: TcAttachType::Ingress, hook: Hook::Ingress },
            Place { program: LEAVING, at: TcAttachType::Egress, hook: Hook::Egress },
        ]
    }

    fn refused(interface: &str, hook: Hook, e: &dyn std::error::Error) -> String {
        format!(
            "interface `{interface}`: the kernel puts no program at its hook ({hook:?}): {e}{}\n  it takes CAP_NET_ADMIN and, by attach = \"tcx\", Linux 6.6 or newer; or write datapath = \"user\"",
            because(e)
        )
    }

    /// By which of both programs are put at a port.
    ///
    /// # Errors
    /// The kernel is too old for either.
    pub fn by_tcx(wanted: Attach) -> Result<bool, String> {
        let kernel = KernelVersion::current().map_err(|e| e.to_string())?;
        // Before, maps are written with the capability that is given up.
        if kernel < KernelVersion::new(5, 19, 0) {
            return Err(
                "the kernel's datapath takes Linux 5.19 or newer\n  write datapath = \"user\", or load what `inprofiled export bpf` writes"
                    .into(),
            );
        }
        Ok(match wanted {
            Attach::Auto => kernel >= KernelVersion::new(6, 6, 0),
            Attach::Tcx => true,
            Attach::Clsact => false,
        })
    }

    /// Puts a port's programs at this interface: that by which frames leave first.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn attach(
        maps: &mut Maps,
        port: usize,
        interface: &str,
        pins: &Pins,
        tcx: bool,
    ) -> Result<(), String> {
        let links = pins.links(port);
        for (place, link) in places(port).iter().zip(&links).rev() {
            if tcx { put(maps, place, interface, link)? } else { put_filter(maps, place, interface)? }
        }
        // By the other way a process before this one may have put them there.
        if tcx {
            let take = || Netlink::open()?.take_programs(interface_index(interface)?);
            return take().map_err(|e| format!("interface `{interface}`: {e}"));
        }
        links.iter().try_for_each(|link| remove(link).map_err(|e| format!("{}: {e}", link.display())))
    }

    /// Whether programs are at this interface as filters, before all others.
    ///
    /// # Errors
    /// The system's error.
    pub fn are_filters(index: u32) -> io::Result<bool> {
        let netlink = Netlink::open()?;
        Ok(netlink.has_program(index, Hook::Ingress)? && netlink.has_program(index, Hook::Egress)?)
    }

    fn put_filter(maps: &mut Maps, place: &Place, interface: &str) -> Result<(), String> {
        let refused = |e: &dyn std::error::Error| refused(interface, place.hook, e);
        let program = maps.program(place.program)?.fd().map_err(|e| refused(&e))?;
        let put = || Netlink::open()?.put_program(interface_index(interface)?, place.hook, program.as_fd());
        put().map_err(|e| refused(&e))
    }

    /// A link that is pinned already is given the new program, and no frame passes between the two.
    fn put(maps: &mut Maps, place: &Place, interface: &str, pin: &Path) -> Result<(), String> {
        let refused = |e: &dyn std::error::Error| refused(interface, place.hook, e);
        let program = maps.program(place.program)?;
        if let Ok(old) = PinnedLink::from_pin(pin) {
            let link = FdLink::from(old);
            // Another interface's is of no use here, and that of one that has gone takes no program.
            let here = interface_index(interface).is_ok_and(|index| interface_of(&link) == Some(index));
            let link = link.try_into().ok().filter(|_| here);
            if let Some(id) = link.and_then(|link| program.attach_to_link(link).ok()) {
                program.take_link(id).map_err(|e| refused(&e))?;
                return Ok(());
            }
        }
        remove(pin).map_err(|e| format!("{}: {e}", pin.display()))?;
        let first = TcAttachOptions::TcxOrder(LinkOrder::first());
        let id = program.attach_with_options(interface, place.at, first).map_err(|e| refused(&e))?;
        let link = program.take_link(id).map_err(|e| refused(&e))?;
        let link: FdLink = link.try_into().map_err(|e| refused(&e))?;
        link.pin(pin).map(drop).map_err(|e| refused(&e))
    }

    /// Takes a port's programs away, if they are there: also from the interface of this number.
    ///
    /// # Errors
    /// The system's error.
    pub fn detach(port: usize, index: Option<u32>, pins: &Pins) -> io::Result<()> {
        pins.links(port).iter().try_for_each(|pin| remove(pin))?;
        match index.map(|index| Netlink::open()?.take_programs(index)) {
            // They went with the interface.
            Some(Err(e)) if e.raw_os_error() != Some(libc::ENODEV) => Err(e),
            _ => Ok(()),
        }
    }

    /// The interface that a link is at, by its number. To ask which programs are at an interface takes more than this process may.
    fn interface_of(link: &FdLink) -> Option<u32> {
        let id = format!("link_id:\t{}", link.info().ok()?.id());
        let told =
            fs::read_dir("/proc/self/fdinfo").ok()?.filter_map(|e| fs::read_to_string(e.ok()?.path()).ok());
        let of_link = told.into_iter().find(|told| told.lines().any(|line| line == id))?;
        of_link.lines().find_map(|line| line.strip_prefix("ifindex:")?.trim().parse().ok())
    }

    fn remove(pin: &Path) -> io::Result<()> {
        match fs::remove_file(pin) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }
}

pub mod places {
    //! Accounts have places by name, as long as their customer stays: over reloads and, as the names are in a map too, over restarts.
    //! A policer of a class that a customer bought has an account of its own, and so has each kind of control frames.

    use std::collections::{HashMap, HashSet};

    use inprofile_live::packet::Control;

    use crate::config::Direction;

    /// Whose an account is, as it is written in the map.
    #[must_use]
    pub fn of_customer(name: &str) -> String {
        format!("customer {name}")
    }

    /// See [`of_customer`].
    #[must_use]
    pub fn of_service(name: &str, class: &str) -> String {
        format!("service {name} {class}")
    }

    /// See [`of_customer`].
    #[must_use]
    pub fn of_control(kind: Control) -> String {
        format!("control {}", kind.name())
    }

    /// The accounts of one direction.
    #[derive(Clone, Debug, Default)]
    pub struct Places {
        by_name: HashMap<String, u32>,
    }

    /// The accounts of a configuration.
    #[derive(Clone, Debug)]
    pub struct Assigned {
        /// With all that they had before and have no more.
        pub places: Places,
        /// Given to who had none.
        pub new: Vec<(u32, String)>,
        /// Taken from who needs none any more.
        pub gone: Vec<u32>,
    }

    impl Places {
        /// Those of a map.
        #[must_use]
        pub fn of(names: impl IntoIterator<Item = (u32, String)>) -> Places {
            Places { by_name: names.into_iter().map(|(place, name)| (name, place)).collect() }
        }

        /// The account of this name.
        #[must_use]
        pub fn get(&self, name: &str) -> Option<u32> {
            self.by_name.get(name).copied()
        }

        /// The names a direction needs; control frames' always, and first, so that they have the first places.
        fn needed(direction: Option<&Direction>) -> Vec<String> {
            let control = Control::ALL.into_iter().map(of_control);
            let customers = direction.into_iter().flat_map(|d| d.customers.iter().map(move |c| (d, c)));
            let each = customers.flat_map(|(d, c)| {
                let services = c.services.iter().map(|s| of_service(&c.name, &d.classes[s.class].name));
                std::iter::once(of_customer(&c.name)).chain(services)
            });
            control.chain(each).collect()
        }

        /// How many accounts a direction needs.
        #[must_use]
        pub fn count(direction: &Direction) -> usize {
            Control::ALL.len() + direction.customers.iter().map(|c| 1 + c.services.len()).sum::<usize>()
        }

        /// Gives everybody an account who needs one: who had one keeps it; the others get free ones, none that is given up just now.
        #[must_use]
        pub fn assign(&self, direction: Option<&Direction>) -> Assigned {
            let needed = Places::needed(direction);
            let taken: HashSet<u32> = self.by_name.values().copied().collect();
            let mut free = (0u32..).filter(|place| !taken.contains(place));
            let (mut by_name, mut new) = (HashMap::with_capacity(needed.len()), Vec::new());
            for name in needed {
                let place = self.get(&name).unwrap_or_else(|| {
                    let place = free.next().unwrap_or(u32::MAX);
                    new.push((place, name.clone()));
                    place
                });
                by_name.insert(name, place);
            }
            let gone = self.by_name.iter().filter(|(name, _)| !by_name.contains_key(*name)).map(|(_, p)| *p);
            Assigned { new, gone: gone.collect(), places: Places { by_name } }
        }

        /// All of them.
        pub fn all(&self) -> impl Iterator<Item = u32> + '_ {
            self.by_name.values().copied()
        }

        /// The highest place, plus 1.
        #[must_use]
        pub fn end(&self) -> u32 {
            self.by_name.values().max().map_or(0, |place| place + 1)
        }
    }
}
