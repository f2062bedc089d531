//! What a mechanism is set to in its trials, from its declared parameters alone.

use inprofile_core::params::{Context, Default as Fallback, Fault, Field, Kind, Value, Values};
use inprofile_core::registry::Entry;
use inprofile_core::rng::Rng;
use inprofile_core::units::{Backlog, Bytes, Duration, Rate};

/// The bottleneck's rate.
pub const LINK: Rate = Rate(2_000_000);
/// The limit of a queue before it.
pub const QUEUE: Backlog = Backlog::Packets(30.0);

/// Two settings of each mechanism: thresholds about the middle of the queue; low ones, a quick average and ECN.
#[derive(Clone, Copy, Debug)]
pub enum Setting {
    /// Thresholds about the middle of the queue.
    Middle,
    /// Low thresholds, a quick average, ECN.
    Low,
}

fn value_of(field: &Field, setting: Setting) -> Value {
    match (field.name, setting) {
        // Half of the flows speak ECN, and the low setting lets disciplines mark them.
        ("ecn", Setting::Low) => return Value::Flag(true),
        // So that the average moves within the run.
        ("w_q", Setting::Low) => return Value::Number(0.05),
        // So that it ends within the run, and windows are small now and then.
        ("interval", Setting::Low) => return Value::Duration(Duration::from_millis(300)),
        ("small_window", Setting::Low) => return Value::Count(4),
        // No more than 1/k².
        ("p_cmax", Setting::Low) => return Value::Number(0.2),
        _ => {}
    }
    if let Fallback::Value(default) = field.default {
        return default();
    }
    let (low, high, share) = match setting {
        Setting::Middle => (8.0, 20.0, 0.1),
        Setting::Low => (2.0, 6.0, 0.5),
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
    Values(fields.iter().map(|f| (f.name, value_of(f, setting))).collect())
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

/// Settings that this mechanism can be given here.
///
/// # Panics
/// If there is none.
pub fn settings<M>(entry: &Entry<M>) -> Vec<Setting> {
    let all = [Setting::Middle, Setting::Low];
    let fit: Vec<_> = all.into_iter().filter(|s| built(entry, *s).is_ok()).collect();
    if let ([], Err(fault)) = (&fit[..], built(entry, Setting::Middle)) {
        panic!("{}: no setting fits: {fault:?}", entry.name);
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
