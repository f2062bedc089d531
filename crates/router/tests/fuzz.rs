//! The fuzz targets of the router's file and of what other routers say, on a stable compiler.

#[path = "../../../fuzz/fuzz_targets/import.rs"]
mod import;
#[path = "../../../fuzz/fuzz_targets/router.rs"]
mod router;
#[path = "../../../fuzz/seeded.rs"]
mod seeded;

use inprofile_core::registry::Registry;
use inprofile_router::{config, interchange};

/// Else what is changed in them would never get past the reader.
#[test]
fn seeds_are_without_fault() {
    let registry = Registry::default();
    for seed in seeded::seeds("router") {
        config::parse(&seed, "seed", &registry).unwrap();
    }
    for seed in seeded::seeds("import") {
        let text = str::from_utf8(&seed).unwrap();
        let imports = [interchange::tc::import, interchange::cisco::import, interchange::ovs::import];
        assert!(imports.iter().any(|import| import(text, "seed").is_ok()), "{text}");
    }
}

#[test]
fn any_router_file() {
    let registry = Registry::default();
    seeded::run("router", |bytes| router::run(bytes, &registry));
}

#[test]
fn any_words_of_other_routers() {
    let registry = Registry::default();
    seeded::run("import", |bytes| import::run(bytes, &registry));
}
