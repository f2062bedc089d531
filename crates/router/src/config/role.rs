//! `role`, `dscp`, `remap`: whether incoming code points are trusted, and what happens to unsold ones.
//!
//! The edge of a DiffServ domain conditions incoming traffic (RFC 2475 §2.1.2): no class or colour without a contract. In the
//! core, traffic has been conditioned already and is trusted. The role is set for the whole file or for one direction.

use inprofile_experiment::text::Section;
use inprofile_experiment::text::problem::Wrong;
use inprofile_live::code_points::{CodePoints, Dscp};

use super::{Class, values};

/// Whether incoming code points are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Only the classes and colours that were bought are trusted.
    Edge,
    /// Code points are trusted: an edge has conditioned the traffic.
    Core,
}

impl Role {
    /// Its name in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["edge", "core"][self as usize]
    }
}

/// The treatment of unsold code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsold {
    /// Whether those not in `remap` become best effort, and VLAN priorities and MPLS traffic classes are cleared.
    pub bleach: bool,
    /// The new code point for each, regardless of `bleach`.
    pub remap: [Option<Dscp>; 64],
}

impl Unsold {
    /// The new code point; `None` if it stays.
    #[must_use]
    pub fn becomes(&self, dscp: Dscp) -> Option<Dscp> {
        self.remap[usize::from(dscp.value())].or(self.bleach.then_some(Dscp::DEFAULT))
    }
}

/// The keys.
pub(super) const KEYS: [&str; 3] = ["role", "dscp", "remap"];
/// The former name of a direction's `role`.
pub(super) const OLD_KEY: &str = "others";

/// The settings of one table, the file's or a direction's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoleSettings {
    role: Option<Role>,
    bleach: Option<bool>,
    remap: Option<[Option<Dscp>; 64]>,
}

impl RoleSettings {
    /// Reads a table; `None` if it has an error.
    pub(super) fn read(section: &Section<'_, '_>) -> Option<RoleSettings> {
        let role = match section.get("role") {
            Some(e) => e
                .word(&["edge", "core"], "role")
                .map(|w| Some(if w == "edge" { Role::Edge } else { Role::Core })),
            None => Some(None),
        };
        let bleach = match section.get("dscp") {
            Some(e) => e.word(&["bleach", "keep"], "choice").map(|w| Some(w == "bleach")),
            None => Some(None),
        };
        let remap = remap(section);
        Some(RoleSettings { role: role?, bleach: bleach?, remap: remap? })
    }

    /// Reads `others` too, the former name of a direction's `role`.
    pub(super) fn with_old_key(self, section: &Section<'_, '_>) -> Option<RoleSettings> {
        let Some(entry) = section.get(OLD_KEY) else { return Some(self) };
        let role = match entry.word(&["trust", "best_effort"], "choice")? {
            "trust" => Role::Core,
            _ => Role::Edge,
        };
        if self.role.is_some() {
            let remedy =
                "leave others out: its \"trust\" is role = \"core\", its \"best_effort\" is role = \"edge\"";
            return entry.wrong(Wrong::new("role is set too", remedy));
        }
        let now = match role {
            Role::Core => "role = \"core\"",
            Role::Edge => {
                "role = \"edge\", the default; add dscp = \"keep\" to leave code points that nobody bought unchanged"
            }
        };
        entry.report().warning(entry.place(), "this key is now called role", format!("write {now}"));
        Some(RoleSettings { role: Some(role), ..self })
    }

    /// Keys that this table lacks are taken from the one above.
    pub(super) fn or(self, above: RoleSettings) -> RoleSettings {
        RoleSettings {
            role: self.role.or(above.role),
            bleach: self.bleach.or(above.bleach),
            remap: self.remap.or(above.remap),
        }
    }

    /// The settings in force. The default is an edge, which bleaches; a core keeps code points.
    pub(super) fn in_force(self) -> (Role, Unsold) {
        let role = self.role.unwrap_or(Role::Edge);
        let bleach = self.bleach.unwrap_or(role == Role::Edge);
        (role, Unsold { bleach, remap: self.remap.unwrap_or([None; 64]) })
    }
}

fn remap(section: &Section<'_, '_>) -> Option<Option<[Option<Dscp>; 64]>> {
    let Some(entry) = section.get("remap") else { return Some(None) };
    let table = entry.open("{ CS1 = \"CS1\", AF21 = \"AF31\" }")?;
    let mut remap = [None; 64];
    let mut whole = true;
    for (key, value) in table.entries() {
        let (from, to) = (Dscp::parse(key), values::dscp(&value));
        let Some(from) = from else {
            whole = false;
            let remedy = "write AF11 to AF43, EF, CS0 to CS7, BE, or a number from 0 to 63";
            table.report().error(value.place(), "the key is not a DSCP", remedy);
            continue;
        };
        let slot: &mut Option<Dscp> = &mut remap[usize::from(from.value())];
        if slot.is_some() {
            whole = false;
            table.report().error(value.place(), "this code point is remapped twice", "leave one out");
        }
        whole &= to.is_some();
        *slot = to;
    }
    whole.then_some(Some(remap))
}

/// Whether `remap` gives away nothing that is sold here.
pub(super) fn gives_nothing_away(
    section: &Section<'_, '_>,
    unsold: &Unsold,
    classes: &[Class],
    points: CodePoints,
) -> bool {
    let place = section.locate("remap");
    let mut none = true;
    for to in unsold.remap.iter().flatten() {
        let class = classes.iter().find(|c| c.dscp.contains(to)).map(|c| format!("the class {}", c.name));
        let colour = points.colour(*to).map(|c| format!("the colour {}", c.name()));
        if let Some(sold) = colour.or(class) {
            let problem = format!("{to} belongs to {sold}: customers who didn't buy it would get it");
            section.report().error(&place, problem, "remap to a code point that isn't sold here");
            none = false;
        }
    }
    none
}
