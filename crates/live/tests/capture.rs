//! A capture's ECN: the flags of SYN, SYN/ACK, data and acknowledgements, and the AccECN Option, byte for byte; and as tshark reads them,
//! where there is one.

use std::io::{self, Write};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use inprofile_live::capture::{self, Request};

/// A connection over a link of 20 Mbit/s with DualPI2.
fn file(tcp: &str) -> String {
    format!(
        r#"
title = "capture"
duration = "2 s"
measure = {{ from = "0 s", at = "link" }}
tcp = {{ profile = "linux", {tcp} }}
[[links]]
name = "link"
from = "client"
to = "server"
rate = "20 Mbit/s"
delay = "5 ms"
queue = {{ aqm = "dualpi2", limit = "500 packets" }}
[[flows]]
name = "one"
from = "client"
to = "server"
start = "0 s"
"#
    )
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("one writer").write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The whole capture, of the packets at the client's end.
fn captured(tcp: &str) -> Vec<u8> {
    let scenario = Scenario::parse(&file(tcp), "capture.toml", &[], &Registry::default())
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    let request =
        Request { at: vec!["link".into()], snaplen: 0, program: "test".into(), comment: String::new() };
    let out = Shared::default();
    let stop = Arc::new(AtomicBool::new(false));
    capture::run(scenario.network(1, false), &request, &stop, out.clone()).expect("it runs");
    std::mem::take(&mut *out.0.lock().expect("written"))
}

/// A packet's TCP header: whether it comes from the client, its flags from AE to FIN, its code point, its options.
#[derive(Debug)]
struct Read {
    forward: bool,
    flags: u16,
    ecn: u8,
    options: Vec<u8>,
}

/// The packets of the first interface: blocks of type 6 (pcapng §4.3).
fn packets(capture: &[u8]) -> Vec<Read> {
    let (mut rest, mut out) = (capture, Vec::new());
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
    while rest.len() >= 12 {
        let block = &rest[..word(rest, 4) as usize];
        rest = &rest[block.len()..];
        if word(block, 0) != 6 || word(block, 8) != 0 {
            continue;
        }
        let ip = &block[28 + 14..];
        let tcp = &ip[20..];
        let flags = u16::from_be_bytes([tcp[12], tcp[13]]);
        let options = tcp[20..4 * usize::from(tcp[12] >> 4)].to_vec();
        out.push(Read { forward: ip[13] == 64, flags: flags & 0x1ff, ecn: ip[1] & 3, options });
    }
    out
}

/// EE0B, ECEB and EE1B, as far as an AccECN Option has them (RFC 9768 §3.2.3, Figure 4 and Table 5).
fn counters(options: &[u8]) -> [Option<u32>; 3] {
    let (mut rest, mut out) = (options, [None; 3]);
    while let [kind, after @ ..] = rest {
        let order = match kind {
            0 => break,
            1 => {
                rest = after;
                continue;
            }
            172 => [0, 1, 2],
            174 => [2, 1, 0],
            _ => [3; 3],
        };
        let (option, others) = rest.split_at(usize::from(rest[1]));
        for (field, at) in option[2..].chunks_exact(3).zip(order).filter(|(_, at)| *at < 3) {
            out[at] = Some(u32::from_be_bytes([0, field[0], field[1], field[2]]));
        }
        rest = others;
    }
    out
}

const SYN: u16 = 0x002;
const ACK: u16 = 0x010;
const ECE: u16 = 0x040;
const CWR: u16 = 0x080;
const AE: u16 = 0x100;

/// RFC 9768 §3.1.1, §3.2.2, §3.2.3: Prague's SYN is ECT(1), which the SYN/ACK tells; data has the ACE field of one who was sent nothing marked; each
/// acknowledgement that tells of news has the option of order 1, whose third field never changes and is left out.
#[test]
fn accurate_feedback() {
    let bytes = captured(r#"congestion = "prague", accurate_ecn_option = true"#);
    let all = packets(&bytes);
    let [syn, answer, data, ..] = &all[..] else { panic!("{} packets", all.len()) };
    assert_eq!((syn.forward, syn.flags, syn.ecn), (true, SYN | AE | CWR | ECE, 1));
    assert_eq!((answer.forward, answer.flags, answer.ecn), (false, SYN | ACK | CWR | ECE, 0));
    assert_eq!(answer.options[..12], [1, 172, 11, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
    // Five: AE and ECE.
    assert_eq!((data.forward, data.flags, data.ecn), (true, ACK | AE | ECE, 1));
    let acks: Vec<&Read> = all.iter().skip(2).filter(|p| !p.forward).collect();
    assert!(acks.len() > 100 && acks.iter().all(|p| p.flags & SYN == 0 && p.options.len().is_multiple_of(4)));
    let mut before = (1, 0);
    for ack in &acks {
        let [None, ceb, Some(e1b)] = counters(&ack.options) else { panic!("{ack:?}") };
        let ceb = ceb.unwrap_or(0);
        let (news, marked) = (e1b - before.0, ceb - before.1);
        assert!(news + marked > 0 && news % 1460 == 0 && marked % 1460 == 0, "{ack:?}");
        // The field counts what the option does.
        assert_eq!(u32::from(ack.flags >> 6), (5 + ceb / 1460) % 8, "{ack:?}");
        before = (e1b, ceb);
    }
    assert!(before.1 > 0, "something is marked");
    tshark_agrees(&bytes, &all);
}

/// RFC 9768 §3.1.2, RFC 3168 §6.1.1: with a receiver that has ECN-Echo the SYN is the same, and what follows RFC 3168's; and without ECN.
#[test]
fn less_than_was_asked_for() {
    let all = packets(&captured(r#"congestion = "prague", receiver_ecn = "classic""#));
    assert_eq!([0, 1, 2].map(|i| all[i].flags), [SYN | AE | CWR | ECE, SYN | ACK | ECE, ACK]);
    assert_eq!([0, 1, 2].map(|i| all[i].ecn), [1, 0, 2]);
    assert!(all.iter().any(|p| !p.forward && p.flags == ACK | ECE), "marks are echoed");
    assert!(all.iter().any(|p| p.forward && p.flags == ACK | CWR), "and answered");
    let all = packets(&captured(r#"congestion = "prague", receiver_ecn = "none""#));
    assert_eq!([0, 1, 2].map(|i| all[i].flags), [SYN | AE | CWR | ECE, SYN | ACK, ACK]);
    assert!(all.iter().skip(1).all(|p| p.ecn == 0 && p.flags & (AE | CWR | ECE) == 0));
}

/// Where tshark is installed: it reads the same flags, and the option's counters, and finds nothing malformed.
fn tshark_agrees(capture: &[u8], all: &[Read]) {
    let place = std::env::temp_dir().join(format!("inprofile-capture-{}.pcapng", std::process::id()));
    std::fs::write(&place, capture).expect("written");
    let names =
        ["tcp.flags", "tcp.options.acc_ecn.ee0b", "tcp.options.acc_ecn.eceb", "tcp.options.acc_ecn.ee1b"];
    let fields = [&names[..], &["_ws.malformed"]].concat();
    let mut line = Command::new("tshark");
    line.arg("-r").arg(&place).args(["-Y", "frame.interface_id == 0", "-T", "fields"]);
    fields.iter().for_each(|field| {
        line.args(["-e", field]);
    });
    let ran = line.output();
    std::fs::remove_file(&place).expect("it was written");
    let Some(ran) = ran.ok().filter(|ran| ran.status.success()) else {
        eprintln!("there is no tshark that knows the AccECN Option: its reading is not compared");
        return;
    };
    let text = String::from_utf8(ran.stdout).expect("text");
    assert_eq!(text.lines().count(), all.len(), "{}", String::from_utf8_lossy(&ran.stderr));
    for (line, ours) in text.lines().zip(all) {
        let counters =
            counters(&ours.options).map(|counter| counter.map_or(String::new(), |n| n.to_string()));
        assert_eq!(line, format!("0x{:04x}\t{}\t", ours.flags, counters.join("\t")), "{ours:?}");
    }
}
