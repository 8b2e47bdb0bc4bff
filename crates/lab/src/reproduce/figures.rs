//! The points of figures, from a judged run if there is one.

use std::collections::BTreeMap;

use super::plan::{Column, Plan};
use super::{Figure, Panel, Series, Style};
use crate::experiment::{Curve, Experiment, FigurePlan, PanelPlan, Variant};
use crate::expression::Found;
use crate::run::Trace;
use crate::series::Kind;

/// The variants that the figures of an experiment show, each once.
fn variants(experiment: &Experiment) -> Vec<Variant> {
    let mut variants: Vec<Variant> = Vec::new();
    for (variant, _) in experiment.figures.iter().flat_map(|figure| &figure.variants) {
        if !variants.contains(variant) {
            variants.push(variant.clone());
        }
    }
    variants
}

/// The curves of one variant for each panel of each figure.
pub(super) type Drawn = Vec<Vec<Vec<Series>>>;

/// The curves by the position of the run.
pub(super) type Drawings = BTreeMap<usize, Drawn>;

/// Draws the curves of a variant from a run that has recorded their series.
pub(super) fn draw(experiment: &Experiment, variant: &Variant, trace: &Trace<'_>) -> Drawn {
    let curve = |figure: &FigurePlan, label: &str, curve: &Curve| {
        let name = match (curve.name.as_str(), label) {
            (name, "") => name.to_owned(),
            ("", label) => label.to_owned(),
            (name, label) => format!("{label}: {name}"),
        };
        let series = trace.lookup(&curve.of).map_err(|error| error.to_string()).and_then(|Found { series, end }| {
            let series = series.expect("a run has its series");
            match curve.bin {
                Some(width) => series.bins(width, end),
                None => Ok(series),
            }
        });
        match series {
            Ok(series) => {
                let style = if series.kind == Kind::Variable { Style::Steps } else { Style::Points };
                let points = series.drawn(figure.from, figure.to);
                let (t, v) = points.into_iter().map(|(time, value)| (time, value * curve.scale)).unzip();
                Series { name, style, t, v }
            }
            // Not every transport has every variable; the figure shows the others.
            Err(_) => Series { name: format!("{name} (not measured)"), style: Style::Steps, t: vec![], v: vec![] },
        }
    };
    let figure = |figure: &FigurePlan| {
        let label = figure.variants.iter().find(|(shown, _)| shown == variant).map(|(_, label)| label.as_str());
        let curves = |curves: &[Curve]| match label {
            Some(label) => curves.iter().map(|one| curve(figure, label, one)).collect(),
            None => Vec::new(),
        };
        figure.panels.iter().map(|panel| curves(&panel.curves)).collect()
    };
    experiment.figures.iter().map(figure).collect()
}

/// The figures of the experiment at a position of the plan.
pub(super) fn figures(plan: &Plan<'_>, index: usize, drawings: &Drawings) -> Vec<Figure> {
    let experiment = plan.experiments[index];
    let run = |variant| plan.variants[&(index, variant, Column::Own)].start;
    let drawings: Vec<&Drawn> = variants(experiment).into_iter().map(|variant| &drawings[&run(variant)]).collect();
    let panels = |index: usize, figure: &FigurePlan| {
        let panel = |(place, panel): (usize, &PanelPlan)| Panel {
            title: panel.title.clone(),
            unit: panel.unit.clone(),
            series: drawings.iter().flat_map(|drawing| drawing[index][place].iter().cloned()).collect(),
        };
        figure.panels.iter().enumerate().map(panel).collect()
    };
    let figure = |(index, figure): (usize, &FigurePlan)| Figure {
        item: figure.item.clone(),
        title: figure.title.clone(),
        caption: figure.caption.clone(),
        from: figure.from,
        to: figure.to,
        panels: panels(index, figure),
    };
    experiment.figures.iter().enumerate().map(figure).collect()
}
