//! The kernel's datapath against the router in user space: the same file, the same frames at the same times; under BPF_PROG_TEST_RUN with
//! a virtual clock, and between namespaces.
//!
//! It takes root, or CAP_BPF and CAP_NET_ADMIN; ALLOW_MISSING=bpf leaves it out where the kernel lets nobody load a program.

#[path = "../attacks/search/evolve.rs"]
mod evolve;
#[path = "../attacks/frames.rs"]
#[expect(dead_code, reason = "attacks know more of a frame")]
mod frames;
#[path = "../attacks/leaky_bucket.rs"]
mod leaky_bucket;
#[path = "../attacks/search/strategy.rs"]
mod strategy;

mod hostile;
mod laws;
mod parity;
mod pin;
mod processors;
mod tried;

/// A start waits for the verifier: what is no common frame's is verified by itself, not along every path.
#[test]
fn the_verifier_follows_few_paths() {
    if !tried::permitted() {
        return;
    }
    let mut kernel = tried::Tried::new(&tried::config("[upstream]\n"));
    for port in 0..2 {
        let info = kernel.maps.program(port).unwrap().info().unwrap();
        let steps = info.verified_instruction_count().expect("Linux 5.16 and newer count them");
        println!("{steps} instructions verified");
        assert!(steps < 60_000, "{steps}");
    }
}
