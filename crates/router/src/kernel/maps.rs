//! The programs and their maps: loaded, or taken over from the process before; filled; switched from one bank of tables to the other.
//!
//! A bank is written while the other is in force, and then put in force by one number. Accounts (buckets and counts) belong to no bank.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::maps::{Array, HashMap, MapError, PerCpuArray};
use aya::programs::SchedClassifier;
use aya::{Ebpf, EbpfLoader, Pod, VerifierLogLevel};
use inprofile_live::io::closed::MARK;

use super::layout::{
    Account, AllKinds, Bucket, CLASSES, Circuit, CircuitKey, Name, PortKey, Powers, PrefixKey, PrefixOwner,
    Rules, Sender, SenderKey, State, Terms, Totals, VirtualBacklog,
};
use super::places::Places;
use super::tables::Tables;
use crate::config::Config;

/// What `make bpf` built of `bpf/`.
pub static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/contracts.bpf.o");
/// The programs: by the port where frames come in, and the one by which they leave.
pub const PROGRAMS: [&str; 3] = ["inside", "outside", "leaving"];
/// See [`PROGRAMS`].
pub const LEAVING: usize = 2;
/// All maps that keep something.
const KEPT: [&str; 16] = [
    "state",
    "totals",
    "rules",
    "terms",
    "accounts",
    "names",
    "queues",
    "backlogs",
    "powers",
    "circuits",
    "prefixes",
    "owners",
    "senders",
    "together",
    "addresses",
    "fragments",
];
/// The accounts of a direction that the object has room for as it is, where nobody says how many.
pub const EXPORTED_ACCOUNTS: u32 = 4096;
/// The fewest accounts of a direction there is room for.
const LEAST_ACCOUNTS: u32 = 4096;
/// BPF_F_LOCK: as a whole, while no program is at it.
const LOCKED: u64 = 4;

/// The programs with their maps.
#[derive(Debug)]
pub struct Maps {
    ebpf: Ebpf,
    capacity: u32,
    places: [Places; 2],
    /// Whether there were accounts before.
    pub taken_over: bool,
    /// Where maps are pinned.
    pub folder: Option<PathBuf>,
}

/// An error of a map, in words.
fn words(map: &str, e: &MapError) -> String {
    let full = matches!(e, MapError::SyscallError(e) if matches!(e.io_error.raw_os_error(), Some(libc::E2BIG | libc::ENOSPC)));
    let how = if full {
        "\n  it is full: give fewer prefixes, ports or circuits, or write datapath = \"user\""
    } else {
        ""
    };
    format!("the kernel's map `{map}`: {e}{}{how}", because(e))
}

/// What is behind an error, and behind that.
pub(super) fn because(e: &dyn std::error::Error) -> String {
    let mut text = String::new();
    let mut next = e.source();
    while let Some(e) = next {
        text.push_str(&format!(": {e}"));
        next = e.source();
    }
    text
}

impl Maps {
    /// Loads both programs. With a folder their maps are pinned there, and those taken over that are; there is room for the accounts of
    /// this configuration, and more.
    ///
    /// # Errors
    /// What the kernel refuses, with the remedy.
    pub fn load(config: &Config, folder: Option<&Path>) -> Result<Maps, String> {
        let needed = config.directions.iter().flatten().map(Places::count).max().unwrap_or_default();
        let wanted = (needed as u32 * 4).next_power_of_two().max(LEAST_ACCOUNTS);
        let before = folder.and_then(pinned_state).map(|s| s.capacity).filter(|c| *c > 0);
        let capacity = before.unwrap_or(wanted);
        let mut loader = EbpfLoader::new();
        // The verifier's own words are only of use where it refuses.
        loader.verifier_log_level(VerifierLogLevel::DISABLE).btf(None);
        loader.map_max_entries("terms", 4 * capacity);
        loader.map_max_entries("accounts", 2 * capacity).map_max_entries("names", 2 * capacity);
        for name in KEPT.into_iter().filter(|_| folder.is_some()) {
            if let Some(folder) = folder {
                loader.map_pin_path(name, folder.join(name));
            }
        }
        let refused = |e: &dyn std::error::Error| {
            format!(
                "the kernel takes no BPF program: {e}{}\n  it needs Linux 5.19 or newer with CONFIG_BPF_SYSCALL and CONFIG_DEBUG_INFO_BTF, and CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN; or write datapath = \"user\"",
                because(e)
            )
        };
        let mut ebpf = loader.load(OBJECT).map_err(|e| refused(&e))?;
        for name in PROGRAMS {
            let program = ebpf.program_mut(name).ok_or_else(|| format!("there is no program `{name}`"))?;
            let program: &mut SchedClassifier = program.try_into().map_err(|e| refused(&e))?;
            program.load().map_err(|e| refused(&e))?;
        }
        let mut maps = Maps {
            ebpf,
            capacity,
            places: Default::default(),
            taken_over: before.is_some(),
            folder: folder.map(Path::to_owned),
        };
        if maps.taken_over {
            for direction in 0..2 {
                maps.places[direction] = Places::of(maps.names(direction)?);
            }
        } else {
            let secret = [(); 2].map(|()| crate::sys::random());
            let state = State { capacity, mark: MARK, secret, ..State::default() };
            maps.set("state", 0, state, 0)?;
            maps.set("powers", 0, Powers::default(), 0)?;
            for class in 0..2 * CLASSES as u32 {
                maps.set("backlogs", class, VirtualBacklog::default(), LOCKED)?;
            }
        }
        Ok(maps)
    }

    /// One of [`PROGRAMS`], to be attached or tried.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn program(&mut self, which: usize) -> Result<&mut SchedClassifier, String> {
        let program = self.ebpf.program_mut(PROGRAMS[which]).ok_or("there is no such program")?;
        program.try_into().map_err(|e: aya::programs::ProgramError| e.to_string())
    }

    fn array<V: Pod>(&mut self, name: &str) -> Result<Array<&mut aya::maps::MapData, V>, String> {
        let map = self.ebpf.map_mut(name).ok_or_else(|| format!("there is no map `{name}`"))?;
        Array::try_from(map).map_err(|e| words(name, &e))
    }

    fn hash<K: Pod, V: Pod>(&mut self, name: &str) -> Result<HashMap<&mut aya::maps::MapData, K, V>, String> {
        let map = self.ebpf.map_mut(name).ok_or_else(|| format!("there is no map `{name}`"))?;
        HashMap::try_from(map).map_err(|e| words(name, &e))
    }

    fn trie(&mut self) -> Result<LpmTrie<&mut aya::maps::MapData, PrefixKey, PrefixOwner>, String> {
        let map = self.ebpf.map_mut("prefixes").ok_or("there is no map `prefixes`")?;
        LpmTrie::try_from(map).map_err(|e| words("prefixes", &e))
    }

    fn set<V: Pod>(&mut self, name: &str, index: u32, value: V, flags: u64) -> Result<(), String> {
        self.array(name)?.set(index, value, flags).map_err(|e| words(name, &e))
    }

    fn get<V: Pod>(&mut self, name: &str, index: u32, flags: u64) -> Result<V, String> {
        self.array(name)?.get(&index, flags).map_err(|e| words(name, &e))
    }

    /// The state of the whole.
    ///
    /// # Errors
    /// The system's error.
    pub fn state(&mut self) -> Result<State, String> {
        self.get("state", 0, 0)
    }

    /// Changes it.
    ///
    /// # Errors
    /// The system's error.
    pub fn change(&mut self, change: impl FnOnce(&mut State)) -> Result<(), String> {
        let mut state = self.state()?;
        change(&mut state);
        self.set("state", 0, state, 0)
    }

    /// One account, as a whole.
    ///
    /// # Errors
    /// The system's error.
    pub fn account(&mut self, direction: usize, place: u32) -> Result<Account, String> {
        let index = self.index(direction, place);
        self.get("accounts", index, LOCKED)
    }

    /// The virtual queue of a class, as a whole.
    ///
    /// # Errors
    /// The system's error.
    pub fn backlog(&mut self, direction: usize, class: usize) -> Result<VirtualBacklog, String> {
        self.get("backlogs", (direction * CLASSES + class) as u32, LOCKED)
    }

    fn index(&self, direction: usize, place: u32) -> u32 {
        direction as u32 * self.capacity + place
    }

    /// The accounts by name.
    #[must_use]
    pub fn places(&self, direction: usize) -> &Places {
        &self.places[direction]
    }

    /// What a direction counts, of all CPUs together.
    ///
    /// # Errors
    /// The system's error.
    pub fn totals(&mut self, direction: usize) -> Result<Totals, String> {
        let map = self.ebpf.map_mut("totals").ok_or("there is no map `totals`")?;
        let each: PerCpuArray<_, Totals> = PerCpuArray::try_from(map).map_err(|e| words("totals", &e))?;
        let each = each.get(&(direction as u32), 0).map_err(|e| words("totals", &e))?;
        Ok(each.iter().fold(Totals::default(), |all, one| all.and(one)))
    }

    /// Accounts that have a name in the kernel, by which the next process finds them.
    ///
    /// # Errors
    /// The system's error.
    pub fn names(&mut self, direction: usize) -> Result<Vec<(u32, String)>, String> {
        let (from, capacity) = (self.index(direction, 0), self.capacity);
        let names = self.array::<Name>("names")?;
        let mut found = Vec::new();
        for place in 0..capacity {
            let Name(text) = names.get(&(from + place), 0).map_err(|e| words("names", &e))?;
            let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
            if end > 0 {
                found.push((place, String::from_utf8_lossy(&text[..end]).into_owned()));
            }
        }
        Ok(found)
    }

    fn name(&mut self, direction: usize, place: u32, name: &str) -> Result<(), String> {
        let index = self.index(direction, place);
        self.set("names", index, Name::of(name), 0)
    }

    /// Puts a configuration in force at `now`, in nanoseconds of the kernel's monotonic clock. Who is new begins with full buckets at the
    /// very first start, and else with empty ones. What fails leaves in force what was.
    ///
    /// # Errors
    /// What the kernel refuses; or there are more accounts than places.
    pub fn apply(&mut self, config: &Config, now: u64) -> Result<(), String> {
        let state = self.state()?;
        let bank = 1 - (state.bank & 1);
        let first = !self.taken_over && state.on == 0;
        self.clear(bank)?;
        let assigned = [0, 1].map(|i| self.places[i].assign(config.directions[i].as_ref()));
        for assigned in &assigned {
            let end = assigned.places.end();
            if end > self.capacity {
                let capacity = self.capacity;
                return Err(format!(
                    "there is room for {capacity} customers and policers in each direction, which was fixed at the start, and the file needs {end}\n  restart inprofiled after `inprofiled release` of both ports, or write datapath = \"user\""
                ));
            }
        }
        for (i, assigned) in assigned.iter().enumerate() {
            let tables =
                Tables::of(config.directions[i].as_ref(), config, &assigned.places, bank * 2 + i as u32, now);
            self.open_accounts(i, &assigned.new, &tables, first, now)?;
            self.write(i, bank, &tables)?;
            if first {
                let [any, kept] = tables.rules.addresses.map(|p| Bucket { tokens: p.depth, at: now });
                let together = AllKinds { any, kept: [kept; 8], ..AllKinds::default() };
                self.set("together", i as u32, together, LOCKED)?;
            }
        }
        // Nobody is named by what fails before.
        for (i, assigned) in assigned.iter().enumerate() {
            for (place, name) in &assigned.new {
                self.name(i, *place, name)?;
            }
        }
        self.change(|s| s.bank = bank)?;
        for (i, assigned) in assigned.into_iter().enumerate() {
            for place in &assigned.gone {
                self.name(i, *place, "")?;
                for kind in 0..8 {
                    let key = SenderKey { kind: i as u32 * 8 + kind, account: *place };
                    // Most never sent any.
                    let _ = self.hash::<SenderKey, Sender>("senders")?.remove(&key);
                }
            }
            self.places[i] = assigned.places;
        }
        self.taken_over = true;
        Ok(())
    }

    fn open_accounts(
        &mut self,
        direction: usize,
        new: &[(u32, String)],
        tables: &Tables,
        first: bool,
        now: u64,
    ) -> Result<(), String> {
        let terms: std::collections::HashMap<u32, &Terms> =
            tables.terms.iter().map(|(p, t)| (*p, t)).collect();
        for (place, name) in new {
            let terms = terms.get(place).copied().copied().unwrap_or_default();
            let full = first && terms.starts_full();
            let index = self.index(direction, *place);
            self.set("accounts", index, Account::opened(&terms, full, now), LOCKED)?;
            if !first && name.starts_with("customer ") {
                let each = Bucket { tokens: 0, at: now };
                for kind in 0..8 {
                    let key = SenderKey { kind: direction as u32 * 8 + kind, account: *place };
                    let sender = Sender { bucket: each, ..Sender::default() };
                    if tables.rules.circuits != 0 {
                        let mut senders = self.hash::<SenderKey, Sender>("senders")?;
                        senders.insert(key, sender, 0).map_err(|e| words("senders", &e))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, direction: usize, bank: u32, tables: &Tables) -> Result<(), String> {
        let set = bank * 2 + direction as u32;
        self.set::<Rules>("rules", set, tables.rules, 0)?;
        let from = set * self.capacity;
        let mut terms = self.array::<Terms>("terms")?;
        for (place, one) in &tables.terms {
            terms.set(from + place, one, 0).map_err(|e| words("terms", &e))?;
        }
        for (class, queue) in &tables.queues {
            self.set("queues", set * CLASSES as u32 + class, *queue, 0)?;
        }
        let mut circuits = self.hash::<CircuitKey, Circuit>("circuits")?;
        for (key, circuit) in &tables.circuits {
            circuits.insert(key, circuit, 0).map_err(|e| words("circuits", &e))?;
        }
        let mut owners = self.hash::<PortKey, u32>("owners")?;
        for (key, owner) in &tables.owners {
            owners.insert(key, owner, 0).map_err(|e| words("owners", &e))?;
        }
        let mut prefixes = self.trie()?;
        for (bits, key, owner) in &tables.prefixes {
            prefixes.insert(&Key::new(*bits, *key), owner, 0).map_err(|e| words("prefixes", &e))?;
        }
        Ok(())
    }

    /// Empties a bank that is not in force.
    fn clear(&mut self, bank: u32) -> Result<(), String> {
        let of = |group: u32| group >> 31 == bank;
        let mut prefixes = self.trie()?;
        let keys: Vec<_> = prefixes.keys().collect::<Result<_, _>>().map_err(|e| words("prefixes", &e))?;
        for key in keys.iter().filter(|k| of(k.data().group)) {
            prefixes.remove(key).map_err(|e| words("prefixes", &e))?;
        }
        let mut owners = self.hash::<PortKey, u32>("owners")?;
        let keys: Vec<_> = owners.keys().collect::<Result<_, _>>().map_err(|e| words("owners", &e))?;
        for key in keys.iter().filter(|k| of(k.list)) {
            owners.remove(key).map_err(|e| words("owners", &e))?;
        }
        let mut circuits = self.hash::<CircuitKey, Circuit>("circuits")?;
        let keys: Vec<_> = circuits.keys().collect::<Result<_, _>>().map_err(|e| words("circuits", &e))?;
        for key in keys.iter().filter(|k| k.set >> 1 == bank) {
            circuits.remove(key).map_err(|e| words("circuits", &e))?;
        }
        let places: HashSet<u32> = (0..2)
            .flat_map(|i| self.places[i].all().map(move |p| (i as u32, p)))
            .map(|(i, p)| (bank * 2 + i) * self.capacity + p)
            .collect();
        let mut terms = self.array::<Terms>("terms")?;
        for index in places {
            terms.set(index, Terms::default(), 0).map_err(|e| words("terms", &e))?;
        }
        Ok(())
    }
}

/// The state of pinned maps, if there are any.
fn pinned_state(folder: &Path) -> Option<State> {
    let data = aya::maps::MapData::from_pin(folder.join("state")).ok()?;
    let mut map = aya::maps::Map::from_map_data(data).ok()?;
    let array: Array<_, State> = Array::try_from(&mut map).ok()?;
    array.get(&0, 0).ok()
}
