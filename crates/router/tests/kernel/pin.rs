//! A thread on a CPU of its own.

use std::fs;
use std::process::Command;

/// Puts this thread on a CPU, before all others there: else who is to work at once with another takes turns with who else is at work.
pub fn pin(cpu: usize) {
    let path = fs::read_link("/proc/thread-self").expect("threads are in /proc");
    let id = path.file_name().and_then(|n| n.to_str()).expect("a number");
    for words in [["taskset", "-cp", &cpu.to_string(), id].as_slice(), &["chrt", "-f", "-p", "1", id]] {
        let out = Command::new(words[0]).args(&words[1..]).output().expect("util-linux is installed");
        assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    }
}
