//! A mechanism's settings in its trials, from its declared parameters alone.

use inprofile_core::params::{Context, Default as Fallback, Fault, Field, Kind, Value, Values};
use inprofile_core::registry::Entry;
use inprofile_core::rng::Rng;
use inprofile_core::units::{Backlog, Bytes, Duration, Rate};

/// The bottleneck's rate.
pub const LINK: Rate = Rate(2_000_000);
/// The limit of a queue before it.
pub const QUEUE: Backlog = Backlog::Packets(30.0);

/// The settings of a mechanism: thresholds about the middle of the queue; low ones, a quick average and ECN; and, so that every word of
/// every choice and both values of every flag are tried, one of them otherwise.
#[derive(Clone, Copy, Debug)]
pub enum Setting {
    /// Thresholds about the middle of the queue.
    Middle,
    /// Low thresholds, a quick average, ECN.
    Low,
    /// As one of them, but for a choice or a flag.
    But(Base, &'static str, Other),
}

/// The settings in which one choice or flag is changed.
#[derive(Clone, Copy, Debug)]
pub enum Base {
    /// [`Setting::Low`].
    Low,
    /// [`Setting::Middle`].
    Middle,
    /// [`Setting::Low`], with nothing said where nothing need be.
    Bare,
}

impl Base {
    /// The order in which they are tried for this field: it should make a difference.
    fn of(name: &str) -> [Base; 3] {
        match name {
            // Where the queue is full now and then.
            "drop" | "applies_to" => [Base::Middle, Base::Low, Base::Bare],
            // Where no option comes before it.
            "variant" | "conforms" => [Base::Bare, Base::Low, Base::Middle],
            _ => [Base::Low, Base::Middle, Base::Bare],
        }
    }
}

/// The new value of a choice or a flag.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Other {
    /// A flag's.
    Flag(bool),
    /// A choice's.
    Word(&'static str),
}

impl Other {
    /// If this field can be that.
    fn of(self, kind: Kind) -> Option<Value> {
        match (self, kind) {
            (Other::Flag(flag), Kind::Flag) => Some(Value::Flag(flag)),
            (Other::Word(word), Kind::Choice(words)) if words.contains(&word) => Some(Value::Choice(word)),
            _ => None,
        }
    }
}

impl Setting {
    /// Every word and flag of these fields that `tried` settings have not.
    fn others(fields: &[Field], tried: &[Setting]) -> Vec<(&'static str, Other)> {
        let all = |kind| match kind {
            Kind::Flag => vec![Other::Flag(false), Other::Flag(true)],
            Kind::Choice(words) => words.iter().map(|word| Other::Word(word)).collect(),
            _ => Vec::new(),
        };
        let missing = |f: &Field| {
            let had: Vec<_> = tried.iter().map(|s| value_of(f, *s)).collect();
            all(f.kind)
                .into_iter()
                .filter(|o| o.of(f.kind).is_some_and(|v| !had.contains(&v)))
                .collect::<Vec<_>>()
        };
        fields.iter().flat_map(|f| missing(f).into_iter().map(|other| (f.name, other))).collect()
    }

    /// Whether it differs from another by one choice or flag: a shorter run will do.
    #[must_use]
    pub fn is_like_another(self) -> bool {
        matches!(self, Setting::But(..))
    }
}

fn value_of(field: &Field, setting: Setting) -> Value {
    let setting = match setting {
        Setting::But(base, name, other) => match other.of(field.kind).filter(|_| name == field.name) {
            Some(value) => return value,
            None if matches!(base, Base::Middle) => Setting::Middle,
            None => Setting::Low,
        },
        setting => setting,
    };
    match (field.name, setting) {
        // Half of the flows speak ECN, and the low setting lets disciplines mark them.
        ("ecn", Setting::Low) => return Value::Flag(true),
        // So that the average moves within the run.
        ("w_q", Setting::Low) => return Value::Number(0.05),
        // So that it ends within the run, and windows are small now and then.
        ("interval", Setting::Low) => return Value::Duration(Duration::from_millis(300)),
        ("small_window", Setting::Low) => return Value::Count(4),
        // Less than the queue's limit, and more than a few packets.
        ("memory_limit", _) => return Value::Bytes(Bytes(25_000)),
        // A controller that comes to drop something within the run.
        ("q_ref", Setting::Low) => return Value::Backlog(Backlog::Packets(6.0)),
        ("a", Setting::Low) => return Value::Number(0.002),
        ("b", Setting::Low) => return Value::Number(0.0019),
        ("range", Setting::Low) => return Value::Duration(Duration::from_millis(100)),
        // No more than 1/k².
        ("p_cmax", Setting::Low) => return Value::Number(0.2),
        _ => {}
    }
    if let Fallback::Value(default) = field.default {
        return default();
    }
    let (low, high, share) = match setting {
        Setting::Middle => (8.0, 20.0, 0.1),
        _ => (2.0, 6.0, 0.5),
    };
    match field.kind {
        Kind::Flag => Value::Flag(true),
        Kind::Count => Value::Count(7),
        Kind::Number => Value::Number(share),
        Kind::Rate => Value::Rate(Rate(1_200_000)),
        Kind::Duration => Value::Duration(Duration::from_millis(50)),
        Kind::Bytes => Value::Bytes(Bytes(3000)),
        Kind::Backlog if field.name.starts_with("max") => Value::Backlog(Backlog::Packets(high)),
        Kind::Backlog => Value::Backlog(Backlog::Packets(low)),
        Kind::Choice(words) => Value::Choice(words[0]),
        Kind::Group(fields) => Value::Group(values_of(fields, setting)),
    }
}

/// A value for each of them.
#[must_use]
pub fn values_of(fields: &[Field], setting: Setting) -> Values {
    let bare = matches!(setting, Setting::But(Base::Bare, ..));
    let said = fields.iter().filter(|f| !(bare && matches!(f.default, Fallback::Derived)));
    Values(said.map(|f| (f.name, value_of(f, setting))).collect())
}

/// Where it is used.
#[must_use]
pub fn context() -> Context {
    Context { link_rate: Some(LINK), contract: Some(Rate(250_000)), packet: Bytes(1040), limit: Some(QUEUE) }
}

/// Made with this setting.
///
/// # Errors
/// If its `check` refuses it.
pub fn built<M>(entry: &Entry<M>, setting: Setting) -> Result<M, Fault> {
    let values = values_of(entry.fields, setting);
    (entry.check)(&values, &context()).map(|_| (entry.build)(&values, &context()))
}

/// Settings that this mechanism can be given here: those of the two that fit, and each choice's other words and flag's other value.
///
/// # Panics
/// If there is none, or none with one of these words.
pub fn settings<M>(entry: &Entry<M>) -> Vec<Setting> {
    let all = [Setting::Middle, Setting::Low];
    let mut fit: Vec<_> = all.into_iter().filter(|s| built(entry, *s).is_ok()).collect();
    if let ([], Err(fault)) = (&fit[..], built(entry, Setting::Middle)) {
        panic!("{}: no setting fits: {fault:?}", entry.name);
    }
    for (name, other) in Setting::others(entry.fields, &fit) {
        let found = Base::of(name)
            .map(|base| Setting::But(base, name, other))
            .into_iter()
            .find(|s| built(entry, *s).is_ok());
        fit.push(found.unwrap_or_else(|| panic!("{}: nothing fits with {name} as {other:?}", entry.name)));
    }
    fit
}

/// Any values within the declared bounds, their ends among them.
pub fn drawn(fields: &[Field], rng: &mut Rng) -> Values {
    Values(fields.iter().map(|f| (f.name, draw(f, rng))).collect())
}

fn draw(field: &Field, rng: &mut Rng) -> Value {
    let default = match field.default {
        Fallback::Value(default) if rng.below(3) == 0 => return default(),
        Fallback::Value(default) => Some(default()),
        Fallback::Required | Fallback::Derived => None,
    };
    let (least, most) = (field.bounds.min, field.bounds.max);
    // From `scale` / 30 to 30 times as much; now and then what the bounds just allow.
    let mut within = |scale: f64, step: f64| {
        let x = match rng.below(8) {
            0 if least.is_finite() => least + if field.bounds.open_min { step } else { 0.0 },
            1 if most.is_finite() => most,
            _ if least.is_finite() && most.is_finite() && most - least <= 1.0 => {
                least + (most - least) * rng.uniform()
            }
            _ => scale * 30f64.powf(2.0 * rng.uniform() - 1.0),
        };
        x.clamp(if field.bounds.open_min { least.max(f64::MIN) + step } else { least }, most)
    };
    match (field.kind, default) {
        (Kind::Flag, _) => Value::Flag(rng.below(2) == 1),
        (Kind::Count, _) => Value::Count(within(8.0, 1.0).round() as u64),
        (Kind::Number, Some(Value::Number(x))) if x != 0.0 => Value::Number(within(x, 1e-6)),
        (Kind::Number, _) => Value::Number(within(0.2, 1e-6)),
        (Kind::Rate, _) => Value::Rate(Rate(within(1e6, 1.0).round() as u64)),
        (Kind::Duration, _) => Value::Duration(Duration::from_secs(within(0.03, 1e-9))),
        (Kind::Bytes, _) => Value::Bytes(Bytes(within(5000.0, 1.0).round() as u64)),
        (Kind::Backlog, _) => Value::Backlog(Backlog::Packets(within(8.0, 1e-3))),
        (Kind::Choice(words), _) => Value::Choice(words[rng.below(words.len() as u32) as usize]),
        (Kind::Group(fields), _) => Value::Group(drawn(fields, rng)),
    }
}
