//! `[tcp]` and a group's `tcp = { … }`: the keys are declared in `sim` (`tcp/config.rs`), whether they go together is looked at here.

mod checks;

use crate::text::Section;
use crate::text::mechanism;
use inprofile_core::params::{Params, Values};
use inprofile_sim::tcp::Config;
use inprofile_sim::tcp::config::Keys;

use checks::checked;

/// The table `[tcp]`, and the configuration that follows from it.
pub(crate) struct Base {
    given: Values,
    /// `None` if the values contradict each other.
    pub config: Option<Config>,
}

/// Reads `[tcp]`; `None` if a value could not be read.
pub(crate) fn base(root: &Section<'_, '_>) -> Option<Base> {
    let Some(entry) = root.get("tcp") else {
        return Some(Base { given: Values::default(), config: Some(Config::default()) });
    };
    let section = entry.section(&mechanism::known(&[], Keys::FIELDS))?;
    let given = mechanism::given(&section, Keys::FIELDS)?;
    let config = checked(&section, &given);
    Some(Base { given, config })
}

/// Reads a group's `tcp`, over `[tcp]`.
pub(crate) fn over(base: &Base, group: &Section<'_, '_>) -> Option<Config> {
    let Some(entry) = group.get("tcp") else { return base.config.clone() };
    let section = entry.section(&mechanism::known(&[], Keys::FIELDS))?;
    let mut values = mechanism::given(&section, Keys::FIELDS)?;
    let said = |name: &str, values: &Values| values.get(name).is_some();
    let inherited: Vec<_> = base.given.0.iter().filter(|(n, _)| !said(n, &values)).cloned().collect();
    values.0.extend(inherited);
    checked(&section, &values)
}
