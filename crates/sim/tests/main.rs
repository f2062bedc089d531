//! The tests of the crate from outside, in one program, a file for each subject.

mod service;
mod support;
mod tcp;
mod windows;

mod parity {
    //! Runs in the ns-2 profile against traces of ns-2 itself, and what happens when a trace can't be written.
    //!
    //! A scenario has how many lines ns-2 2.35 wrote, and their checksum without the column of flags. With `NS2_TRACES` set to a
    //! folder of whole traces (`*.tr`, that column cut out), the first line that differs is shown.

    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use crate::support::{Dumbbell, Queue, compare};
    use inprofile_core::units::Duration;
    use inprofile_sim::ns2;
    use inprofile_sim::run_log::Incomplete;

    #[test]
    fn drop_tail_two_reno_flows() {
        compare("golden-droptail", &Dumbbell::of(Queue::DropTail, 10.0), (42_166, 0x5535_1326_17c7_7de3));
    }

    #[test]
    fn red_two_reno_flows() {
        compare(
            "golden-red",
            &Dumbbell::of(Queue::Red { min: 5.0, max: 15.0, p: 0.02 }, 25.0),
            (43_077, 0xc9f0_49e3_39bf_c133),
        );
    }

    /// `$ns queue-limit $d $r 2`, `TCPSink/DelAck`: segments come twice because their acknowledgements were lost.
    #[test]
    fn lost_and_delayed_acknowledgements() {
        let d = Dumbbell { limit_back: 2.0, delayed_ack: true, ..Dumbbell::of(Queue::DropTail, 8.0) };
        compare("golden-delack", &d, (31_971, 0x3d1b_abbc_0682_d60c));
    }

    /// `Agent/TCP set overhead_ 0.005` and room for one packet: timeouts all the time.
    #[test]
    fn random_delays_and_timeouts() {
        let d = Dumbbell { jitter: Duration::from_millis(5), ..Dumbbell::of(Queue::DropTail, 2.0) };
        compare("golden-overhead", &d, (18_555, 0xb5d8_28de_b1c2_4c07));
    }

    /// Takes so many bytes, then is full.
    struct Disk(usize);

    impl io::Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.len() > self.0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0 -= bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_stops_the_run_and_is_told() {
        for room in [0, 1_000_000] {
            let dumbbell = Dumbbell::of(Queue::DropTail, 10.0);
            let stop = Arc::new(AtomicBool::new(false));
            match ns2::run(dumbbell.network(), &stop, Disk(room)) {
                Err(Incomplete::Write(error)) => assert_eq!(error.kind(), io::ErrorKind::StorageFull),
                other => panic!("with room for {room} bytes: {other:?}"),
            }
        }
    }
}
