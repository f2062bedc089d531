//! `inprofiled`: a router of two ports. Frames that come in at one leave by the other; on the way they are metered by their
//! customer's marker, queued by class and colour, shaped, and given the DSCP of their colour, by the same mechanisms that the
//! simulator runs.
//!
//! ```text
//! signals ──┐                                   ┌─→ port
//! control ──┼─→ commands ─→ packets (one thread) ┤
//! metrics ──┘       ↑ snapshots                 └─← port
//! ```
//!
//! One thread handles the packets and shares no state. The others (one for signals and the watchdog, one for control and
//! metrics, one for reloads) send it [`Command`](packets::Command)s and receive [`Snapshot`](snapshot::Snapshot)s.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod changes;
pub mod config;
#[cfg(target_os = "linux")]
pub mod control;
#[cfg(target_os = "linux")]
pub mod files;
#[cfg(target_os = "linux")]
pub mod hub;
pub mod interchange;
#[cfg(target_os = "linux")]
pub mod isolation;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "what maps hold is plain bytes, of which the compiler has to be told")]
pub mod kernel;
#[cfg(target_os = "linux")]
pub mod link_loss;
pub mod log;
#[cfg(target_os = "linux")]
pub mod metrics;
#[cfg(target_os = "linux")]
pub mod notify;
#[cfg(target_os = "linux")]
pub mod offload;
pub mod packets;
pub mod policy;
#[cfg(target_os = "linux")]
pub mod ports;
#[cfg(target_os = "linux")]
pub mod presence;
#[cfg(target_os = "linux")]
pub mod privileges;
pub mod router;
#[cfg(target_os = "linux")]
pub mod run;
#[cfg(target_os = "linux")]
pub mod serve;
pub mod snapshot;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "system calls; each with its reason")]
mod sys;
pub mod watch;

pub mod load {
    //! Loads a configuration from its file; its warnings go to the log, or to standard error.

    use std::path::Path;

    use inprofile_core::registry::Registry;
    use inprofile_experiment::text::Severity;

    use crate::config::datapath::Datapath;
    use crate::config::{self, Config};
    use crate::log::Log;

    /// The configuration in this file, and how many warnings there were.
    ///
    /// # Errors
    /// Everything that is wrong with it, in words.
    pub fn load(file: &Path, registry: &Registry, log: Option<&Log>) -> Result<(Config, usize), String> {
        load_for(None, file, registry, log)
    }

    /// The same for a datapath, whichever the file names.
    ///
    /// # Errors
    /// Everything that is wrong with it, in words.
    pub fn load_for(
        datapath: Option<Datapath>,
        file: &Path,
        registry: &Registry,
        log: Option<&Log>,
    ) -> Result<(Config, usize), String> {
        let name = file.display().to_string();
        let bytes = inprofile_experiment::text::file::read(file).map_err(|e| format!("{name}: {e}"))?;
        let told = |problems: &[inprofile_experiment::text::Problem]| {
            problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        let (config, warnings) = config::parse_for(datapath, &bytes, &name, registry).map_err(|p| {
            let errors: Vec<_> = p.into_iter().filter(|p| p.severity == Severity::Error).collect();
            told(&errors)
        })?;
        for w in &warnings {
            match log {
                Some(log) => log.warn("configuration", &w.to_string(), &[]),
                None => eprintln!("{w}"),
            }
        }
        Ok((config, warnings.len()))
    }
}

pub mod policers {
    //! The policers of a direction: one for each class that a customer has bought, one for each kind of control frame. Each is a
    //! token bucket that drops what is out of profile.

    use inprofile_core::marker::Action;
    use inprofile_core::marker::token_bucket::{Conforms, Params};
    use inprofile_core::params::{Build, Context};
    use inprofile_core::registry::AnyMarker;
    use inprofile_core::units::{Backlog, Bytes};
    use inprofile_live::packet::Control;

    use crate::config::Direction;
    use crate::config::frames::Policing;

    /// A policer.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Policer {
        /// Its name in the counters: customer and class, or `control` and the kind.
        pub name: String,
        /// Its rate and burst.
        pub police: Policing,
    }

    /// All policers in the order of their markers: of services, customer by customer; then of control frames, kind by kind.
    pub fn of(direction: &Direction) -> impl Iterator<Item = Policer> + '_ {
        let services = direction.customers.iter().flat_map(move |customer| {
            customer.services.iter().map(move |service| {
                let class = &direction.classes[service.class].name;
                Policer { name: format!("{} {class}", customer.name), police: service.police }
            })
        });
        let control = Control::ALL
            .into_iter()
            .map(|kind| Policer { name: format!("control {}", kind.name()), police: direction.control });
        services.chain(control)
    }

    /// The number of the first policer's marker, after those of the customers and the aggregate.
    #[must_use]
    pub fn first(direction: &Direction) -> u16 {
        (direction.customers.len() + usize::from(direction.aggregate.is_some())) as u16
    }

    impl Policer {
        /// Its token bucket, before the first packet.
        #[must_use]
        pub fn build(&self, packet: Bytes) -> AnyMarker {
            let Policing { rate, burst } = self.police;
            let params = Params {
                rate: Some(rate),
                depth: Backlog::Bytes(burst.0 as f64),
                starts_full: true,
                conforms: Conforms::AtLeast,
                action: Action::Drop,
            };
            AnyMarker::TokenBucket(params.build(&Context {
                link_rate: None,
                contract: None,
                packet,
                limit: None,
            }))
        }
    }
}
