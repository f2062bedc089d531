//! The mechanisms that `inprofile new-mechanism` starts with are compiled here as they are in the package, and tried as the
//! crates made of them are.

#[path = "../../../python/inprofile/own/template/aqm.law.rs.in"]
mod discipline;
#[path = "../../../python/inprofile/own/template/marker.law.rs.in"]
mod marker;

#[test]
fn the_marker_holds_what_every_marker_has_to() {
    inprofile_trials::marker(&marker::ENTRY);
}

#[test]
fn the_discipline_holds_what_every_discipline_has_to() {
    inprofile_trials::discipline(&discipline::ENTRY);
}
