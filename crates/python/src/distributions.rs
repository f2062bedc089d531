//! The tables of what `measure.distributions` asks for: delays by point, group and colour, their cumulative distributions,
//! and goodput and queueing delay by period.

use inprofile_core::packet::Colour;
use inprofile_experiment::model::Model;
use inprofile_sim::measure::sketch::Sketch;
use inprofile_sim::measure::waits::{ByGroup, Waits};
use inprofile_sim::outcome::Measured;

use crate::tables::Columns;

use crate::tables::Holds::{Counts, Numbers, Texts};

/// The measure of a row, and its subject.
struct Of<'a> {
    measure: &'static str,
    /// A link, `receivers`, or a class of either.
    point: String,
    /// `None`: all.
    group: Option<&'a str>,
    /// `None`: all.
    colour: Option<Colour>,
}

/// A row's delays with whose they are; without a colour they have a cumulative distribution, too.
type Row<'a> = (Of<'a>, Sketch);

fn colour_name(colour: Colour) -> &'static str {
    match colour {
        Colour::IN => "in",
        Colour::OUT => "out",
        Colour::Red => "red",
    }
}

/// Quantiles that summaries show.
const SHOWN: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999)];

/// The shares of a cumulative distribution: every hundredth, and closer together at the end.
fn shares() -> impl Iterator<Item = f64> {
    (0..100).map(|i| f64::from(i) / 100.0).chain([0.995, 0.999, 0.9995, 0.9999, 1.0])
}

/// Every distribution of one run.
fn rows<'a>(model: &'a Model, links: &[&'a str], measured: &Measured) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    let names: Vec<&str> = model.groups.iter().map(|g| g.name.as_str()).collect();
    for (link, waits) in &measured.queueing {
        queueing(model, (*link, links[*link as usize]), &names, waits, &mut rows);
    }
    for (measure, delays) in [
        ("one_way_delay", &measured.one_way),
        ("excess_delay", &measured.excess),
        ("delay_variation", &measured.variation),
    ] {
        let point = "receivers";
        if delays.groups() > 1 {
            let of = |colour| Of { measure, point: point.into(), group: None, colour };
            with_colours(of, delays, |_| true, &mut rows);
        }
        by_class(measure, point, delays, (model, &model.class_names()), &mut rows);
        by_group(measure, point, delays, &names, &mut rows);
    }
    let at = links[model.at];
    by_group("loss_interval", at, &measured.losses.intervals, &names, &mut rows);
    rows.retain(|(_, sketch)| !sketch.is_empty());
    rows
}

/// A link's queueing delays: all, by class, and by group where there are several.
fn queueing<'a>(
    model: &'a Model,
    (link, name): (u32, &'a str),
    names: &[&'a str],
    waits: &Waits,
    rows: &mut Vec<Row<'a>>,
) {
    let measure = "queueing_delay";
    let delays = &waits.delays;
    let classes: Vec<&str> =
        model.direction(link as usize).queue.classes().iter().map(|c| c.name.as_str()).collect();
    with_colours(|colour| Of { measure, point: name.into(), group: None, colour }, delays, |_| true, rows);
    by_class(measure, name, delays, (model, &classes), rows);
    if delays.groups() > 1 {
        by_group(measure, name, delays, names, rows);
    }
}

/// Each class's, and by colour where it has several.
fn by_class<'a>(
    measure: &'static str,
    point: &str,
    delays: &ByGroup,
    (model, classes): (&'a Model, &[&str]),
    rows: &mut Vec<Row<'a>>,
) {
    for class in classes {
        let in_class = |g: u32| model.groups[g as usize].class.as_deref() == Some(class);
        let of = |colour| Of { measure, point: format!("{point}/{class}"), group: None, colour };
        with_colours(of, delays, in_class, rows);
    }
}

/// Each group's, and by colour where it has several.
fn by_group<'a>(
    measure: &'static str,
    point: &'a str,
    delays: &ByGroup,
    names: &[&'a str],
    rows: &mut Vec<Row<'a>>,
) {
    for (g, name) in (0..).zip(names) {
        let of = |colour| Of { measure, point: point.into(), group: Some(name), colour };
        with_colours(of, delays, |group| group == g, rows);
    }
}

/// The wanted groups' together, and by colour where they have several.
fn with_colours<'a>(
    of: impl Fn(Option<Colour>) -> Of<'a>,
    delays: &ByGroup,
    wanted: impl Fn(u32) -> bool,
    rows: &mut Vec<Row<'a>>,
) {
    rows.push((of(None), delays.together(|g, _| wanted(g))));
    let has = |colour| delays.iter().any(|(g, c, _)| wanted(g) && c == colour);
    let colours: Vec<Colour> = Colour::ALL.into_iter().filter(|c| has(*c)).collect();
    for &colour in colours.iter().filter(|_| colours.len() > 1) {
        rows.push((of(Some(colour)), delays.together(|g, c| wanted(g) && c == colour)));
    }
}

/// The tables `delays` and `cdf`, being filled.
pub struct Distributions<'a> {
    delays: &'a mut Columns,
    cdf: &'a mut Columns,
}

impl<'a> Distributions<'a> {
    pub fn of(delays: &'a mut Columns, cdf: &'a mut Columns) -> Distributions<'a> {
        let mut columns =
            vec![("seed", Counts), ("measure", Texts), ("point", Texts), ("group", Texts), ("colour", Texts)];
        columns.push(("count", Counts));
        columns.extend(["mean", "min"].map(|n| (n, Numbers)));
        columns.extend(SHOWN.map(|(n, _)| (n, Numbers)));
        columns.push(("max", Numbers));
        let cdf_columns = [
            ("seed", Counts),
            ("measure", Texts),
            ("point", Texts),
            ("group", Texts),
            ("share", Numbers),
            ("value", Numbers),
        ];
        delays.have(&columns);
        cdf.have(&cdf_columns);
        Distributions { delays, cdf }
    }

    /// Adds one run's; `links` are names up to the last one that is reported.
    pub fn add(&mut self, model: &Model, links: &[&str], seed: u64, measured: &Measured) {
        for (of, sketch) in rows(model, links, measured) {
            let mut cells = vec![
                seed.into(),
                of.measure.into(),
                (&of.point).into(),
                of.group.into(),
                of.colour.map(colour_name).into(),
                sketch.len().into(),
                sketch.mean().into(),
                sketch.min().into(),
            ];
            cells.extend(SHOWN.map(|(_, share)| sketch.quantile(share).into()));
            cells.push(sketch.max().into());
            self.delays.row(&cells);
            if of.colour.is_none() {
                for share in shares() {
                    let at = sketch.quantile(share);
                    self.cdf.row(&[
                        seed.into(),
                        of.measure.into(),
                        (&of.point).into(),
                        of.group.into(),
                        share.into(),
                        at.into(),
                    ]);
                }
            }
        }
    }
}

/// Adds what happened by period to the table `series`: each group's goodput, each link's mean queueing delay.
pub fn add_periods(table: &mut Columns, model: &Model, links: &[&str], seed: u64, measured: &Measured) {
    if let Some(goodput) = &measured.goodput {
        let per_byte = 8.0 / goodput.every().secs();
        for (g, group) in (0..).zip(&model.groups) {
            for (at, bytes) in goodput.of(g) {
                let (name, rate) = (group.name.as_str(), bytes as f64 * per_byte);
                table.row(&[seed.into(), name.into(), "goodput".into(), at.secs().into(), rate.into()]);
            }
        }
    }
    for (link, waits) in &measured.queueing {
        for (at, mean) in waits.means() {
            let name = links[*link as usize];
            table.row(&[seed.into(), name.into(), "queueing_delay".into(), at.secs().into(), mean.into()]);
        }
    }
}
