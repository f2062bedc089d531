//! Runs the [command](args) that was given. Data go to standard output, messages to standard error; exit status 0: done,
//! 1: failed, 2: bad input.

mod args;
mod top;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use args::{Command, Foreign, Kernel, Line, Packets, Show, Switch};
use clap::{CommandFactory as _, Parser as _};
use inprofile_experiment::text::{Problem, Severity};
use inprofile_router::config::datapath::Datapath;
use inprofile_router::config::{self, describe};
use inprofile_router::interchange::{Imported, cisco, export, ovs, tc};
use inprofile_router::ports::Closing;
use inprofile_router::{control, isolation, kernel, load, ports, router, run, watch};
use serde_json::{Value as Json, json};

/// Why it ended, and with which code.
struct Failure(u8, String);

impl Failure {
    fn bad(text: impl Into<String>) -> Failure {
        Failure(2, text.into())
    }
}

pub fn main() -> ExitCode {
    match act(Line::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(code, text)) => {
            if !text.is_empty() {
                eprintln!("{text}");
            }
            ExitCode::from(code)
        }
    }
}

fn act(command: Command) -> Result<(), Failure> {
    match command {
        Command::Check { file, datapath, json } => check(&file, datapath, json),
        Command::Run { file, fix_offloads } => forward(&file, fix_offloads),
        Command::Reload { dry_run, at } => reload(&at.socket, dry_run),
        Command::Bypass { on, at } => {
            ask(&at.socket, &json!({ "do": "bypass", "on": on == Switch::On })).map(drop)
        }
        Command::Stats { json, at } => {
            let stats = control::stats(&at.socket).map_err(|e| Failure(1, e))?;
            print(&if json { format!("{stats}\n") } else { plain(&stats) })
        }
        Command::Top { plain, count, interval, sort, at } => {
            let every = Duration::from_secs_f64(interval);
            top::run(&at.socket, plain, count, every, sort).map_err(|e| Failure(1, e))
        }
        Command::Show { what: Show::Customer { name, json, at } } => customer(&at.socket, &name, json),
        Command::Stop { at } => ask(&at.socket, &json!({ "do": "stop" })).map(drop),
        Command::Release { interface, pins } => {
            isolation::release(&interface, &pins).map_err(|e| Failure(1, e.to_string()))
        }
        Command::Import { from: Foreign::Tc, file } => import(&file, tc::import),
        Command::Import { from: Foreign::Cisco, file } => import(&file, cisco::import),
        Command::Import { from: Foreign::Ovs, file } => import(&file, ovs::import),
        Command::Export { to, file, folder } => {
            let datapath = (to == Kernel::Bpf).then_some(Datapath::Kernel);
            let (config, _) =
                load::load_for(datapath, &file, &router::registry(), None).map_err(Failure::bad)?;
            match (to, folder) {
                (Kernel::Bpf, Some(folder)) => {
                    kernel::export::bpf(&config, &folder).map_err(|e| Failure(1, e))
                }
                (_, Some(_)) => Err(Failure(2, "only bpf is written into a folder; leave it out".into())),
                (Kernel::Ovs, None) => print(&ovs::export(&config)),
                (_, None) => print(&export::tc(&config)),
            }
        }
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Line::command(), "inprofiled", &mut text);
            print(&String::from_utf8_lossy(&text))
        }
        Command::Man { folder } => {
            let made = clap_mangen::generate_to(Line::command(), &folder);
            made.map_err(|e| Failure(1, format!("{}: {e}", folder.display())))
        }
    }
}

/// To standard output. Whoever reads it may stop: that is no fault.
fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(Failure(1, format!("standard output: {e}"))),
        _ => Ok(()),
    }
}

fn forward(file: &Path, fix_offloads: bool) -> Result<(), Failure> {
    let ended = run::run(file, fix_offloads).map_err(|e| Failure(1, format!("inprofiled: {e}")))?;
    match ended.left_behind {
        0 => Ok(()),
        n => Err(Failure(1, format!("inprofiled: {n} packets could not be sent in time"))),
    }
}

fn reload(socket: &Path, dry_run: bool) -> Result<(), Failure> {
    let answer = ask(socket, &json!({ "do": "reload", "dry_run": dry_run }))?;
    let lines = |key: &str| -> Vec<String> {
        let list = answer.get(key).and_then(Json::as_array);
        list.into_iter().flatten().filter_map(Json::as_str).map(|line| format!("{line}\n")).collect()
    };
    lines("warnings").iter().for_each(|w| eprint!("{w}"));
    print(&lines(if dry_run { "changes" } else { "roles" }).concat())?;
    match answer.get("refused").and_then(Json::as_str) {
        Some(why) => Err(Failure(1, format!("it would be refused: {why}"))),
        None => Ok(()),
    }
}

/// A customer as the file has him, and what became of his packets in the last second and since he came.
fn customer(socket: &Path, name: &str, as_json: bool) -> Result<(), Failure> {
    let request = json!({ "do": "customer", "name": name });
    let before = ask(socket, &request)?;
    if as_json {
        return print(&format!("{}\n", before.get("customer").unwrap_or(&Json::Null)));
    }
    std::thread::sleep(Duration::from_secs(1));
    let now = ask(socket, &request)?;
    print(&watch::customer(name, &before["customer"], &now["customer"]))
}

fn ask(socket: &Path, request: &Json) -> Result<Json, Failure> {
    control::ask(socket, request).map_err(|e| Failure(1, e))
}

fn check(file: &Path, datapath: Option<Packets>, as_json: bool) -> Result<(), Failure> {
    let name = file.display().to_string();
    let bytes =
        inprofile_experiment::text::file::read(file).map_err(|e| Failure::bad(format!("{name}: {e}")))?;
    let datapath = datapath.map(|d| match d {
        Packets::User => Datapath::User,
        Packets::Kernel => Datapath::Kernel,
    });
    let (config, problems) = match config::parse_for(datapath, &bytes, &name, &router::registry()) {
        Ok((config, warnings)) => (Some(config), warnings),
        Err(problems) => (None, problems),
    };
    let ports = config.as_ref().map_or_else(Vec::new, |c| ports::warnings(&c.ports));
    let here =
        config.as_ref().map_or_else(Vec::new, |c| c.ports.iter().filter_map(|p| Closing::of(p)).collect());
    if as_json {
        let of = |severity: Severity| json_of(problems.iter().filter(|p| p.severity == severity));
        let effective = config.as_ref().map(describe::json);
        println!(
            "{}",
            json!({ "file": name, "ok": config.is_some(), "errors": of(Severity::Error), "warnings": of(Severity::Warning), "ports": ports.iter().map(|w| json!({ "interface": w.interface, "problem": w.text })).collect::<Vec<_>>(), "closed": here.iter().map(|c| json!({ "interface": c.interface, "link_local": c.link_local, "rest": c.rest })).collect::<Vec<_>>(), "effective": effective })
        );
    } else {
        problems.iter().for_each(|p| eprintln!("{p}"));
        ports.iter().for_each(|w| eprintln!("{name}: warning: {}", w.text));
        if let Some(config) = &config {
            here.iter().for_each(|closing| println!("{closing}"));
            describe::roles(config).iter().for_each(|role| println!("{role}"));
            print!("{}", describe::text(config));
        }
    }
    if config.is_some() { Ok(()) } else { Err(Failure(2, String::new())) }
}

fn import(file: &Path, read: fn(&str, &str) -> Imported) -> Result<(), Failure> {
    let name = file.display().to_string();
    let bad = |e: &dyn std::fmt::Display| Failure::bad(format!("{name}: {e}"));
    let bytes = inprofile_experiment::text::file::read(file).map_err(|e| bad(&e))?;
    let text = String::from_utf8(bytes).map_err(|e| bad(&e))?;
    let ours = read(&text, &name).map_err(|problems| {
        Failure::bad(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    })?;
    print(&ours.to_string())
}

fn json_of<'a>(problems: impl Iterator<Item = &'a Problem>) -> Json {
    let one = |p: &Problem| {
        json!({
            "file": p.file, "line": p.line, "column": p.column, "path": p.path,
            "value": p.value, "problem": p.problem, "remedy": p.remedy,
        })
    };
    problems.map(one).collect()
}

/// Counts as a person reads them: what is zero is omitted.
fn plain(stats: &Json) -> String {
    let mut out = String::new();
    lines(stats, 0, &mut out);
    out
}

fn lines(value: &Json, depth: usize, out: &mut String) {
    let Json::Object(map) = value else { return };
    let indent = "  ".repeat(depth);
    for (key, value) in map.iter().filter(|(_, v)| !empty(v)) {
        match value {
            Json::Object(_) => {
                out.push_str(&format!("{indent}{key}\n"));
                lines(value, depth + 1, out);
            }
            Json::Array(list) => {
                for item in list {
                    let name =
                        item.get("name").or(item.get("interface")).and_then(Json::as_str).unwrap_or("");
                    out.push_str(&format!("{indent}{key} {name}\n"));
                    lines(item, depth + 1, out);
                }
            }
            Json::String(s) if depth == 0 || (key != "name" && key != "interface") => {
                out.push_str(&format!("{indent}{key} = {s}\n"));
            }
            Json::String(_) => {}
            other => out.push_str(&format!("{indent}{key} = {other}\n")),
        }
    }
}

fn empty(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Number(n) => n.as_f64() == Some(0.0),
        Json::Object(map) => map.values().all(empty),
        Json::Array(list) => list.is_empty(),
        _ => false,
    }
}
