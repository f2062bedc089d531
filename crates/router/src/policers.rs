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
