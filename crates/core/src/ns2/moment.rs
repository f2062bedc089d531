//! ns-2's clock, as its disciplines and markers are told it.

/// A moment on ns-2's clock, in its own seconds: sums of doubles, which whole picoseconds can't hold. Traffic in step leaves a
/// link idle for exactly whole packets and a bucket with exactly a packet's tokens, and then the last bit counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    /// Since the start of the run.
    pub secs: f64,
    /// How long the link before which a packet arrives has been idle, if it is: ns-2's own difference.
    pub idle: f64,
}
