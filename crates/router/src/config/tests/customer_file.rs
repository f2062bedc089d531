//! Customers in a CSV file beside the router's: read like tables, and every bad line is told with its place.

use std::fs;

use super::*;

const FILE: &str = r#"
inside = "lan0"
outside = "wan0"
[upstream]
rate = "100 Mbit/s"
queue = { aqm = "rio", limit = "100 packets", in = { min_th = "45 packets", max_th = "60 packets", max_p = 0.02 }, out = { min_th = "20 packets", max_th = "40 packets", max_p = 0.05 } }
customers = "customers.csv"
[[upstream.templates]]
name = "gold"
contract = "4 Mbit/s"
marker = { kind = "token_bucket", depth = "30 kB" }
[[upstream.templates]]
name = "home"
marker = { kind = "token_bucket", depth = "30 kB" }
"#;

/// A folder of its own, gone with the value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("inprofile-customers-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// What the router says of its file, beside these customers.
    fn read(&self, file: &str, customers: &[u8]) -> Result<Config, Vec<String>> {
        fs::write(self.0.join("customers.csv"), customers).unwrap();
        self.read_alone(file)
    }

    fn read_alone(&self, file: &str) -> Result<Config, Vec<String>> {
        let name = self.0.join("r.toml").display().to_string();
        let plain = |text: String| text.replace(&format!("{}/", self.0.display()), "");
        parse(file.as_bytes(), &name, &Registry::default())
            .map(|(config, _)| config)
            .map_err(|all| all.iter().map(|p| plain(p.to_string())).collect())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

const CUSTOMERS: &str = "\
name,prefix,vlan,session,contract,plan
alice,10.0.1.0/24 2001:db8:1::/48,,,,gold
bob,10.0.2.0/24,100 100.7,,2 Mbit/s,home
carol,,,7,500 kbit/s,home
";

#[test]
fn customers_of_a_file_are_those_of_tables() {
    let folder = Folder::new("same");
    let of_file = folder.read(FILE, CUSTOMERS.as_bytes()).unwrap();
    let tables = r#"
[[upstream.customers]]
name = "alice"
prefix = ["10.0.1.0/24", "2001:db8:1::/48"]
template = "gold"
[[upstream.customers]]
name = "bob"
prefix = "10.0.2.0/24"
vlan = [100, "100.7"]
contract = "2 Mbit/s"
template = "home"
[[upstream.customers]]
name = "carol"
session = 7
contract = "500 kbit/s"
template = "home"
"#;
    let of_tables =
        folder.read_alone(&(FILE.replace("customers = \"customers.csv\"\n", "") + tables)).unwrap();
    assert_eq!(describe::json(&of_file), describe::json(&of_tables));
    assert_eq!(of_file.directions[0].as_ref().unwrap().promised(), Some(Rate(6_500_000)));
    // Beside tables, in one list.
    let everybody = r#"customers = ["customers.csv", { name = "rest", prefix = "0.0.0.0/0", template = "home", contract = "1 Mbit/s" }]"#;
    let mixed =
        folder.read(&FILE.replace("customers = \"customers.csv\"", everybody), CUSTOMERS.as_bytes()).unwrap();
    let names: Vec<_> =
        mixed.directions[0].as_ref().unwrap().customers.iter().map(|c| c.name.clone()).collect();
    assert_eq!(names, ["alice", "bob", "carol", "rest"]);
}

/// Each bad line is told with file, line, column, value and remedy.
#[test]
fn every_bad_line_is_told_with_its_place() {
    let folder = Folder::new("bad");
    let with = |line: &str| format!("{CUSTOMERS}{line}\n").into_bytes();
    let cases: &[(Vec<u8>, &str, &str)] = &[
        (
            with("dave,10.0.1.0/24,,,,gold"),
            "customers.csv:5:6: error: packets of 10.0.1.0/24 are alice's already",
            "ports of its own",
        ),
        (
            with("dave,10.0.2.0/24,100,,1 Mbit/s,home"),
            "customers.csv:5:6: error: packets of 10.0.2.0/24 in VLAN 100 are bob's already",
            "longer prefix",
        ),
        (with("dave,,,7,,gold"), "customers.csv:5:8: error: packets of ", "carol's already"),
        (
            with("dave,10.0.3.0/24,,,,golf"),
            "customers.csv:5:21: error: there is no such template",
            "did you mean \"gold\"?",
        ),
        (with("dave,10.0.3.0/24,,,4 Mbits,gold"), "customers.csv:5:20: error: ", "Mbit/s"),
        (with("dave,10.0.3.7/24,,,,gold"), "customers.csv:5:6: error: ", "write \"10.0.3.0/24\""),
        (with("dave,10.0.3.0/24,5000,,,gold"), "customers.csv:5:18: error: ", "4094"),
        (
            with("alice,10.0.3.0/24,,,,gold"),
            "customers.csv:5:1: error: another customer has this name",
            "its own",
        ),
        (with("dave,,,,,gold"), "customers.csv:5:1: error: ", "prefix"),
        (
            with("dave,10.0.3.0/24,,gold"),
            "customers.csv:5:1: error: \"dave,10.0.3.0/24,,gold\": 4 fields, and the header has 6",
            "write name,prefix,vlan,session,contract,plan",
        ),
        (
            with("dave, 10.0.3.0/24,,,,gold"),
            "customers.csv:5:6: error: \" 10.0.3.0/24\": spaces around a field",
            "write \"10.0.3.0/24\"",
        ),
        (
            with("dave,\"10.0.3.0/24\",,,,gold"),
            "customers.csv:5:6: error: \"\"10.0.3.0/24\",,,,gold\": a quotation mark",
            "without quotation marks",
        ),
        (with(""), "customers.csv:5:1: error: the line is empty", "remove it"),
        (
            format!("{CUSTOMERS}dave,10.0.3.0/24,,,,go").into_bytes(),
            "customers.csv:5:1: error: \"dave,10.0.3.0/24,,,,go\": the last line has no end",
            "cut short",
        ),
        (
            CUSTOMERS.replace('\n', "\r\n").into_bytes(),
            "customers.csv:1:1: error: the line ends in CR LF",
            "sed -i",
        ),
        (
            format!("\u{feff}{CUSTOMERS}").into_bytes(),
            "customers.csv:1:1: error: the file begins with a byte order mark",
            "without one",
        ),
        (
            CUSTOMERS.replace(',', ";").into_bytes(),
            "customers.csv:1:1: error: \"name;prefix;vlan;session;contract;plan\": there are semicolons",
            "write commas",
        ),
        (
            CUSTOMERS.replace("session,", "sesion,").into_bytes(),
            "customers.csv:1:18: error: \"sesion\": there is no such column",
            "did you mean \"session\"?",
        ),
        (
            CUSTOMERS.replace("session,", "vlan,").into_bytes(),
            "customers.csv:1:18: error: \"vlan\": the column is there twice",
            "keep one",
        ),
        (Vec::new(), "customers.csv:1:1: error: the file is empty", "begin it with the columns: name,prefix"),
        (
            b"name\xff\n".to_vec(),
            "customers.csv:1:5: error: \"byte 0xff\": the file is not UTF-8 text",
            "UTF-8",
        ),
    ];
    for (customers, begins, remedy) in cases {
        let told = folder.read(FILE, customers).unwrap_err();
        let (place, problem) = begins.split_once("error: ").unwrap();
        assert!(told[0].starts_with(place), "{told:#?}\nnot at {place}");
        assert!(told[0].contains(problem.split(": ").last().unwrap()), "{told:#?}\nnot {problem}");
        assert!(told[0].contains(remedy), "{told:#?}\nnot {remedy}");
    }
}

/// `inprofile plan --customers` reads the same lines alike: its test has this table, too.
#[test]
fn lines_are_taken_and_refused_as_plan_does() {
    let folder = Folder::new("alike");
    let lines = include_str!("customer_lines.txt").lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let (outcome, rows) = line.split_once(' ').unwrap();
        let customers =
            format!("name,prefix,vlan,session,port,contract,plan\n{}\n", rows.replace(" ; ", "\n"));
        let told = folder.read(FILE, customers.as_bytes()).err();
        assert_eq!(told.is_none(), outcome == "ok", "{line}: {told:#?}");
    }
}

#[test]
fn a_file_that_is_not_there_is_told_where_it_is_named() {
    let folder = Folder::new("absent");
    let told = folder.read_alone(FILE).unwrap_err();
    assert!(
        told[0].starts_with(
            "r.toml:7:13: error: upstream.customers = \"customers.csv\": customers.csv: No such file"
        ),
        "{told:#?}"
    );
    assert!(told[0].contains("write the name of a CSV file beside this one"), "{told:#?}");
}
