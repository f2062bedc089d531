//! The laws of the three RFCs: what fills the two buckets, and which colour takes from which.

use super::{Bucket, Buckets, Meter, Metering, Mode, Tokens, committed, needed, one_needed, wanted};
use crate::marker::Action;
use crate::prelude::*;

pub mod srtcm {
    //! Single-rate three-colour marker: one rate, two burst sizes.
    //!
    //! Tokens arrive at `cir` and fill the committed bucket; when it is full they go to the excess bucket. A packet for which the
    //! committed bucket has enough tokens is green, one for which the excess bucket has enough is yellow, any other is red and
    //! takes none. Only the length of a burst decides, not its peak rate. Source: RFC 2697.
    //! Non-goal: a peak rate (see [`trtcm`](super::trtcm)).

    use super::*;

    crate::params! {
        /// The operator's settings (RFC 2697 §2).
        pub struct Params {
            /// Committed information rate, counted on the wire. Default: the flow's contract.
            cir: Option<Rate> [POSITIVE];
            /// Committed burst size: the depth of the bucket that makes packets green. Packets are full packets.
            cbs: Backlog [NON_NEGATIVE];
            /// Excess burst size: the depth of the bucket that makes packets yellow.
            ebs: Backlog [NON_NEGATIVE];
            /// Whether the colour a packet comes with counts.
            mode: Mode = Mode::ColourBlind;
            /// What becomes of red packets: they go on as red, or a policer drops them.
            action: Action = Action::Mark;
        }
    }

    /// The law.
    #[derive(Clone, Debug)]
    pub struct SrTcm {
        cir: Rate,
    }

    impl Metering for SrTcm {
        const SECOND: &'static str = "te";

        /// RFC 2697 §3: Tc is filled first, then Te, at `cir` both.
        #[inline]
        fn fill(&self, b: &mut Buckets, now: Time) {
            let over = b.committed.pour(b.inflow(self.cir, now));
            b.second.pour(over);
        }

        /// RFC 2697 §3, the two lists.
        #[inline]
        fn meter(&self, b: &mut Buckets, came: Colour, size: u32) -> Colour {
            if came == Colour::Green && b.committed.holds(size) {
                b.committed.take(size);
                Colour::Green
            } else if came != Colour::Red && b.second.holds(size) {
                b.second.take(size);
                Colour::Yellow
            } else {
                Colour::Red
            }
        }
    }

    impl Build for Params {
        type Mechanism = Meter<SrTcm>;

        fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
            committed(self.cir, context)?;
            one_needed(self.cbs, self.ebs, Tokens::Enough, context)?;
            // RFC 2697 §2: an excess burst of nothing makes it a two-colour meter, which is meant.
            Ok(wanted("cbs", self.cbs, Tokens::Enough, context, "green").into_iter().collect())
        }

        fn build(&self, context: &Context) -> Meter<SrTcm> {
            // `check` has passed: there is a rate.
            let law = SrTcm { cir: committed(self.cir, context).unwrap_or_default() };
            Meter::new(law, [self.cbs, self.ebs], context, self.mode, self.action)
        }
    }
}

pub mod trtcm {
    //! Two-rate three-colour marker: a peak rate that may not be exceeded, and a committed rate within it.
    //!
    //! The peak bucket is checked first: a packet for which it has too few tokens is red, whatever the committed bucket holds, and
    //! takes none. Otherwise it is green if the committed bucket has enough tokens too, and takes from both; else it is yellow and
    //! takes from the peak bucket only. Source: RFC 2698. Non-goal: green packets that take no excess tokens
    //! (see [`rfc4115`](super::rfc4115)).

    use super::*;

    crate::params! {
        /// The operator's settings (RFC 2698 §2).
        pub struct Params {
            /// Committed information rate, counted on the wire. Default: the flow's contract.
            cir: Option<Rate> [POSITIVE];
            /// Peak information rate: at least `cir`.
            pir: Rate [POSITIVE];
            /// Committed burst size: the depth of the bucket that makes packets green. Packets are full packets.
            cbs: Backlog [NON_NEGATIVE];
            /// Peak burst size: the depth of the bucket without whose tokens packets are red.
            pbs: Backlog [POSITIVE];
            /// Whether the colour a packet comes with counts.
            mode: Mode = Mode::ColourBlind;
            /// What becomes of red packets: they go on as red, or a policer drops them.
            action: Action = Action::Mark;
        }
    }

    /// The law.
    #[derive(Clone, Debug)]
    pub struct TrTcm {
        cir: Rate,
        pir: Rate,
    }

    impl Metering for TrTcm {
        const SECOND: &'static str = "tp";

        /// RFC 2698 §3: each bucket at its own rate.
        #[inline]
        fn fill(&self, b: &mut Buckets, now: Time) {
            b.committed.pour(b.inflow(self.cir, now));
            b.second.pour(b.inflow(self.pir, now));
        }

        /// RFC 2698 §3, the two lists.
        #[inline]
        fn meter(&self, b: &mut Buckets, came: Colour, size: u32) -> Colour {
            if came == Colour::Red || !b.second.holds(size) {
                return Colour::Red;
            }
            b.second.take(size);
            if came == Colour::Yellow || !b.committed.holds(size) {
                return Colour::Yellow;
            }
            b.committed.take(size);
            Colour::Green
        }
    }

    impl Build for Params {
        type Mechanism = Meter<TrTcm>;

        fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
            let cir = committed(self.cir, context)?;
            if self.pir < cir {
                return Err(Fault {
                    field: "pir",
                    problem: format!("a peak rate of {} is below the committed rate of {cir}", self.pir),
                    remedy: format!("at least \"{cir}\" (RFC 2698 §2)"),
                });
            }
            needed("pbs", self.pbs, context)?;
            let mut warnings: Vec<Warning> =
                wanted("cbs", self.cbs, Tokens::Enough, context, "green").into_iter().collect();
            if self.cbs.bytes(context.packet) > self.pbs.bytes(context.packet) {
                let text = format!(
                    "{} is above pbs, {}: a burst is red before the committed tokens are spent",
                    self.cbs, self.pbs
                );
                warnings.push(Warning { field: "cbs", text });
            }
            Ok(warnings)
        }

        fn build(&self, context: &Context) -> Meter<TrTcm> {
            // `check` has passed: there is a rate.
            let law = TrTcm { cir: committed(self.cir, context).unwrap_or_default(), pir: self.pir };
            Meter::new(law, [self.cbs, self.pbs], context, self.mode, self.action)
        }
    }
}

pub mod rfc4115 {
    //! Two-rate three-colour marker with efficient handling of in-profile traffic: a committed and an excess rate, independent of
    //! each other.
    //!
    //! A green packet takes committed tokens only, a yellow one excess tokens only. So yellow traffic never costs a green packet
    //! its colour, and no peak bucket is shared, as it is in [RFC 2698](super::trtcm). Source: RFC 4115.
    //! At equality the RFC's prose and its flow chart differ: a packet conforms if it leaves tokens (prose, T − B > 0), or if there
    //! are enough tokens (chart, T ≥ B). We follow the chart unless `boundary` says otherwise: it agrees with RFC 2697 and 2698,
    //! and a bucket's depth is then the longest burst that passes. Non-goal: counting packets instead of bytes.

    use super::*;

    crate::choice! {
        /// How many tokens let a packet of B bytes by.
        pub enum Boundary {
            /// At least B: the flow chart.
            AtLeast = "T>=B",
            /// More than B: the prose.
            MoreThan = "T>B",
        }
    }

    crate::params! {
        /// The operator's settings (RFC 4115 §1).
        pub struct Params {
            /// Committed information rate, counted on the wire. Default: the flow's contract.
            cir: Option<Rate> [POSITIVE];
            /// Excess information rate: comes on top of `cir`.
            eir: Rate [POSITIVE];
            /// Committed burst size: the depth of the bucket that makes packets green. Packets are full packets.
            cbs: Backlog [NON_NEGATIVE];
            /// Excess burst size: the depth of the bucket that makes packets yellow.
            ebs: Backlog [NON_NEGATIVE];
            /// Whether the colour a packet comes with counts.
            mode: Mode = Mode::ColourBlind;
            /// Whether the last token may be spent.
            boundary: Boundary = Boundary::AtLeast;
            /// What becomes of red packets: they go on as red, or a policer drops them.
            action: Action = Action::Mark;
        }
    }

    /// The law.
    #[derive(Clone, Debug)]
    pub struct Rfc4115 {
        cir: Rate,
        eir: Rate,
        boundary: Boundary,
    }

    impl Metering for Rfc4115 {
        const SECOND: &'static str = "te";

        /// RFC 4115 §3: each bucket at its own rate.
        #[inline]
        fn fill(&self, b: &mut Buckets, now: Time) {
            b.committed.pour(b.inflow(self.cir, now));
            b.second.pour(b.inflow(self.eir, now));
        }

        /// RFC 4115 §3.
        #[inline]
        fn meter(&self, b: &mut Buckets, came: Colour, size: u32) -> Colour {
            let passes = |bucket: &Bucket| match self.boundary {
                Boundary::AtLeast => bucket.holds(size),
                Boundary::MoreThan => bucket.exceeds(size),
            };
            if came == Colour::Green && passes(&b.committed) {
                b.committed.take(size);
                Colour::Green
            } else if came != Colour::Red && passes(&b.second) {
                b.second.take(size);
                Colour::Yellow
            } else {
                Colour::Red
            }
        }
    }

    impl Build for Params {
        type Mechanism = Meter<Rfc4115>;

        fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
            committed(self.cir, context)?;
            let tokens = match self.boundary {
                Boundary::AtLeast => Tokens::Enough,
                Boundary::MoreThan => Tokens::More,
            };
            one_needed(self.cbs, self.ebs, tokens, context)?;
            let green = wanted("cbs", self.cbs, tokens, context, "green");
            Ok(green.into_iter().chain(wanted("ebs", self.ebs, tokens, context, "yellow")).collect())
        }

        fn build(&self, context: &Context) -> Meter<Rfc4115> {
            // `check` has passed: there is a rate.
            let cir = committed(self.cir, context).unwrap_or_default();
            let law = Rfc4115 { cir, eir: self.eir, boundary: self.boundary };
            Meter::new(law, [self.cbs, self.ebs], context, self.mode, self.action)
        }
    }
}
