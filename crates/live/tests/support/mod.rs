//! What tests with real devices need.

use std::process::Command;

use inprofile_live::namespace::Namespace;

/// A namespace of its own for a test; `None` if there can't be one and `ALLOW_MISSING=live` says that this is fine.
pub fn namespace() -> Option<Namespace> {
    match Namespace::create() {
        Ok(namespace) => Some(namespace),
        Err(e) => {
            let allowed = std::env::var("ALLOW_MISSING").is_ok_and(|v| v.split(',').any(|w| w == "live"));
            assert!(allowed, "{e}; ALLOW_MISSING=live leaves these tests out");
            eprintln!("left out: {e}");
            None
        }
    }
}

/// Runs `ip` in the calling thread's namespace.
pub fn ip(arguments: &str) {
    let run = Command::new("ip").args(arguments.split_whitespace()).output().expect("iproute2 is installed");
    assert!(run.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&run.stderr));
}

/// Keeps the kernel's own neighbour discovery out of the calling thread's namespace. Devices made later have none.
pub fn no_ipv6() {
    std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").expect("the namespace is ours");
}
