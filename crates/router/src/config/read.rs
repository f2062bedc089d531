//! Reads the file from top to bottom: its top-level values here, its directions in [`direction`](super::direction).

use std::net::SocketAddr;
use std::path::PathBuf;

use inprofile_core::registry::Registry;
use inprofile_core::units::Bytes;
use inprofile_experiment::text::problem::{Problem, Wrong};
use inprofile_experiment::text::{Document, Entry, Report, Section};
use inprofile_live::code_points::CodePoints;

use super::datapath::{Attach, Datapath};
use super::direction::FileWide;
use super::role::RoleSettings;
use super::values::{dscp, interface_name, name};
use super::{Config, DIRECTIONS, Fail, Level, LinkLoss, Log, PINS, SOCKET, advice, customer_file, frames};

/// Customers who have series of their own, if the file doesn't say.
const CUSTOMER_SERIES: usize = 100;
/// The longest path of a socket (`sun_path`, less the end).
const LONGEST_SOCKET: usize = 107;

/// Reads a file; `file` is its name in messages. Warnings come with it.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(bytes: &[u8], file: &str, registry: &Registry) -> Result<(Config, Vec<Problem>), Vec<Problem>> {
    parse_for(None, bytes, file, registry)
}

/// The same for this datapath, whatever the file says.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse_for(
    datapath: Option<Datapath>,
    bytes: &[u8],
    file: &str,
    registry: &Registry,
) -> Result<(Config, Vec<Problem>), Vec<Problem>> {
    let mut document = Document::parse_bytes(bytes, file, &[])?;
    customer_file::take_in(&mut document, file)?;
    let report = Report::new(&document);
    let config = root(&report, registry, datapath);
    let failed = report.has_errors();
    let problems = report.finish();
    match config {
        Some(config) if !failed => Ok((config, problems)),
        _ => Err(problems),
    }
}

fn root(report: &Report<'_>, registry: &Registry, datapath: Option<Datapath>) -> Option<Config> {
    let known = [
        "inside",
        "outside",
        "datapath",
        "pins",
        "attach",
        "fail",
        "link_loss",
        "role",
        "dscp",
        "remap",
        "packet",
        "overhead",
        "mpu",
        "frames",
        "flows",
        "fix_offloads",
        "user",
        "code_points",
        "control",
        "metrics",
        "log",
        DIRECTIONS[0],
        DIRECTIONS[1],
    ];
    let root = Section::root(report, &known);
    let inside = root.need("inside", "\"eth0\"").and_then(|e| interface(&e));
    let outside = root.need("outside", "\"eth1\"").and_then(|e| {
        let name = interface(&e)?;
        if inside.as_deref() == Some(&name) {
            let wrong = Wrong::new("both ports are the same interface", "write the one on the other side");
            return e.wrong(wrong);
        }
        Some(name)
    });
    let written = root
        .get("datapath")
        .map_or(Some(Datapath::User), |e| e.word(&["user", "kernel"], "choice").and_then(Datapath::named));
    let datapath = datapath.map_or(written?, |chosen| chosen);
    let fail = match root.get("fail") {
        Some(e) => {
            e.word(&["open", "closed"], "choice").map(|w| if w == "open" { Fail::Open } else { Fail::Closed })
        }
        None => Some(Fail::Closed),
    };
    let link_loss = root.get("link_loss").map_or(Some(LinkLoss::Ignore), |e| {
        let word = e.word(&["ignore", "pass_on"], "choice")?;
        [LinkLoss::Ignore, LinkLoss::PassOn].into_iter().find(|l| l.name() == word)
    });
    let packet = root.get("packet").map_or(Some(1500), |e| e.bytes_in(68..=65_535));
    let overhead = root.get("overhead").map_or(Some(0), |e| e.bytes_in(0..=1_000));
    let mpu = root.get("mpu").map_or(Some(0), |e| e.bytes_in(0..=1_000));
    let role = RoleSettings::read(&root);
    let flows = root.get("flows").map_or(Some(65_536), |e| e.count_in(1..=4_000_000));
    let fix_offloads = root.get("fix_offloads").map_or(Some(false), |e| e.flag());
    let user = optional(&root, "user", |e| name(&e, "\"inprofiled\""));
    let points = code_points(&root);
    let (socket, group) = control(&root)?;
    let pins = root.get("pins").map_or(Some(PINS.into()), |e| absolute(&e));
    let attach = root
        .get("attach")
        .map_or(Some(Attach::Auto), |e| e.word(&Attach::NAMES, "choice").and_then(Attach::named));
    let metrics = optional(&root, "metrics", |e| listen(&e));
    let most_customer_series = customer_series(&root);
    let log = log(&root);
    let (packet, overhead) = (packet?, overhead?);
    let full = Bytes(u64::from(packet) + u64::from(overhead));
    let frames = frames::read(&root, Some(full));
    let (points, frames, role) = (points?, frames?, role?);
    let file_wide = FileWide { registry, datapath, packet: full, points, role, frames };
    let mut directions = [None, None];
    let mut whole = true;
    for (slot, key) in directions.iter_mut().zip(DIRECTIONS) {
        if let Some(entry) = root.get(key) {
            *slot = direction::read(&entry, &file_wide);
            whole &= slot.is_some();
        }
    }
    if DIRECTIONS.iter().all(|d| root.get(d).is_none() && !root.is_misspelt(d)) {
        let remedy = "add a table [upstream] (from inside to outside) or [downstream]";
        report.error(&root.missing(DIRECTIONS[0]), "nothing is done in either direction", remedy);
    }
    if !whole {
        return None;
    }
    let config = Config {
        ports: [inside?, outside?],
        datapath,
        fail: fail?,
        packet: Bytes(u64::from(packet)),
        overhead,
        mpu: mpu?,
        frames,
        points,
        flows: u32::try_from(flows?).ok()?,
        link_loss: link_loss?,
        fix_offloads: fix_offloads?,
        user: user?,
        socket: socket?,
        attach: attach?,
        pins: pins?,
        group: group?,
        metrics: metrics?,
        most_customer_series: most_customer_series?,
        log: log?,
        directions,
    };
    advice::look(&root, &config);
    Some(config)
}

/// The value under an optional key; `None` if something was reported.
fn optional<'d, 'r, T>(
    section: &Section<'d, 'r>,
    key: &str,
    read: impl FnOnce(Entry<'d, 'r>) -> Option<T>,
) -> Option<Option<T>> {
    section.get(key).map_or(Some(None), |e| read(e).map(Some))
}

fn interface(entry: &Entry<'_, '_>) -> Option<String> {
    let name = entry.text("the name of an interface, such as \"eth0\"")?;
    match interface_name(name) {
        Ok(()) => Some(name.to_owned()),
        Err(wrong) => entry.wrong(wrong),
    }
}

fn code_points(root: &Section<'_, '_>) -> Option<CodePoints> {
    let Some(entry) = root.get("code_points") else { return Some(CodePoints::default()) };
    let section = entry.section(&["in", "out", "red"])?;
    let example = ["\"AF11\"", "\"AF12\"", "\"AF13\""];
    let mut each = ["in", "out", "red"]
        .into_iter()
        .zip(example)
        .map(|(key, e)| section.need(key, e).and_then(|e| dscp(&e)));
    let (green, yellow, red) = (each.next()?, each.next()?, each.next()?);
    let points = CodePoints::new(green?, yellow?, red?);
    points.or_else(|| {
        entry.wrong(Wrong::new(
            "two colours have the same DSCP",
            "give each its own: the next router tells them by it",
        ))
    })
}

/// Path and group of the control socket.
fn control(root: &Section<'_, '_>) -> Option<(Option<PathBuf>, Option<Option<String>>)> {
    let Some(entry) = root.get("control") else { return Some((Some(SOCKET.into()), Some(None))) };
    let section = entry.section(&["socket", "group"])?;
    let socket = section.get("socket").map_or(Some(SOCKET.into()), |e| {
        let path = absolute(&e)?;
        if path.as_os_str().len() > LONGEST_SOCKET {
            let problem = format!("a socket's path has at most {LONGEST_SOCKET} bytes");
            return e.wrong(Wrong::new(problem, format!("write \"{SOCKET}\"")));
        }
        Some(path)
    });
    Some((socket, optional(&section, "group", |e| name(&e, "\"adm\""))))
}

fn absolute(entry: &Entry<'_, '_>) -> Option<PathBuf> {
    let text = entry.text("a path")?;
    if !text.starts_with('/') || text.ends_with('/') || text.contains('\0') {
        return entry.wrong(Wrong::new("not the absolute path of a file", "begin it with \"/\""));
    }
    Some(PathBuf::from(text))
}

fn listen(entry: &Entry<'_, '_>) -> Option<SocketAddr> {
    let section = entry.section(&["listen", "customers"])?;
    let listen = section.need("listen", "\"127.0.0.1:9474\"")?;
    let text = listen.text("\"127.0.0.1:9474\"")?;
    text.parse().ok().or_else(|| {
        listen.wrong(Wrong::new("not an address and a port", "write \"127.0.0.1:9474\" or \"[::1]:9474\""))
    })
}

/// `metrics.customers`.
fn customer_series(root: &Section<'_, '_>) -> Option<usize> {
    let Some(entry) = root.get("metrics") else { return Some(CUSTOMER_SERIES) };
    let section = entry.section(&["listen", "customers"])?;
    let most = section
        .get("customers")
        .map_or(Some(CUSTOMER_SERIES as u64), |e| e.count_in(0..=super::MOST_CUSTOMERS as u64));
    most.and_then(|n| usize::try_from(n).ok())
}

fn log(root: &Section<'_, '_>) -> Option<Log> {
    let Some(entry) = root.get("log") else { return Some(Log { level: Level::Info, file: None }) };
    let section = entry.section(&["level", "file"])?;
    let level = section.get("level").map_or(Some(Level::Info), |e| {
        let word = e.word(&["error", "warn", "info"], "level")?;
        [Level::Error, Level::Warn, Level::Info].into_iter().find(|l| l.name() == word)
    });
    let file = optional(&section, "file", |e| absolute(&e));
    Some(Log { level: level?, file: file? })
}

pub(super) mod direction {
    //! `[upstream]` and `[downstream]`: a rate, the assured queue, classes before and after it, customers, the aggregate.

    use inprofile_core::registry::Registry;
    use inprofile_core::units::Bytes;
    use inprofile_experiment::text::Entry;
    use inprofile_experiment::text::problem::Wrong;
    use inprofile_experiment::text::quantity::FASTEST;
    use inprofile_live::code_points::CodePoints;

    use super::super::classes::{
        ASSURED, BEST_EFFORT, Link, class, classes, control_class, control_limit, marker,
    };
    use super::super::datapath::{self, Datapath};
    use super::super::frames::Frames;
    use super::super::role::{self, RoleSettings};
    use super::super::{Direction, customers, queues};

    /// The file's settings for all directions.
    pub(crate) struct FileWide<'a> {
        pub(crate) registry: &'a Registry,
        pub(crate) datapath: Datapath,
        /// Size of a full packet on the link.
        pub(crate) packet: Bytes,
        pub(crate) points: CodePoints,
        pub(crate) role: RoleSettings,
        pub(crate) frames: Frames,
    }

    /// Reads one direction.
    pub(crate) fn read(entry: &Entry<'_, '_>, file_wide: &FileWide<'_>) -> Option<Direction> {
        let FileWide { registry, datapath, packet, points, frames, .. } = *file_wide;
        let own = [
            "rate",
            "queue",
            "classes",
            BEST_EFFORT,
            "aggregate",
            "customers",
            "templates",
            "groups",
            "shared",
            role::OLD_KEY,
        ];
        let section = entry.section(&[&own[..], &role::KEYS].concat())?;
        let kernel = datapath == Datapath::Kernel;
        if kernel {
            datapath::refuse_queues(|k| section.get(k), &["rate", "shared"]);
        }
        let rate = if kernel {
            Some(FASTEST)
        } else {
            section.need("rate", "\"10 Mbit/s\"").and_then(|e| e.positive_rate())
        };
        let said = RoleSettings::read(&section).and_then(|said| said.with_old_key(&section));
        let link = Link { rate, packet, registry, datapath };
        let before = classes(&section, &link, points);
        let example = "{ aqm = \"rio\", limit = \"100 packets\", … }";
        let class = if kernel { datapath::class } else { class };
        let queue = match section.get("queue") {
            None if kernel => datapath::plain_class(registry, ASSURED),
            _ => section.need("queue", example).and_then(|e| class(&e.open(example)?, ASSURED, &[], &link)),
        };
        let last = match section.get(BEST_EFFORT) {
            Some(e) => {
                class(&e.open("{ aqm = \"drop_tail\", limit = \"100 packets\" }")?, BEST_EFFORT, &[], &link)
                    .map(Some)
            }
            None => Some(None),
        };
        let mut classes = vec![control_class(registry)?];
        let before = before.map(|before| classes.extend(before));
        let found = customers::read(&section, &link, points, &classes);
        let shared = queues::shared(&section, packet);
        before?;
        let (role, unsold) = said?.or(file_wide.role).in_force();
        let nothing_given_away = role::gives_nothing_away(&section, &unsold, &classes, points);
        let assured = classes.len();
        classes.push(queue?);
        classes.extend(last?);
        let (rate, (customers, groups), shared) = (rate?, found?, shared?);
        let (control, control_sender) = frames.control(rate, customers.len(), packet);
        classes[Direction::CONTROL].limit = control_limit(control.burst);
        let aggregate = None;
        let mut direction = Direction {
            rate,
            role,
            unsold,
            control,
            control_sender,
            classes,
            assured,
            customers,
            groups,
            shared,
            aggregate,
        };
        if direction.most_markers() > usize::from(u16::MAX) {
            let problem = format!("{} markers and policers in one direction", direction.most_markers());
            return section.get("customers")?.wrong(Wrong::new(problem, "give fewer customers services"));
        }
        nothing_given_away.then_some(())?;
        if let Some(entry) = section.get("aggregate") {
            let place = direction.place_of_aggregate(packet);
            let aggregate = marker(&entry, registry, &place)?;
            if kernel {
                return datapath::refuse_aggregate(&entry, &aggregate);
            }
            direction.aggregate = Some(aggregate);
        }
        Some(direction)
    }
}
