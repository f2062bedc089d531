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
