//! Makes an experiment from its keys, and checks every label, measure and band.

use super::file::FileKeys;
use super::keys::{
    AssignmentKeys, CellKeys, ClaimKeys, CurveKeys, ExperimentKeys, FigureKeys, KindKeys, NoteKeys, Said, TableKeys,
};
use super::{
    Axis, AxisValue, Claim, CountsAs, Curve, Experiment, FigurePlan, Note, PanelPlan, Piece, Published, Source,
    Statistic, Variant,
};
use crate::diagnostic::{Diagnostic, Fault, suggestion};
use crate::document::{Document, Node, Path};
use crate::expression::{Expression, ExpressionError, Found};
use crate::scenario::Scenario;
use crate::series::{self, Kind};
use crate::statistics::Interval;
use crate::verdict::Band;

pub(super) fn check(document: Document) -> Result<Experiment, Diagnostic> {
    let keys: FileKeys = document.decode()?;
    let base = keys.scenario(&document)?;
    let root = Path::default();
    let (paper, seeds) = match &keys.experiment {
        Some(ExperimentKeys { paper, seeds: seeds @ 2..=SEEDS_MAX }) => (paper.clone(), *seeds),
        Some(ExperimentKeys { seeds, .. }) => {
            let fault = Fault::new(format!("{seeds} seeds tell no spread")).remedy(format!("use 2 to {SEEDS_MAX}"));
            return Err(document.diagnose(&root.key("experiment").key("seeds"), fault));
        }
        None => {
            let claiming = [
                ("table", keys.table.len()),
                ("claim", keys.claim.len()),
                ("note", keys.note.len()),
                ("figure", keys.figure.len()),
            ];
            if let Some((name, _)) = claiming.iter().find(|(_, count)| *count > 0) {
                let fault =
                    Fault::new(format!("a {name} needs an experiment")).remedy("add [experiment] with its paper");
                return Err(document.diagnose(&root.key(name).index(0), fault));
            }
            (String::new(), 1)
        }
    };
    let axes = axes(&document, &keys)?;
    let engine = assignments(&document, &root.key("engine"), &keys.engine);
    let mut experiment = Experiment {
        document,
        first: base.clone(),
        engine,
        paper,
        seeds,
        axes,
        measures: Vec::new(),
        claims: Vec::new(),
        notes: Vec::new(),
        figures: Vec::new(),
    };
    // Each value is checked alone here; a combination is checked when its scenario is made, before anything runs.
    let mut ends = RunEnds { base: base.duration.as_secs_f64(), axes: Vec::new() };
    for (axis, values) in experiment.axes.iter().enumerate() {
        let alone = |value| {
            let mut variant = vec![0; experiment.axes.len()];
            variant[axis] = value;
            experiment.scenario(&variant).map(|scenario| {
                let sets_duration = values.values[value].assignments.iter().any(|(key, _)| key == "duration");
                sets_duration.then(|| scenario.duration.as_secs_f64())
            })
        };
        ends.axes.push((0..values.values.len()).map(alone).collect::<Result<_, _>>()?);
    }
    experiment.first = experiment.scenario(&vec![0; experiment.axes.len()])?;
    // Claims name the variants that are measured; without claims all are.
    let end = if keys.experiment.is_some() { ends.latest() } else { ends.earliest() };
    experiment.measures = measures(&experiment.document, &keys, &base, &experiment.axes, end)?;
    let checker = Checker { experiment: &experiment, base: &base, ends };
    let mut claims = Vec::new();
    for (index, table) in keys.table.iter().enumerate() {
        claims.extend(checker.table(table, &root.key("table").index(index))?);
    }
    for (index, claim) in keys.claim.iter().enumerate() {
        claims.push(checker.claim(claim, &root.key("claim").index(index))?);
    }
    let mut notes = Vec::new();
    for (index, note) in keys.note.iter().enumerate() {
        notes.push(checker.note(note, &root.key("note").index(index).key("text"))?);
    }
    let mut figures = Vec::new();
    for (index, figure) in keys.figure.iter().enumerate() {
        figures.push(checker.figure(figure, &root.key("figure").index(index))?);
    }
    (experiment.claims, experiment.notes, experiment.figures) = (claims, notes, figures);
    Ok(experiment)
}

/// Half the width of a regression's band, as a share of its number.
const REGRESSION_BAND: f64 = 0.25;

/// The limit of seeds: more runs give no new information and fill the memory with reports.
const SEEDS_MAX: u32 = 10_000;

pub(super) fn variant(axes: &[Axis], labels: &[&str]) -> Result<Variant, ExpressionError> {
    let mut variant = vec![None; axes.len()];
    for label in labels {
        let place = |axis: &Axis| axis.values.iter().position(|value| value.label == *label);
        let Some((axis, value)) = axes.iter().enumerate().find_map(|(index, axis)| Some((index, place(axis)?))) else {
            let known = axes.iter().flat_map(|axis| &axis.values).map(|value| value.label.as_str());
            return Err(ExpressionError(format!("no axis has a value `{label}`; {}", suggestion(label, known))));
        };
        if variant[axis].replace(value).is_some() {
            return Err(ExpressionError(format!("`{label}` is a second value of axis `{}`", axes[axis].name)));
        }
    }
    let missing = |axis: usize| ExpressionError(format!("no label says which `{}`", axes[axis].name));
    variant.into_iter().enumerate().map(|(axis, value)| value.ok_or_else(|| missing(axis))).collect()
}

fn axes(document: &Document, keys: &FileKeys) -> Result<Vec<Axis>, Diagnostic> {
    let mut axes: Vec<Axis> = Vec::new();
    for (index, axis) in keys.axis.iter().enumerate() {
        let path = Path::default().key("axis").index(index).key("values");
        if axis.values.0.is_empty() {
            let fault = Fault::new(format!("axis `{}` has no values", axis.name));
            return Err(document.diagnose(&path, fault.remedy("add a label with the keys that it sets")));
        }
        let mut values: Vec<AxisValue> = Vec::new();
        for (label, assignment) in &axis.values.0 {
            let path = path.key(label);
            if axes.iter().flat_map(|axis: &Axis| &axis.values).any(|value| value.label == *label) {
                let fault = Fault::new(format!("a second axis has a value `{label}`"));
                return Err(document.diagnose(&path, fault.remedy("labels tell axes apart: use another")));
            }
            if label.contains('\'') {
                let fault = Fault::new(format!("a label cannot hold a quote: `{label}`"));
                return Err(document.diagnose(&path, fault.remedy("expressions quote labels: leave it out")));
            }
            values.push(AxisValue { label: label.clone(), assignments: assignments(document, &path, assignment) });
        }
        axes.push(Axis { name: axis.name.clone(), values });
        let variants = axes.iter().try_fold(1_usize, |product, axis| product.checked_mul(axis.values.len()));
        if variants.is_none_or(|variants| variants > VARIANTS_MAX) {
            let fault =
                Fault::new(format!("with axis `{}` there are more than {VARIANTS_MAX} combinations", axis.name));
            return Err(document.diagnose(&path, fault.remedy("vary less at a time")));
        }
    }
    Ok(axes)
}

/// The keys that are assigned at `path`, with their values.
fn assignments(document: &Document, path: &Path, keys: &AssignmentKeys) -> Vec<(String, Node)> {
    let node = |key: &String| {
        let node = document.node(&path.key(key)).expect("the keys were read from this table");
        (key.clone(), node.clone())
    };
    keys.0.iter().map(node).collect()
}

/// The limit of combinations of the axes' values: a larger grid takes too long to run and to read.
const VARIANTS_MAX: usize = 100_000;

fn measures(
    document: &Document,
    keys: &FileKeys,
    base: &Scenario,
    axes: &[Axis],
    end: f64,
) -> Result<Vec<(String, Expression)>, Diagnostic> {
    let mut measures = Vec::new();
    for (name, text) in &keys.measure.0 {
        let path = Path::default().key("measure").key(name);
        let fail = |error: ExpressionError| document.diagnose(&path, Fault::new(error.0));
        if axes.iter().flat_map(|axis| &axis.values).any(|value| value.label == *name) {
            let fault = Fault::new(format!("`{name}` is the label of an axis as well"));
            return Err(document.diagnose(&path, fault.remedy("give the measure another name")));
        }
        let expression =
            Expression::parse(text).and_then(|it| it.written_out(&|place| base.ids(place))).map_err(fail)?;
        let mut gauge = |name: &str, labels: &[String]| base.check_gauge(name, labels).map(|()| 1.0);
        let mut series = |name: &str| base.series_to_come(name).map(|found| Found { end, ..found });
        expression.evaluate_run(&mut gauge, &mut series).map_err(fail)?;
        measures.push((name.clone(), expression));
    }
    Ok(measures)
}

/// The ends of runs, in seconds.
struct RunEnds {
    base: f64,
    /// The end that a value sets, by axis and value.
    axes: Vec<Vec<Option<f64>>>,
}

impl RunEnds {
    fn of(&self, variant: &Variant) -> f64 {
        let mut said = self.axes.iter().zip(variant).filter_map(|(values, &value)| values[value]);
        // A later axis overrides the earlier ones.
        said.next_back().unwrap_or(self.base)
    }

    fn all(&self) -> impl Iterator<Item = f64> {
        self.axes.iter().flatten().flatten().copied().chain([self.base])
    }

    fn latest(&self) -> f64 {
        self.all().fold(0.0, f64::max)
    }

    fn earliest(&self) -> f64 {
        self.all().fold(f64::INFINITY, f64::min)
    }
}

/// The content of one number of a table, or of a single claim.
struct Cell<'a> {
    row: &'a str,
    column: &'a str,
    kind: KindKeys,
    published: Published,
    statistic: Statistic,
    band: Band,
}

struct Checker<'a> {
    experiment: &'a Experiment,
    base: &'a Scenario,
    ends: RunEnds,
}

impl Checker<'_> {
    fn table(&self, keys: &TableKeys, path: &Path) -> Result<Vec<Claim>, Diagnostic> {
        let mut claims = Vec::new();
        for (row, cells) in &keys.rows.0 {
            let path = path.key("rows").key(row);
            if cells.len() != keys.columns.len() {
                let fault = Fault::new(format!("{} numbers for {} columns", cells.len(), keys.columns.len()));
                return Err(self.fail(&path, fault.remedy("write one number for each column")));
            }
            let claimed = |(_, (_, cell)): &(usize, (&String, &CellKeys))| !cell.is_empty();
            for (index, (column, cell)) in keys.columns.iter().zip(cells).enumerate().filter(claimed) {
                let path = path.index(index);
                let expression = self.cell_expression(keys, row, column).map_err(|fault| self.fail(&path, fault))?;
                self.check_expression(&expression, &path)?;
                let (published, band) =
                    self.published(cell, keys.band.as_deref()).map_err(|fault| self.fail(&path, fault))?;
                if published.number().is_none() {
                    let fault = Fault::new("a table holds numbers");
                    return Err(self.fail(&path, fault.remedy("write a number, or \"17974±1274\"")));
                }
                let cell = Cell {
                    row,
                    column,
                    kind: KindKeys::Number,
                    published,
                    statistic: Statistic::Value(expression),
                    band,
                };
                claims.push(self.claimed(keys.said(), cell, &path)?);
            }
        }
        Ok(claims)
    }

    /// Each of a row and a column is the label of an axis or the name of a measure.
    fn cell_expression(&self, keys: &TableKeys, row: &str, column: &str) -> Result<Expression, Fault> {
        let is_measure = |name: &str| self.experiment.measures.iter().any(|(known, _)| known == name);
        let (names, labels): (Vec<&str>, Vec<&str>) = keys
            .measure
            .iter()
            .chain(&keys.variant)
            .map(String::as_str)
            .chain([row, column])
            .partition(|label| is_measure(label));
        match names[..] {
            [measure] if keys.over.is_empty() => Ok(Expression::name(measure, &labels)),
            [measure] => {
                let has = |axis: &Axis, label: &str| axis.values.iter().any(|value| value.label == label);
                let is_replaced = |label: &str| {
                    let replaces = |axis: &&Axis| keys.over.iter().any(|other| has(axis, other));
                    self.experiment.axes.iter().filter(replaces).any(|axis| has(axis, label))
                };
                let kept = labels.iter().copied().filter(|label| !is_replaced(label));
                let other: Vec<&str> = keys.over.iter().map(String::as_str).chain(kept).collect();
                Ok(Expression::name(measure, &labels).over(&Expression::name(measure, &other)))
            }
            [] => {
                Err(Fault::new("nothing says what is measured").remedy("add `measure`, the name of one in [measure]"))
            }
            _ => Err(Fault::new(format!("{} say what is measured", names.join(" and "))).remedy("leave one")),
        }
    }

    fn claim(&self, keys: &ClaimKeys, path: &Path) -> Result<Claim, Diagnostic> {
        let parse = |text: &str, path: &Path| self.expression(text, path);
        let statistic = match (keys.kind, &keys.measure, &keys.order[..]) {
            (KindKeys::Order, None, [_, _, ..]) => {
                let path = path.key("order");
                let parts = keys.order.iter().enumerate().map(|(index, text)| parse(text, &path.index(index)));
                Statistic::Order(parts.collect::<Result<_, _>>()?)
            }
            (KindKeys::Order, ..) => {
                let fault = Fault::new("an order is of two things at least, and has no `measure`");
                return Err(self.fail(path, fault.remedy("write order = [\"largest\", \"next\"]")));
            }
            (_, Some(measure), []) => Statistic::Value(parse(measure, &path.key("measure"))?),
            (..) => {
                let fault = Fault::new("nothing says what is measured");
                return Err(self.fail(path, fault.remedy("add `measure`, and `order` only to kind = \"order\"")));
            }
        };
        if keys.counts_as != CountsAs::Derivation && !statistic.expressions().iter().any(|one| self.asks_a_run(one)) {
            let fault = Fault::new("nothing in it is simulated, so that no simulation can fail it");
            return Err(self.fail(path, fault.remedy("write counts_as = \"derivation\"")));
        }
        let (published, band) = match (keys.kind, &keys.band, &keys.published) {
            (KindKeys::Order, None, CellKeys::Text(words)) => (Published::Words(words.clone()), Band::Above),
            (KindKeys::Order, ..) => {
                let fault = Fault::new("an order is published in words and has no band");
                return Err(self.fail(path, fault.remedy("remove `band`, write `published` as a string")));
            }
            _ => self.published(&keys.published, keys.band.as_deref()).map_err(|fault| self.fail(path, fault))?,
        };
        let cell = Cell { row: &keys.row, column: &keys.column, kind: keys.kind, published, statistic, band };
        self.claimed(keys.said(), cell, path)
    }

    fn claimed(&self, said: Said<'_>, cell: Cell<'_>, path: &Path) -> Result<Claim, Diagnostic> {
        let Cell { row, column, kind, published, statistic, band } = cell;
        let counts_as = self.counts_as(said.counts_as, said.source, path)?;
        self.regression(said.source, &published, &band, said.because, path)?;
        Ok(Claim {
            item: said.item.to_owned(),
            title: said.title.to_owned(),
            source: said.source,
            counts_as,
            is_coarse: false,
            cite: said.cite.to_owned(),
            row: row.to_owned(),
            column: column.to_owned(),
            kind,
            unit: said.unit.to_owned(),
            published,
            statistic,
            band,
            because: said.because.map(str::to_owned),
            engine_because: said.engine.map(str::to_owned),
            not_reproducible: self.with_reason(said.not_reproducible, said.because, path)?,
            is_open: self.with_reason(said.open, said.because, path)?,
        })
    }

    fn note(&self, keys: &NoteKeys, path: &Path) -> Result<Note, Diagnostic> {
        let mut pieces = Vec::new();
        let mut rest = keys.text.as_str();
        while let Some((text, after)) = rest.split_once('{') {
            let Some((inside, after)) = after.split_once('}') else {
                return Err(self.fail(path, Fault::new("`{` without `}`").remedy("close it")));
            };
            // A label may hold a colon; decimals stand last and are a digit.
            let (expression, decimals) = match inside.rsplit_once(':') {
                Some((expression, digit)) if digit.len() == 1 && digit.as_bytes()[0].is_ascii_digit() => {
                    (expression, usize::from(digit.as_bytes()[0] - b'0'))
                }
                _ => (inside, 0),
            };
            let expression = self.expression(expression, path)?;
            pieces.extend([Piece::Text(text.to_owned()), Piece::Value(expression, decimals)]);
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Note { item: keys.item.clone(), pieces })
    }

    fn figure(&self, keys: &FigureKeys, path: &Path) -> Result<FigurePlan, Diagnostic> {
        let end = self.base.duration;
        let (from, to) = (keys.from.0, keys.to.map_or(end, |to| to.0.min(end)));
        if from >= to {
            let fault = Fault::new(format!("the figure `{}` ends before it begins", keys.title));
            return Err(self.fail(&path.key("from"), fault.remedy("make `to`, and the duration, later than `from`")));
        }
        let all = vec![Vec::new()];
        let shown = if keys.variants.is_empty() { &all } else { &keys.variants };
        let mut variants = Vec::new();
        for (index, labels) in shown.iter().enumerate() {
            let names: Vec<&str> = labels.iter().map(String::as_str).collect();
            let variant = self.experiment.variant(&names).map_err(|error| {
                let fault =
                    Fault::new(error.0).remedy("write variants = [[\"label\", ...], ...], one label of each axis");
                self.fail(&path.key("variants").index(index), fault)
            })?;
            let label = if shown.len() > 1 { labels.join(", ") } else { String::new() };
            variants.push((variant, label));
        }
        let mut panels = Vec::new();
        for (index, panel) in keys.panel.iter().enumerate() {
            let path = path.key("panel").index(index).key("series");
            let curves = panel.series.iter().enumerate().map(|(index, curve)| self.curve(curve, &path.index(index)));
            let curves = curves.collect::<Result<_, _>>()?;
            panels.push(PanelPlan { title: panel.title.clone(), unit: panel.unit.clone(), curves });
        }
        Ok(FigurePlan {
            item: keys.item.clone(),
            title: keys.title.clone(),
            caption: keys.caption.clone(),
            from: from.as_secs_f64(),
            to: to.as_secs_f64(),
            variants,
            panels,
        })
    }

    fn curve(&self, keys: &CurveKeys, path: &Path) -> Result<Curve, Diagnostic> {
        let of = &keys.of;
        let kind = series::kind(of).ok_or_else(|| self.fail(&path.key("of"), Fault::new(series::unknown(of))))?;
        self.base.check_series(of).map_err(|error| self.fail(&path.key("of"), Fault::new(error.0)))?;
        if keys.bin.is_some() && kind == Kind::Variable {
            let fault = Fault::new(format!("`{of}` is a variable, which has a value at any time"));
            return Err(self.fail(&path.key("bin"), fault.remedy("remove `bin`: it is for events")));
        }
        let bin = keys.bin.map(|bin| bin.0.as_secs_f64());
        if let Some(Err(error)) = bin.map(|bin| series::bin_count(bin, self.base.duration.as_secs_f64())) {
            return Err(self.fail(&path.key("bin"), Fault::new(error)));
        }
        Ok(Curve { name: keys.name.clone(), of: of.clone(), bin, scale: keys.scale.unwrap_or(1.0) })
    }

    fn expression(&self, text: &str, path: &Path) -> Result<Expression, Diagnostic> {
        let parsed = Expression::parse(text).and_then(|it| it.written_out(&|place| self.base.ids(place)));
        let expression = parsed.map_err(|error| self.fail(path, Fault::new(error.0)))?;
        self.check_expression(&expression, path)?;
        Ok(expression)
    }

    fn check_expression(&self, expression: &Expression, path: &Path) -> Result<(), Diagnostic> {
        let measure = |name: &str| self.experiment.measures.iter().find(|(known, _)| known == name);
        let mut gauge = |variant: &Variant, name: &str| match measure(name) {
            Some((_, measure)) => {
                let mut series = |_: &str| Ok(Found { series: None, end: self.ends.of(variant) });
                let checked = measure.evaluate_run(&mut |_, _| Ok(1.0), &mut series);
                checked.map_err(|ExpressionError(error)| ExpressionError(format!("`{name}` asks {error}")))
            }
            None => self.base.check_gauge(name, &[]).map(|()| 1.0),
        };
        let checked = self.experiment.evaluate(expression, &mut gauge);
        checked.map(|_| ()).map_err(|error| self.fail(path, Fault::new(error.0)))
    }

    /// Whether an expression needs a run.
    fn asks_a_run(&self, expression: &Expression) -> bool {
        let mut asks = false;
        let gauge = &mut |_: &Variant, _: &str| {
            asks = true;
            Ok(1.0)
        };
        self.experiment.evaluate(expression, gauge).is_ok() && asks
    }

    fn published(&self, cell: &CellKeys, band: Option<&str>) -> Result<(Published, Band), Fault> {
        let parse = |text: &str, number| {
            Band::parse(text, number).map_err(|remedy| Fault::new(format!("`{text}` is no band")).remedy(remedy))
        };
        if let CellKeys::Text(text) = cell
            && let Some((mean, half)) = text.split_once('±')
            && let Ok(mean) = mean.trim().parse::<f64>()
        {
            return match band {
                None => Ok((Published::Number(mean), parse(&format!("±{half}"), Some(mean))?)),
                Some(_) => Err(Fault::new(format!("`{text}` has its own band")).remedy("remove `band`, or its ±")),
            };
        }
        let published = match cell {
            CellKeys::Number(number) => Published::Number(*number),
            CellKeys::Text(words) => Published::Words(words.clone()),
        };
        let band = band.ok_or_else(|| Fault::new("nothing says how near ours must be").remedy("add `band`"))?;
        let band = parse(band, published.number())?;
        Ok((published, band))
    }

    /// Checks a regression. Its purpose is to detect changes, so it must have a narrow band and no excuse.
    fn regression(
        &self,
        source: Source,
        published: &Published,
        band: &Band,
        because: Option<&str>,
        path: &Path,
    ) -> Result<(), Diagnostic> {
        let is_narrow = |number: f64| match band {
            Band::Exact => true,
            // A tenth more, as both numbers are rounded.
            Band::Mean(Interval { low, high }) => high - low <= 1.1 * 2.0 * REGRESSION_BAND * number.abs(),
            _ => false,
        };
        let fault = match (source, published.number()) {
            (Source::Regression, _) if because.is_some() => Fault::new("a regression that does not hold is a change")
                .remedy("remove `because`; measure it again, or mend it"),
            (Source::Regression, number) if !number.is_some_and(is_narrow) => {
                let percent = 100.0 * REGRESSION_BAND;
                Fault::new(format!("a regression is held to a number within {percent} %, or notices no change"))
                    .remedy("use more seeds, or remove it")
            }
            _ => return Ok(()),
        };
        Err(self.fail(path, fault))
    }

    /// The category of a claim: a regression is counted separately.
    fn counts_as(&self, said: CountsAs, source: Source, path: &Path) -> Result<CountsAs, Diagnostic> {
        match (said, source) {
            (CountsAs::Derivation | CountsAs::Input, Source::Regression) => {
                let fault = Fault::new("a regression is no result already")
                    .remedy("remove `counts_as`, or name another source");
                Err(self.fail(&path.key("counts_as"), fault))
            }
            _ => Ok(said),
        }
    }

    /// Checks a flag that needs a reason: not reproducible, or open.
    fn with_reason(&self, said: bool, because: Option<&str>, path: &Path) -> Result<bool, Diagnostic> {
        match said && because.is_none() {
            false => Ok(said),
            true => Err(self.fail(path, Fault::new("nothing says why it is not reproduced").remedy("add `because`"))),
        }
    }

    fn fail(&self, path: &Path, fault: Fault) -> Diagnostic {
        self.experiment.document.diagnose(path, fault)
    }
}
