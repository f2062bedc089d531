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
