//! Arguments, and what they ask for. Data to standard output, words to standard error; 0 done, 1 failed, 2 bad input.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use inprofile_config::{Problem, Severity};
use inprofile_daemon::config::{self, describe};
use inprofile_daemon::interchange::{Imported, cisco, export, tc};
use inprofile_daemon::{client, control, ports, router, run};
use serde_json::{Value as Json, json};

const HELP: &str = "\
inprofiled: a router of two ports that marks, queues and shapes

  inprofiled check FILE [--json]           say what is wrong with a configuration, or what it means
  inprofiled run FILE [--fix-offloads]     forward packets until SIGTERM; SIGHUP reloads
  inprofiled reload                        read the file again; packets that wait are kept
  inprofiled bypass on|off                 let everything pass unmarked and unshaped
  inprofiled stats [--json]                what happened since the start
  inprofiled stop                          send what waits, and end
  inprofiled import tc|cisco FILE          read tc's red and gred lines, or random-detect, into a configuration
  inprofiled export tc FILE                what the kernel can do of a configuration, and what it can't

reload, bypass, stats and stop take --socket PATH (default /run/inprofiled/control.sock).
docs/router.md says what a configuration can say.
";

/// What was asked for: words, and flags.
struct Arguments {
    words: Vec<String>,
    json: bool,
    fix_offloads: bool,
    socket: PathBuf,
}

/// Why it ended, and with which code.
struct Failure(u8, String);

impl Failure {
    fn bad(text: impl Into<String>) -> Failure {
        Failure(2, text.into())
    }
}

pub fn main() -> ExitCode {
    match parse(std::env::args().skip(1)).and_then(|a| act(&a)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(code, text)) => {
            if !text.is_empty() {
                eprintln!("{text}");
            }
            ExitCode::from(code)
        }
    }
}

fn parse(mut given: impl Iterator<Item = String>) -> Result<Arguments, Failure> {
    let socket = control::default_socket().to_owned();
    let mut a = Arguments { words: Vec::new(), json: false, fix_offloads: false, socket };
    while let Some(word) = given.next() {
        match word.as_str() {
            "--json" => a.json = true,
            "--fix-offloads" => a.fix_offloads = true,
            "--socket" => {
                a.socket = given.next().ok_or_else(|| Failure::bad("--socket wants a path"))?.into()
            }
            "-h" | "--help" | "help" => a.words = vec!["help".into()],
            "-V" | "--version" => a.words = vec!["version".into()],
            flag if flag.starts_with("--") => {
                let flags = ["--json", "--fix-offloads", "--socket", "--help", "--version"];
                return Err(Failure::bad(format!(
                    "unknown flag {flag}\n  {}",
                    inprofile_config::nearest::suggest(flag, &flags)
                )));
            }
            _ => a.words.push(word),
        }
    }
    Ok(a)
}

fn act(a: &Arguments) -> Result<(), Failure> {
    let words: Vec<&str> = a.words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["help"] => print!("{HELP}"),
        ["version"] => println!("inprofiled {}", env!("CARGO_PKG_VERSION")),
        ["check", file] => return check(Path::new(file), a.json),
        ["run", file] => {
            let ended = run::run(Path::new(file), a.fix_offloads)
                .map_err(|e| Failure(1, format!("inprofiled: {e}")))?;
            if ended.left_behind > 0 {
                return Err(Failure(
                    1,
                    format!("inprofiled: {} packets could not be sent in time", ended.left_behind),
                ));
            }
        }
        ["reload"] => {
            let answer = ask(a, &json!({ "do": "reload" }))?;
            let roles = answer.get("roles").and_then(Json::as_array);
            roles.into_iter().flatten().filter_map(Json::as_str).for_each(|role| println!("{role}"));
        }
        ["stop"] => ask(a, &json!({ "do": "stop" })).map(drop)?,
        ["bypass", way @ ("on" | "off")] => {
            ask(a, &json!({ "do": "bypass", "on": *way == "on" })).map(drop)?
        }
        ["stats"] => {
            let answer = ask(a, &json!({ "do": "stats" }))?;
            let stats = answer.get("stats").unwrap_or(&Json::Null);
            if a.json { println!("{stats}") } else { print!("{}", plain(stats)) }
        }
        ["import", "tc", file] => return import(file, tc::import),
        ["import", "cisco", file] => return import(file, cisco::import),
        ["export", "tc", file] => {
            let (config, _) = run::read(Path::new(file), &router::registry(), None).map_err(Failure::bad)?;
            print!("{}", export::tc(&config));
        }
        [] => return Err(Failure::bad(HELP)),
        [command, ..] => {
            let known = ["check", "run", "reload", "bypass", "stats", "stop", "import", "export"];
            let text = if known.contains(command) {
                format!("wrong arguments for {command}\n\n{HELP}")
            } else {
                format!(
                    "unknown command {command}\n  {}",
                    inprofile_config::nearest::suggest(command, &known)
                )
            };
            return Err(Failure::bad(text));
        }
    }
    Ok(())
}

fn ask(a: &Arguments, request: &Json) -> Result<Json, Failure> {
    client::ask(&a.socket, request).map_err(|e| Failure(1, e))
}

fn check(file: &Path, as_json: bool) -> Result<(), Failure> {
    let name = file.display().to_string();
    let bytes = inprofile_config::file::read(file).map_err(|e| Failure::bad(format!("{name}: {e}")))?;
    let (config, problems) = match config::parse(&bytes, &name, &router::registry()) {
        Ok((config, warnings)) => (Some(config), warnings),
        Err(problems) => (None, problems),
    };
    let ports = config.as_ref().map_or_else(Vec::new, |c| ports::warnings(&c.ports));
    if as_json {
        let of = |severity: Severity| json_of(problems.iter().filter(|p| p.severity == severity));
        let effective = config.as_ref().map(describe::json);
        println!(
            "{}",
            json!({ "file": name, "ok": config.is_some(), "errors": of(Severity::Error), "warnings": of(Severity::Warning), "ports": ports.iter().map(|w| json!({ "interface": w.interface, "problem": w.text })).collect::<Vec<_>>(), "effective": effective })
        );
    } else {
        problems.iter().for_each(|p| eprintln!("{p}"));
        ports.iter().for_each(|w| eprintln!("{name}: warning: {}", w.text));
        if let Some(config) = &config {
            describe::roles(config).iter().for_each(|role| println!("{role}"));
            print!("{}", describe::text(config));
        }
    }
    if config.is_some() { Ok(()) } else { Err(Failure(2, String::new())) }
}

fn import(file: &str, read: fn(&str, &str) -> Imported) -> Result<(), Failure> {
    let bad = |e: &dyn std::fmt::Display| Failure::bad(format!("{file}: {e}"));
    let bytes = inprofile_config::file::read(Path::new(file)).map_err(|e| bad(&e))?;
    let text = String::from_utf8(bytes).map_err(|e| bad(&e))?;
    let ours = read(&text, file).map_err(|problems| {
        Failure::bad(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    })?;
    print!("{ours}");
    Ok(())
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

/// Counts as a person reads them: what is zero is left out.
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
