//! The command line in clap's terms: help, man pages and completions are generated from it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use inprofile_daemon::config::SOCKET;

/// A router of two ports that marks, queues and shapes.
///
/// It sits in line between customers and their provider: what comes in at one port goes out at the other, metered, queued, shaped,
/// and with the DSCP of its colour. docs/router.md says what a configuration can say, and `inprofiled check` what one means.
#[derive(Debug, Parser)]
#[command(name = "inprofiled", version, propagate_version = true, disable_help_subcommand = true)]
pub struct Line {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say what is wrong with a configuration, or what it means.
    ///
    /// Warns of what is allowed but unsafe or perhaps not meant; of the ports too, where they are here. Exit status 2: it is wrong.
    Check {
        /// The configuration.
        file: PathBuf,
        /// As one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Forward packets until SIGTERM.
    ///
    /// SIGHUP reads the file again, SIGUSR1 opens the log's file anew. Needs CAP_NET_RAW, and CAP_NET_ADMIN to switch offloads or links.
    Run {
        /// The configuration.
        file: PathBuf,
        /// Switch offloads of both ports off, and on again at the end.
        #[arg(long)]
        fix_offloads: bool,
    },
    /// Read the file again; packets that wait are kept.
    ///
    /// All or nothing: with any error what runs goes on.
    Reload {
        /// Change nothing: say what would change, and what needs a restart.
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        at: At,
    },
    /// Let everything pass unmarked and unshaped, or no longer.
    Bypass {
        /// Whether it should.
        on: Switch,
        #[command(flatten)]
        at: At,
    },
    /// What happened since the start.
    Stats {
        /// As one JSON object.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        at: At,
    },
    /// Rates, colours, drops and delay of every customer, live.
    ///
    /// In a terminal a table that is renewed: q ends it, s sorts by another column, the arrows, PgUp and PgDn move, p pauses.
    /// Into a pipe, or with --plain, one table after the other.
    Top {
        /// Tables one after the other, as text, also in a terminal.
        #[arg(long)]
        plain: bool,
        /// End after so many tables.
        #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
        count: Option<u64>,
        /// Seconds from one to the next.
        #[arg(short, long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
        interval: f64,
        /// What is first.
        #[arg(short, long, value_enum, default_value_t = Sort::Offered)]
        sort: Sort,
        #[command(flatten)]
        at: At,
    },
    /// Everything about one thing.
    Show {
        /// About what.
        #[command(subcommand)]
        what: Show,
    },
    /// Send what waits, within five seconds, and end.
    Stop {
        #[command(flatten)]
        at: At,
    },
    /// Read another router's lines into a configuration of ours.
    Import {
        /// Whose: tc's red, gred and police lines, Cisco's random-detect and police, or Open vSwitch's
        /// policing and meters.
        from: Foreign,
        /// Where they are.
        file: PathBuf,
    },
    /// What the kernel, or Open vSwitch, can do of a configuration, as lines for a shell, and what it can't.
    Export {
        /// Whose lines.
        to: Kernel,
        /// The configuration.
        file: PathBuf,
    },
    /// Print what a shell completes our words by.
    Completions {
        /// Which shell.
        shell: Shell,
    },
    /// Write the man pages into a folder.
    #[command(hide = true)]
    Man {
        /// The folder, which is there.
        folder: PathBuf,
    },
}

/// Where the router is asked.
#[derive(Debug, Args)]
pub struct At {
    /// The control socket.
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    pub socket: PathBuf,
}

/// About what.
#[derive(Debug, Subcommand)]
pub enum Show {
    /// A customer: contract, rates, colours, drops, delay, in both directions.
    Customer {
        /// As in the file.
        name: String,
        /// As one JSON object.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        at: At,
    },
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Everything passes.
    On,
    /// Back to normal.
    Off,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// By the rate that came.
    Offered,
    /// By the rate that left.
    Sent,
    /// By packets dropped.
    Drops,
    /// By the mean delay.
    Delay,
    /// By name.
    Name,
}

/// Whose lines are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Foreign {
    /// Linux's tc.
    Tc,
    /// Cisco's IOS.
    Cisco,
    /// Open vSwitch's tools.
    Ovs,
}

/// Whose lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kernel {
    /// Linux's tc.
    Tc,
    /// Open vSwitch's ovs-ofctl.
    Ovs,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if (0.1..=3600.0).contains(&s) => Ok(s),
        _ => Err("write seconds from 0.1 to 3600".into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_line_is_sound() {
        super::Line::command().debug_assert();
    }
}
