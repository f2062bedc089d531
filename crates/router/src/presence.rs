//! Whether the interfaces of the two ports exist and have a link, and what happens when one disappears or returns.
//!
//! An interface that is deleted, renamed or moved to another network namespace is lost: the file names interfaces. Until there
//! is one of that name again, nothing is received at the port, and what should leave by it is refused and counted; then the
//! port is bound to it, if its offloads are as required at the start. An interface that is added to a bridge, which would
//! forward too, is out of use until it is removed from it.
//! A link that is down does not unbind the port: it is reported and, if so configured, forwarded ([`LinkLoss`]).
//! The thread for signals looks for interfaces by name: the kernel's notifications can be lost when many arrive, so it would
//! have to look anyway. It tells the packet thread what it finds.

use std::io;

use inprofile_live::io::afpacket::{AfPacket, Binding, claim};
use inprofile_live::io::link::Link;
use inprofile_live::io::netlink::Netlink;
use inprofile_live::io::sys::interface_index;

use crate::isolation::Isolation;
use crate::link_loss::LinkLoss;
use crate::log::Log;
use crate::offload::Offloads;

/// The state of a port's interface, as the router sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There, by its number, and in use.
    InUse(u32),
    /// There, by its number, and out of use: why.
    Unfit(u32, String),
    /// Taken away.
    Away,
}

impl Standing {
    /// The interface that packets come from and go to.
    #[must_use]
    pub fn in_use(&self) -> Option<u32> {
        match self {
            Standing::InUse(index) => Some(*index),
            Standing::Unfit(..) | Standing::Away => None,
        }
    }

    /// The interface that is there, in use or not.
    #[must_use]
    pub fn there(&self) -> Option<u32> {
        match self {
            Standing::InUse(index) | Standing::Unfit(index, _) => Some(*index),
            Standing::Away => None,
        }
    }

    /// Why it is out of use, if it is.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        match self {
            Standing::InUse(_) => None,
            Standing::Unfit(_, why) => Some(why),
            Standing::Away => Some("the interface was taken away"),
        }
    }
}

/// A port, as it was seen last.
struct Watched {
    name: String,
    binding: Binding,
    standing: Standing,
    /// `None` while it is away.
    link: Option<Link>,
}

/// The ports.
pub struct Presence([Watched; 2]);

/// The fault of a link, for people; `None` if packets can pass.
#[must_use]
pub fn fault(link: &Link) -> Option<String> {
    match link {
        link if link.passes() => None,
        Link { up: false, .. } => Some("the interface is switched off".to_owned()),
        Link { carrier: false, .. } => Some("no carrier".to_owned()),
        Link { operstate, .. } => Some(format!("the link is {}", operstate.name())),
    }
}

/// Whether an interface that is in use has been taken away: its name stands for another, or for none, or the socket has lost it.
fn lost(in_use: u32, named: Option<u32>, bound: Option<u32>) -> bool {
    named != Some(in_use) || bound != Some(in_use)
}

/// Which ports are out of use or without a link, and why, for people; `None` if none is.
pub(crate) fn trouble<'p>(
    ports: impl Iterator<Item = (&'p str, &'p Standing, Option<&'p Link>)>,
) -> Option<String> {
    let why =
        |standing: &Standing, link: Option<&Link>| standing.why().map(str::to_owned).or_else(|| fault(link?));
    let each = ports.filter_map(|(name, standing, link)| Some(format!("`{name}`: {}", why(standing, link)?)));
    each.map(|text| text.lines().next().unwrap_or_default().to_owned()).reduce(|a, b| format!("{a}; {b}"))
}

impl Presence {
    /// Of ports that were just opened.
    ///
    /// # Errors
    /// The system's error.
    pub fn of(names: &[String; 2], io: &AfPacket) -> io::Result<Presence> {
        let watched = |port: usize| {
            let binding = io.binding(port)?;
            let standing = binding.index()?.map_or(Standing::Away, Standing::InUse);
            let link = standing.there().and_then(link_of);
            Ok::<_, io::Error>(Watched { name: names[port].clone(), binding, standing, link })
        };
        Ok(Presence([watched(0)?, watched(1)?]))
    }

    /// As they were seen last, by their numbers.
    #[must_use]
    pub fn standings(&self) -> [Standing; 2] {
        self.0.each_ref().map(|w| w.standing.clone())
    }

    /// Their links, as they were seen last.
    #[must_use]
    pub fn links(&self) -> [Option<Link>; 2] {
        self.0.each_ref().map(|w| w.link.clone())
    }

    /// Which are out of use or without a link, and why, for people; `None` if none is.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        trouble(self.0.iter().map(|w| (w.name.as_str(), &w.standing, w.link.as_ref())))
    }

    /// Looks; whether anything has changed. `tell` tells the thread that has the packets: the outer error is that there is no
    /// answer, and then it is tried again with the next look; the inner one what the system said of the port.
    ///
    /// # Errors
    /// The system's error, if it is not about an interface.
    pub fn look(
        &mut self,
        offloads: &mut Offloads,
        closed: &mut Isolation,
        link_loss: &mut LinkLoss,
        log: &Log,
        tell: impl Fn(usize, Standing) -> Result<Result<(), String>, String>,
    ) -> io::Result<bool> {
        let mut changed = false;
        for (port, watched) in self.0.iter_mut().enumerate() {
            let before = (watched.standing.clone(), watched.link.clone());
            watched.look(offloads, closed, port, log, |standing| tell(port, standing))?;
            closed.look(port, log);
            watched.look_at_link(link_loss.is_off(port), log);
            changed |= (&watched.standing, &watched.link) != (&before.0, &before.1);
        }
        link_loss.look(self.0.each_ref().map(|w| w.standing.there().zip(w.link.as_ref())), log);
        Ok(changed)
    }
}

/// `None` if the interface has gone.
fn link_of(index: u32) -> Option<Link> {
    Netlink::open().and_then(|n| n.link(index)).ok()
}

impl Watched {
    fn look(
        &mut self,
        offloads: &mut Offloads,
        closed: &mut Isolation,
        port: usize,
        log: &Log,
        tell: impl Fn(Standing) -> Result<Result<(), String>, String>,
    ) -> io::Result<()> {
        let named = interface_index(&self.name).ok();
        let bound = self.binding.index()?;
        let interface = ("interface", self.name.as_str().into());
        if let Some(index) = self.standing.in_use() {
            if !lost(index, named, bound) {
                return self.stay_out_of_bridges(index, log, tell);
            }
            let Ok(outcome) = tell(Standing::Away) else { return Ok(()) };
            self.standing = Standing::Away;
            closed.leave(port, log);
            log.warn(
                "port",
                "the interface was taken away: what should leave by it is refused until one of its name is there",
                std::slice::from_ref(&interface),
            );
            if let Err(e) = outcome {
                log.error(
                    "port",
                    "what was left of it can't be let go",
                    &[interface.clone(), ("why", e.into())],
                );
            }
        }
        let Some(index) = named else {
            // One that was never in use has gone again.
            if self.standing != Standing::Away && tell(Standing::Away).is_ok() {
                self.standing = Standing::Away;
                closed.leave(port, log);
                log.warn("port", "the interface was taken away again", &[interface]);
            }
            return Ok(());
        };
        let taken = closed.take_up(port, index).and_then(|()| offloads.take_up(&self.name));
        let found = match taken {
            // What comes to its place meanwhile is seen with the next look.
            Ok(switched) => {
                for feature in switched {
                    log.info("offload", "switched off", &[interface.clone(), ("feature", feature.into())]);
                }
                Standing::InUse(index)
            }
            Err(e) => Standing::Unfit(index, e.to_string()),
        };
        if found == self.standing {
            return Ok(());
        }
        let found = match tell(found.clone()) {
            Ok(Ok(())) => found,
            Ok(Err(e)) => Standing::Unfit(index, e),
            Err(_) => return Ok(()),
        };
        if found == self.standing {
            return Ok(());
        }
        match found.why() {
            None => log.info("port", "the interface is there again, and in use", &[interface]),
            Some(why) => log.error(
                "port",
                "an interface of its name is there, and stays out of use until this is put right",
                &[interface, ("why", why.into())],
            ),
        }
        self.standing = found;
        Ok(())
    }

    /// One that is in use and has been put into a bridge, or the like, is out of use from now on.
    fn stay_out_of_bridges(
        &mut self,
        index: u32,
        log: &Log,
        tell: impl Fn(Standing) -> Result<Result<(), String>, String>,
    ) -> io::Result<()> {
        let Err(e) = claim::shared(index) else { return Ok(()) };
        if e.kind() != io::ErrorKind::AddrInUse {
            // It is going just now: seen with the next look.
            return Ok(());
        }
        let unfit = Standing::Unfit(index, e.to_string());
        if let Ok(outcome) = tell(unfit.clone()) {
            let why = outcome.err().unwrap_or_else(|| e.to_string());
            let fields = [("interface", self.name.as_str().into()), ("why", why.into())];
            log.error("port", "out of use until this is put right", &fields);
            self.standing = unfit;
        }
        Ok(())
    }

    /// Logs a change of the link; `ours`: we switched it off ourselves.
    fn look_at_link(&mut self, ours: bool, log: &Log) {
        let now = self.standing.there().and_then(link_of);
        let interface = ("interface", self.name.as_str().into());
        if let (Some(before), Some(now)) = (&self.link, &now)
            && !ours
        {
            let state = ("operstate", now.operstate.name().into());
            let changes = ("carrier_changes", now.carrier_changes.into());
            match (fault(before), fault(now)) {
                (Some(_), None) => log.info("link", "the link is up again", &[interface, state, changes]),
                (before, Some(fault)) if before.as_ref() != Some(&fault) => {
                    log.warn("link", &fault, &[interface, state, changes]);
                }
                (None, None) if now.carrier_changes != before.carrier_changes => {
                    log.warn("link", "the link was down for a moment", &[interface, state, changes]);
                }
                _ => {}
            }
        }
        self.link = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name decides (a rename), and the socket does: a new interface may have the number of the one before.
    #[test]
    fn an_interface_is_lost_by_its_name_and_by_its_socket() {
        assert!(!lost(7, Some(7), Some(7)));
        assert!(lost(7, None, None), "deleted, or in another namespace");
        assert!(lost(7, None, Some(7)), "renamed");
        assert!(lost(7, Some(8), None), "made again before anybody looked");
        assert!(lost(7, Some(8), Some(7)), "renamed, and another has its name");
        assert!(lost(7, Some(7), None), "made again with the same number");
    }

    #[test]
    fn a_port_out_of_use_says_why() {
        let unfit = Standing::Unfit(7, "gro on".into());
        let shown = |s: &Standing| (s.there(), s.in_use(), s.why().map(str::to_owned));
        assert_eq!(shown(&Standing::InUse(7)), (Some(7), Some(7), None));
        assert_eq!(shown(&unfit), (Some(7), None, Some("gro on".into())));
        assert_eq!(shown(&Standing::Away), (None, None, Some("the interface was taken away".into())));
    }
}
