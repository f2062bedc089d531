//! The tests of the crate from outside, in one program, a file for each subject.

mod capture;
mod drivers;
mod emulate;
mod flow_numbers;
mod packets;
mod stage;

mod support {
    //! Support for tests with real devices.

    use inprofile_live::namespace::Namespace;

    /// A namespace of its own for a test; `None` if there can't be one and `ALLOW_MISSING=live` says that this is fine.
    pub fn namespace() -> Option<Namespace> {
        match Namespace::create() {
            Ok(namespace) => Some(namespace),
            Err(e) => {
                let allowed = std::env::var("ALLOW_MISSING").is_ok_and(|v| v.split(',').any(|w| w == "live"));
                assert!(allowed, "{e}; ALLOW_MISSING=live skips these tests");
                eprintln!("skipped: {e}");
                None
            }
        }
    }
}
