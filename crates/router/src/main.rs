//! The command line.

#[cfg(target_os = "linux")]
mod cli;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    cli::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("inprofiled: packet sockets are Linux's: there is nothing to run here");
    std::process::ExitCode::from(2)
}
