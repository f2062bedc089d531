//! An engineer's view: every customer's rates between two readings of the counters, in a table.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::Value as Json;

/// One customer, or class, in one direction, between two looks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// As in the file.
    pub name: String,
    /// `up` or `down`.
    pub direction: &'static str,
    /// The arrival rate, in bit/s.
    pub offered: f64,
    /// The departure rates as IN, OUT and red, in bit/s.
    pub sent: [f64; 3],
    /// Packets dropped a second, whatever the cause.
    pub drops: f64,
    /// Packets that wait.
    pub waiting: u64,
    /// From arrival to the packet's turn on the link, in seconds: the mean between the looks, and what 99 % did not exceed since the
    /// start; `None` if nobody measures it or nothing left.
    pub delay: Option<(f64, f64)>,
}

impl Row {
    /// The departure rate, in bit/s.
    #[must_use]
    pub fn sent_all(&self) -> f64 {
        self.sent.iter().sum()
    }
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// Mode, uptime, ports.
    pub head: Vec<String>,
    /// The fault, if any.
    pub trouble: Vec<String>,
    /// Queues that customers share.
    pub classes: Vec<Row>,
    /// Customers.
    pub customers: Vec<Row>,
}

/// Column heads of a table, and how they are aligned: names left, figures right.
pub const COLUMNS: [&str; 10] =
    ["customer", "way", "offered", "sent", "IN", "OUT", "red", "drops/s", "waiting", "delay mean/p99"];

impl View {
    /// Between two answers of `stats`; of the first alone all rates are 0.
    #[must_use]
    pub fn between(before: &Json, now: &Json) -> View {
        let seconds = number(&now["uptime"]) - number(&before["uptime"]);
        let mut view = View { head: head(now), trouble: trouble(now), ..View::default() };
        for (old, new) in list(&before["directions"]).iter().zip(list(&now["directions"])) {
            let direction = if new["name"] == "upstream" { "up" } else { "down" };
            view.classes.extend(rows(&old["classes"], &new["classes"], direction, seconds));
            view.customers.extend(rows(&old["customers"], &new["customers"], direction, seconds));
        }
        view
    }
}

fn head(now: &Json) -> Vec<String> {
    let up = number(&now["uptime"]) as u64;
    let (days, hours, minutes) = (up / 86_400, up / 3_600 % 24, up / 60 % 60);
    let mode = now["mode"].as_str().unwrap_or("?");
    let mut head = vec![format!("{mode}, up {days} d {hours:02}:{minutes:02}:{:02}", up % 60)];
    head.extend(list(&now["ports"]).iter().map(|p| {
        let state = p["out_of_use"].as_str().map(|why| why.lines().next().unwrap_or(why));
        format!("{} {}", text(&p["interface"]), state.unwrap_or(&text(&p["operstate"])))
    }));
    head
}

fn trouble(now: &Json) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(why) = now["failure"].as_str() {
        all.push(format!("the mechanisms are out of use: {why}"));
    }
    for direction in list(&now["directions"]).iter().filter(|d| d["adds_up"] == false) {
        all.push(format!("{}: accounts don't add up", text(&direction["name"])));
    }
    if let Some(why) = now["reloads"]["error"].as_str() {
        all.push(format!("the last reload was refused: {}", why.lines().next().unwrap_or(why)));
    }
    all
}

/// Rows by name: one that wasn't there before has come since.
fn rows(before: &Json, now: &Json, direction: &'static str, seconds: f64) -> Vec<Row> {
    let old: BTreeMap<&str, &Json> =
        list(before).iter().filter_map(|item| Some((item["name"].as_str()?, item))).collect();
    list(now)
        .iter()
        .map(|item| row(old.get(&*text(&item["name"])).copied(), item, direction, seconds))
        .collect()
}

fn row(before: Option<&Json>, now: &Json, direction: &'static str, seconds: f64) -> Row {
    let nothing = Json::Null;
    let before = before.unwrap_or(&nothing);
    // Counts start over with a restart, or a customer who came back: what is less than before has begun at 0.
    let grown = |key: &str| {
        let (old, new) = (all(&before[key]), all(&now[key]));
        if new >= old { new - old } else { new }
    };
    let rate = |n: f64| if seconds > 0.0 { n / seconds } else { 0.0 };
    let colour = |key: &str, colour: &str| {
        let (old, new) = (number(&before[key][colour]), number(&now[key][colour]));
        if new >= old { new - old } else { new }
    };
    let lost = ["dropped", "no_buffer", "too_late"].iter().map(|key| grown(key)).sum();
    let (packets, sum) = (|j: &Json| number(&j["delay"]["packets"]), |j: &Json| number(&j["delay"]["sum_s"]));
    let left = packets(now) - packets(before);
    let delay =
        (left > 0.0).then(|| ((sum(now) - sum(before)) / left, number(&now["delay"]["p99_ms"]) / 1e3));
    Row {
        name: text(&now["name"]),
        direction,
        offered: rate(grown("arrived_bytes") * 8.0),
        sent: ["in", "out", "red"].map(|c| rate(colour("sent_bytes", c) * 8.0)),
        drops: rate(lost),
        waiting: all(&now["waiting"]) as u64,
        delay,
    }
}

/// In which order rows are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By the rate that came, most first.
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

/// Sorts rows; equal ones by name.
pub fn sort(rows: &mut [Row], by: Order) {
    let key = |r: &Row| match by {
        Order::Offered => r.offered,
        Order::Sent => r.sent_all(),
        Order::Drops => r.drops,
        Order::Delay => r.delay.map_or(0.0, |(mean, _)| mean),
        Order::Name => 0.0,
    };
    let names = |a: &Row, b: &Row| a.name.cmp(&b.name).then(b.direction.cmp(a.direction));
    rows.sort_by(|a, b| key(b).partial_cmp(&key(a)).unwrap_or(Ordering::Equal).then_with(|| names(a, b)));
}

/// A row's cells, as [`COLUMNS`] has them.
#[must_use]
pub fn cells(row: &Row) -> [String; 10] {
    let delay = row.delay.map(|(mean, p99)| format!("{} / {}", time(mean), time(p99)));
    [
        row.name.clone(),
        row.direction.to_owned(),
        bits(row.offered),
        bits(row.sent_all()),
        bits(row.sent[0]),
        bits(row.sent[1]),
        bits(row.sent[2]),
        count(row.drops),
        row.waiting.to_string(),
        delay.unwrap_or_else(|| "–".into()),
    ]
}

/// The whole view as text.
#[must_use]
pub fn plain(view: &View) -> String {
    let mut out = format!("inprofiled: {}\n", view.head.join(" | "));
    view.trouble.iter().for_each(|t| out.push_str(&format!("! {t}\n")));
    for (first, rows) in [("class", &view.classes), ("customer", &view.customers)] {
        if rows.is_empty() {
            continue;
        }
        let mut heads = COLUMNS.map(str::to_owned);
        heads[0] = first.to_owned();
        let lines: Vec<[String; 10]> = std::iter::once(heads).chain(rows.iter().map(cells)).collect();
        let widths: [usize; 10] =
            std::array::from_fn(|i| lines.iter().map(|line| line[i].chars().count()).max().unwrap_or(0));
        out.push('\n');
        for line in lines {
            let padded: Vec<String> = line
                .iter()
                .zip(widths)
                .enumerate()
                .map(
                    |(i, (cell, width))| {
                        if i < 2 { format!("{cell:width$}") } else { format!("{cell:>width$}") }
                    },
                )
                .collect();
            out.push_str(padded.join("  ").trim_end());
            out.push('\n');
        }
    }
    out
}

/// One customer, from two answers about him.
#[must_use]
pub fn customer(name: &str, before: &Json, now: &Json) -> String {
    let seconds = number(&now["uptime"]) - number(&before["uptime"]);
    let mut out = format!("{name}\n");
    for (old, new) in list(&before["directions"]).iter().zip(list(&now["directions"])) {
        let direction = if new["direction"] == "upstream" { "up" } else { "down" };
        let r = row(Some(&old["counts"]), &new["counts"], direction, seconds);
        out.push_str(&format!("\n{}\n", text(&new["direction"])));
        let mut line = |key: &str, value: String| out.push_str(&format!("  {key:<28}{value}\n"));
        for (key, value) in new["configured"].as_object().into_iter().flatten() {
            let said = crate::changes::short_line(value);
            if key != "name" && !said.is_empty() {
                line(key, said);
            }
        }
        line("now: offered", format!("{}bit/s", bits(r.offered)));
        let [green, yellow, red] = r.sent.map(bits);
        line("now: sent", format!("{}bit/s (IN {green}, OUT {yellow}, red {red})", bits(r.sent_all())));
        line("now: drops", format!("{} packets/s", count(r.drops)));
        line("now: waiting", format!("{} packets", r.waiting));
        if let Some((mean, _)) = r.delay {
            line("now: delay, mean", time(mean));
        }
        let counts = &new["counts"];
        line(
            "total: arrived",
            format!("{} packets, {} B", all(&counts["arrived"]), all(&counts["arrived_bytes"])),
        );
        for colour in ["in", "out", "red"] {
            let (packets, bytes) = (number(&counts["sent"][colour]), number(&counts["sent_bytes"][colour]));
            if packets > 0.0 {
                line(
                    &format!("total: sent as {}", colour.to_uppercase()),
                    format!("{packets} packets, {bytes} B"),
                );
            }
        }
        for (cause, n) in counts["dropped"].as_object().into_iter().flatten().filter(|(_, n)| all(n) > 0.0) {
            line(&format!("total: dropped, {}", cause.replace('_', " ")), format!("{} packets", all(n)));
        }
        for (key, what) in
            [("no_buffer", "total: dropped, no buffer"), ("too_late", "total: dropped, too late")]
        {
            if all(&counts[key]) > 0.0 {
                line(what, format!("{} packets", all(&counts[key])));
            }
        }
        if number(&counts["delay"]["packets"]) > 0.0 {
            let of = |key: &str| time(number(&counts["delay"][key]) / 1e3);
            line("total: delay, mean, p99", format!("{}, {}", of("mean_ms"), of("p99_ms")));
        }
    }
    out
}

/// The sum of what may be a number or counts by colour or cause.
fn all(value: &Json) -> f64 {
    match value {
        Json::Object(map) => map.values().map(all).sum(),
        other => number(other),
    }
}

fn number(value: &Json) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or("").to_owned()
}

fn list(value: &Json) -> &[Json] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// `4.02 M`: three digits that count.
fn bits(x: f64) -> String {
    let (value, unit) = match x {
        x if x >= 1e9 => (x / 1e9, " G"),
        x if x >= 1e6 => (x / 1e6, " M"),
        x if x >= 1e3 => (x / 1e3, " k"),
        x => (x, " "),
    };
    format!("{}{unit}", digits(value)).trim_end().to_owned()
}

fn count(x: f64) -> String {
    if x == 0.0 { "0".into() } else { digits(x) }
}

fn digits(x: f64) -> String {
    match x {
        0.0 => "0".into(),
        x if x < 9.995 => format!("{x:.2}"),
        x if x < 99.95 => format!("{x:.1}"),
        x => format!("{x:.0}"),
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{} s", digits(s)),
        s if s >= 1e-3 => format!("{} ms", digits(s * 1e3)),
        s => format!("{} µs", digits(s * 1e6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn stats(uptime: f64, alice: u64, lost: u64) -> Json {
        let customer = |name: &str, n: u64, lost: u64| {
            json!({
                "name": name, "arrived": n + lost, "arrived_bytes": (n + lost) * 1000,
                "sent": { "in": n, "out": 0, "red": 0 }, "sent_bytes": { "in": n * 1000, "out": 0, "red": 0 },
                "dropped": { "overflow": lost }, "waiting": 3,
                "delay": { "packets": n, "sum_s": n as f64 * 0.02, "mean_ms": 20.0, "p99_ms": 40.0 },
            })
        };
        json!({
            "uptime": uptime, "mode": "normal",
            "ports": [{ "interface": "lan0", "operstate": "up" }, { "interface": "wan0", "operstate": "up", "out_of_use": "it is a port of `br0`\n  take it out" }],
            "reloads": { "error": null },
            "directions": [
                { "name": "upstream", "adds_up": true, "classes": [], "customers": [customer("bob", 5, 0), customer("alice", alice, lost)] },
                { "name": "downstream", "adds_up": true, "classes": [], "customers": [] },
            ],
        })
    }

    #[test]
    fn rates_are_what_grew_over_the_time_between() {
        let mut view = View::between(&stats(100.0, 1_000, 50), &stats(102.0, 2_000, 70));
        sort(&mut view.customers, Order::Offered);
        let alice = &view.customers[0];
        assert_eq!((alice.name.as_str(), alice.direction), ("alice", "up"));
        assert_eq!((alice.offered, alice.sent, alice.drops), (4.08e6, [4e6, 0.0, 0.0], 10.0));
        assert_eq!((alice.waiting, alice.delay), (3, Some((0.02, 0.04))));
        assert_eq!((view.customers[1].offered, view.customers[1].delay), (0.0, None));
        let text = plain(&view);
        assert!(text.contains("4.08 M") && text.contains("20.0 ms / 40.0 ms"), "{text}");
        assert!(
            text.starts_with("inprofiled: normal, up 0 d 00:01:42 | lan0 up | wan0 it is a port of `br0`\n"),
            "{text}"
        );
    }

    #[test]
    fn a_restart_between_two_looks_is_no_negative_rate() {
        let view = View::between(&stats(100.0, 1_000, 50), &stats(101.0, 10, 0));
        assert!(view.customers.iter().all(|r| r.offered >= 0.0 && r.drops >= 0.0), "{view:?}");
        assert!(
            View::between(&stats(5.0, 1, 0), &stats(5.0, 1, 0)).customers.iter().all(|r| r.offered == 0.0)
        );
        assert_eq!(View::between(&Json::Null, &Json::Null).customers, []);
    }

    #[test]
    fn figures_have_three_digits_that_count() {
        assert_eq!(
            [0.0, 999.0, 4.016e6, 12.3e9, 9.996e6].map(bits),
            ["0", "999", "4.02 M", "12.3 G", "10.0 M"]
        );
        assert_eq!([2.5, 0.0123, 45e-6].map(time), ["2.50 s", "12.3 ms", "45.0 µs"]);
    }
}
