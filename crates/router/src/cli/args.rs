//! The command line in clap's terms: help, man pages and completions are generated from it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use inprofile_router::config::{PINS, SOCKET};

/// A router of two ports that marks, queues and shapes.
///
/// It sits in line between customers and their provider: what arrives at one port leaves by the other, metered, queued, shaped,
/// and with the DSCP of its colour. docs/router.md describes the configuration file; `inprofiled check` says what a file means.
#[derive(Debug, Parser)]
#[command(name = "inprofiled", version, propagate_version = true, disable_help_subcommand = true)]
pub struct Line {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say what is wrong with a configuration, or what it means.
    ///
    /// Also warns of settings that are allowed but unsafe or perhaps not meant, and of the ports if this machine has them. Exit
    /// status 2: the configuration is wrong.
    Check {
        /// The configuration.
        file: PathBuf,
        /// Say whether it fits this datapath, whatever the file says, and what to write instead where it doesn't.
        #[arg(long, value_name = "NAME")]
        datapath: Option<Packets>,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Forward packets until SIGTERM.
    ///
    /// SIGHUP reloads the configuration, SIGUSR1 reopens the log file. Needs CAP_NET_RAW and CAP_NET_ADMIN.
    ///
    /// Both ports are closed to the machine's own IP stack as long as it runs, and after a kill until `release`.
    Run {
        /// The configuration.
        file: PathBuf,
        /// Switch off the offloads of both ports, and on again at the end.
        #[arg(long)]
        fix_offloads: bool,
    },
    /// Reload the configuration; queued packets are kept.
    ///
    /// All or nothing: after any error the running configuration stays.
    Reload {
        /// Change nothing: say what would change, and what needs a restart.
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        at: At,
    },
    /// Switch the bypass on or off: while it is on, everything passes unmarked and unshaped.
    Bypass {
        /// On or off.
        on: Switch,
        #[command(flatten)]
        at: At,
    },
    /// Print all counts since the start.
    Stats {
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        at: At,
    },
    /// Watch every customer's rates, colours, drops and delay.
    ///
    /// In a terminal the table is refreshed in place: q quits, s sorts by the next column, the arrow keys, PgUp and PgDn scroll, p
    /// pauses. Into a pipe, or with --plain, one table follows the other. Rates are in bit/s, between two readings.
    Top {
        /// Print one table after the other, in a terminal too.
        #[arg(long)]
        plain: bool,
        /// Stop after this many tables.
        #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
        count: Option<u64>,
        /// Seconds between tables.
        #[arg(short, long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
        interval: f64,
        /// Which column to sort by.
        #[arg(short, long, value_enum, default_value_t = Sort::Offered)]
        sort: Sort,
        #[command(flatten)]
        at: At,
    },
    /// Show one thing in detail.
    Show {
        /// The subject to show.
        #[command(subcommand)]
        what: Show,
    },
    /// Send what is queued, within five seconds, and exit.
    Stop {
        #[command(flatten)]
        at: At,
    },
    /// Open an interface to the machine's own IP stack that a router which was killed has left closed.
    ///
    /// The end of a router does so by itself, and the start of one takes over what is closed. Refused while one forwards there.
    /// Needs CAP_NET_ADMIN.
    Release {
        /// A port.
        interface: String,
        /// Where the kernel's datapath is pinned: what was left there for this port is removed, and no longer forwards.
        #[arg(long, value_name = "FOLDER", default_value = PINS)]
        pins: PathBuf,
    },
    /// Turn another router's configuration into one of ours.
    Import {
        /// The format of the file: tc's red, gred and police commands, Cisco's random-detect and police lines, or Open vSwitch's
        /// policing and meters.
        from: Foreign,
        /// The other router's configuration.
        file: PathBuf,
    },
    /// Turn a configuration into commands for the kernel or Open vSwitch.
    ///
    /// Comments say what they cannot do of it. `bpf` writes a folder instead: the programs of datapath = "kernel", what their maps hold,
    /// and a script that loads them with bpftool and tc, where there is no inprofiled.
    Export {
        /// Whose commands.
        to: Kernel,
        /// The configuration.
        file: PathBuf,
        /// With bpf: the folder to write, which must not be there yet.
        #[arg(required_if_eq("to", "bpf"))]
        folder: Option<PathBuf>,
    },
    /// Print a shell's completions for this command.
    Completions {
        /// Which shell.
        shell: Shell,
    },
    /// Write the man pages into a folder.
    #[command(hide = true)]
    Man {
        /// A folder that exists.
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

/// The subject to show.
#[derive(Debug, Subcommand)]
pub enum Show {
    /// A customer: contract, rates, colours, drops, delay, in both directions.
    Customer {
        /// His name in the configuration.
        name: String,
        /// Print one JSON object.
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

/// Whose configuration is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Foreign {
    /// Linux's tc.
    Tc,
    /// Cisco's IOS.
    Cisco,
    /// Open vSwitch's tools.
    Ovs,
}

/// Whose commands are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kernel {
    /// Linux's tc.
    Tc,
    /// Open vSwitch's ovs-ofctl.
    Ovs,
    /// BPF programs and a script that loads them.
    Bpf,
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

/// Where packets are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Packets {
    /// By the process: queues, shapers, every mechanism.
    User,
    /// By the kernel: meters, marking and policing.
    Kernel,
}
