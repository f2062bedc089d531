//! What mechanisms measure of the traffic that passes them.

pub mod ewma;
pub mod rtt;
pub mod tsw;
pub mod window;
