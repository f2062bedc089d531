//! The ports as the machine has them: shared with another router, a bridge or the kernel's own stack; links that go down.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::Duration;

use inprofile_core::units::Duration as Span;

use crate::bench::{Bench, PROGRAM, QUIET, assert_adds_up, may, plain};
use crate::frames::Udp;
use crate::service::{heard, wait_for};

/// Two routers between the same ports send everything twice: the second is refused, whatever its socket.
#[test]
fn a_second_router_on_the_same_ports_is_refused() {
    let Some(mut bench) = Bench::new("ports-taken") else { return };
    bench.start(&plain("5 Mbit/s"));
    let text = fs::read_to_string(bench.path("router.toml")).unwrap();
    let other = bench.path("other.toml");
    // Only one port is the same.
    bench.link("add lan1 type veth peer name h2");
    bench.link("set lan1 up");
    for (inside, port) in [("lan0", "lan0"), ("lan1", "wan0")] {
        let second = text.replace("control.sock", "other.sock").replace("lan0", inside);
        fs::write(&other, second).unwrap();
        let (code, said) = bench.refused_by(&other);
        assert!(
            code == Some(1)
                && said.contains(&format!("interface `{port}`"))
                && said.contains("another inprofiled forwards"),
            "{said}"
        );
    }
    bench.send(0, &(0..20).map(|n| Udp::numbered(n).v4()).collect::<Vec<_>>());
    assert_eq!(bench.receive(1, 40, QUIET).len(), 20, "once each");
    // Free again with the first one's end, whatever its end.
    bench.signal("-KILL");
    assert_eq!(bench.ended(), None);
    bench.start_again();
    bench.send(0, &[Udp::numbered(1).v4()]);
    assert_eq!(bench.receive(1, 2, QUIET).len(), 1);
}

/// A bridge forwards too: refused at the start, out of use from when it is put into one.
#[test]
fn a_port_in_a_bridge_is_refused() {
    let Some(mut bench) = Bench::new("bridged") else { return };
    bench.link("add br0 type bridge");
    bench.link("set br0 up");
    bench.link("set wan0 master br0");
    bench.configure(&plain("5 Mbit/s"));
    let (code, said) = bench.refused();
    assert!(
        code == Some(1) && said.contains("interface `wan0`") && said.contains("ip link set wan0 nomaster"),
        "{said}"
    );
    bench.link("set wan0 nomaster");
    bench.start_again();
    bench.link("set wan0 master br0");
    wait_for("it is out of use", || bench.stats()["ports"][1]["in_use"] == false);
    let why = bench.stats()["ports"][1]["out_of_use"].as_str().unwrap().to_owned();
    assert!(why.contains("`br0`") && why.contains("bridge"), "{why}");
    bench.link("set wan0 nomaster");
    wait_for("it is in use", || bench.stats()["ports"][1]["in_use"] == true);
    bench.send(0, &[Udp::numbered(1).v4()]);
    assert_eq!(bench.receive(1, 2, QUIET).len(), 1);
    assert_adds_up(&bench.stats());
}

/// An address at a port serves nobody while the router runs: said at the start, and by `check`.
#[test]
fn an_address_at_a_port_is_warned_of() {
    let Some(mut bench) = Bench::new("address") else { return };
    bench.ip("addr add 192.0.2.1/24 dev lan0");
    bench.start(&plain("5 Mbit/s"));
    let errors = bench.errors();
    let line = errors.lines().find(|l| l.contains("192.0.2.1/24"));
    let line = line.unwrap_or_else(|| panic!("{errors}"));
    assert!(
        line.contains("\"level\":\"warn\"")
            && line.contains("lan0")
            && line.contains("ip addr flush dev lan0")
    );
    let file = bench.path("router.toml");
    let check = bench.namespace.within(|| Command::new(PROGRAM).arg("check").arg(&file).output()).unwrap();
    let said = String::from_utf8_lossy(&check.stderr).into_owned();
    assert!(check.status.success() && said.contains("192.0.2.1/24"), "{said}");
}

/// A link that goes down is seen: in the log, in stats and metrics, by the service manager.
#[test]
fn a_link_that_goes_down_is_seen() {
    let Some(mut bench) = Bench::new("carrier") else { return };
    let manager = UnixDatagram::bind(bench.path("notify.sock")).unwrap();
    bench.configure(&format!("[metrics]\nlisten = \"127.0.0.1:9474\"\n{}", plain("5 Mbit/s")));
    let mut command = Command::new(PROGRAM);
    command.arg("run").arg(bench.path("router.toml")).env("NOTIFY_SOCKET", bench.path("notify.sock"));
    bench.start_by(&mut command);
    let port = |bench: &Bench| {
        let port = bench.stats()["ports"][1].clone();
        (port["carrier"].as_bool().unwrap(), port["operstate"].as_str().unwrap().to_owned())
    };
    assert_eq!(port(&bench), (true, "up".into()));
    assert!(bench.page().contains("inprofiled_port_carrier{interface=\"wan0\"} 1"));
    bench.link("set h1 down");
    wait_for("no carrier", || !port(&bench).0);
    assert_eq!(port(&bench).1, "lowerlayerdown");
    let page = bench.page();
    assert!(page.contains("inprofiled_port_carrier{interface=\"wan0\"} 0"), "{page}");
    assert!(page.contains("inprofiled_port_up{interface=\"wan0\",operstate=\"lowerlayerdown\"} 0"), "{page}");
    assert_eq!(bench.stats()["ports"][1]["in_use"], true, "it comes back by itself");
    wait_for("a line", || bench.errors().contains("no carrier"));
    let told = heard(&manager, Duration::from_millis(100)).concat();
    assert!(told.contains("STATUS=`wan0`: no carrier"), "{told}");
    bench.link("set h1 up");
    wait_for("carrier", || port(&bench) == (true, "up".into()));
    assert!(bench.stats()["ports"][1]["carrier_changes"].as_u64().unwrap() >= 2);
    wait_for("a line", || bench.errors().contains("the link is up again"));
    let told = heard(&manager, Duration::from_millis(600)).concat();
    assert!(told.contains("STATUS=packets are forwarded"), "{told}");
    bench.send(0, &[Udp::numbered(1).v4()]);
    assert_eq!(bench.receive(1, 1, QUIET).len(), 1);
    // Switched off by somebody: told apart from a cable that is out.
    bench.link("set wan0 down");
    wait_for("a line", || bench.errors().contains("the interface is switched off"));
    bench.link("set wan0 up");
    wait_for("carrier", || port(&bench) == (true, "up".into()));
}

/// By choice the neighbour on the other side sees the loss of a link, as if the router were a cable.
#[test]
fn link_loss_is_passed_on_where_that_is_wanted() {
    let Some(mut bench) = Bench::new("link-loss") else { return };
    let operstate = |bench: &Bench, interface: &str| {
        let out =
            bench.namespace.within(|| Command::new("ip").args(["-br", "link", "show", interface]).output());
        String::from_utf8_lossy(&out.unwrap().stdout).split_whitespace().nth(1).unwrap_or("").to_owned()
    };
    bench.start(&format!("link_loss = \"pass_on\"\n---\n{}", plain("5 Mbit/s")));
    assert_eq!(operstate(&bench, "h0"), "UP");
    bench.link("set h1 down");
    wait_for("the inside sees it", || operstate(&bench, "h0") == "LOWERLAYERDOWN");
    wait_for("a line", || bench.errors().contains("switched off, as the link at `wan0` is down"));
    bench.link("set h1 up");
    wait_for("the inside is up", || operstate(&bench, "h0") == "UP");
    bench.send(0, &[Udp::numbered(1).v4()]);
    assert_eq!(bench.receive(1, 1, QUIET).len(), 1);
    // Killed meanwhile, the next start brings up what the first had switched off.
    bench.link("set h0 down");
    wait_for("the outside sees it", || operstate(&bench, "h1") == "LOWERLAYERDOWN");
    bench.signal("-KILL");
    assert_eq!(bench.ended(), None);
    bench.link("set h0 up");
    bench.start_again();
    wait_for("the outside is up", || operstate(&bench, "h1") == "UP");
    bench.link("set h1 down");
    wait_for("the inside sees it", || operstate(&bench, "h0") == "LOWERLAYERDOWN");
    // And so does its own end.
    bench.signal("-TERM");
    assert_eq!(bench.ended(), Some(0), "{}", bench.errors());
    wait_for("the inside is up", || operstate(&bench, "h0") == "UP");
}

/// As under the unit: a user without the right to give files away, a socket for a group that he isn't in.
#[test]
fn the_control_sockets_group_needs_no_right_to_give_files_away() {
    let whole = fs::read_to_string("/proc/self/uid_map").unwrap().contains("4294967295");
    if !may("become another user", whole) {
        return;
    }
    let Some(mut bench) = Bench::new("group") else { return };
    let run = bench.path("run");
    fs::create_dir(&run).unwrap();
    std::os::unix::fs::chown(&run, Some(65_534), Some(65_534)).unwrap();
    fs::set_permissions(&run, fs::Permissions::from_mode(0o750)).unwrap();
    let socket = run.join("control.sock");
    bench.configure(&plain("5 Mbit/s"));
    let file = bench.path("router.toml");
    let text = fs::read_to_string(&file).unwrap();
    let before = format!("socket = {:?}", bench.path("control.sock"));
    fs::write(&file, text.replace(&before, &format!("socket = {socket:?}\ngroup = \"games\""))).unwrap();
    let mut command = Command::new("setpriv");
    let caps = ["--inh-caps=+net_raw,+net_admin", "--ambient-caps=+net_raw,+net_admin"];
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).args(caps);
    command.args(["--bounding-set=-all,+net_raw,+net_admin", "--no-new-privs", PROGRAM, "run"]).arg(&file);
    bench.socket = socket.clone();
    bench.start_by(&mut command);
    assert_eq!(fs::metadata(&socket).unwrap().mode() & 0o007, 0, "not for the world");
    let ask = |group: &str| {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid=1234",
            &format!("--regid={group}"),
            "--clear-groups",
            PROGRAM,
            "stats",
            "--socket",
        ]);
        command.arg(&socket).output().unwrap()
    };
    let member = ask("games");
    assert!(member.status.success(), "{}", String::from_utf8_lossy(&member.stderr));
    let other = ask("daemon");
    assert!(!other.status.success(), "a stranger is kept out");
    assert!(String::from_utf8_lossy(&other.stderr).contains("control.group"));
    bench.send(0, &[Udp::numbered(1).v4()]);
    assert_eq!(bench.receive(1, 1, Span::from_millis(1000)).len(), 1);
}
