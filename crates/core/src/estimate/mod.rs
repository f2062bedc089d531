//! Estimators: what mechanisms measure of the traffic that passes them.

pub mod rtt;
pub mod tsw;
pub mod window;
