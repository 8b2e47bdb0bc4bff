use super::*;
use crate::evaluation::{Coverage, Evaluation, JudgedCriterion, LawFacts, Ruling, SCHEMA as EVALUATION};
use crate::experiment::{ClaimKind, CountsAs, Source};
use crate::field::{
    Better, Column, Fact, FamilyOutcome, Field, FigureKind, LawOutcome, SCHEMA as FIELD, Statistic, Worst,
};
use crate::reproduce::{
    BesideEngine, DescribedFlow, DescribedLink, DescribedNetwork, ExperimentOutcome, Figure, JudgedBand, JudgedClaim,
    JudgedNote, Measured, Measurement, Outcome, Panel, Paper, PublishedValue, SCHEMA, Series, Style, VariedAxis,
};
use crate::verdict::Verdict;

/// An outcome in which every text is `text`.
fn outcome(text: &str, figures: Vec<Figure>) -> Outcome {
    let text = || text.to_owned();
    let claim = |kind, source, published, verdict| JudgedClaim {
        item: text(),
        title: text(),
        source,
        counts_as: CountsAs::Result,
        cite: text(),
        row: text(),
        column: text(),
        kind,
        unit: text(),
        published,
        measured: Measured {
            ours: Some(Measurement { value: 1.0, seeds: 3, sd: 0.5, low: 0.0, high: 2.0 }),
            engine: Some(Measurement { value: 1.1, seeds: 3, sd: 0.5, low: 0.0, high: 2.0 }),
        },
        engine: Some(BesideEngine { agrees: false, because: Some(text()), is_missed: false }),
        band: JudgedBand { kind: "prediction", low: Some(0.0), high: Some(2.0) },
        verdict,
        because: Some(text()),
        is_missed: false,
        is_open: false,
        is_coarse: false,
    };
    let link = DescribedLink {
        id: text(),
        from: text(),
        to: text(),
        rate: text(),
        delay: text(),
        queue: text(),
        error: Some(text()),
        is_duplex: true,
    };
    let experiment = ExperimentOutcome {
        item: text(),
        question: text(),
        file: text(),
        seeds: 3,
        is_random: true,
        seed: 1,
        duration: text(),
        axes: vec![VariedAxis { name: text(), values: vec![text()], keys: vec![text()] }],
        topology: DescribedNetwork {
            nodes: vec![text()],
            links: vec![link],
            flows: vec![DescribedFlow { id: text(), from: text(), to: text(), transport: text() }],
        },
        claims: vec![
            claim(ClaimKind::Number, Source::Paper, PublishedValue::Number(1.0), Verdict::Reproduced),
            claim(ClaimKind::Number, Source::Oracle, PublishedValue::Number(3.0), Verdict::Deviates),
            claim(ClaimKind::Number, Source::Regression, PublishedValue::Number(1.0), Verdict::Holds),
            claim(ClaimKind::Order, Source::Analytic, PublishedValue::Words(text()), Verdict::NotReproducible),
        ],
        notes: vec![JudgedNote { item: text(), text: text() }],
        figures,
        source: text(),
        command: text(),
    };
    let paper = Paper { key: text(), title: text(), question: text(), command: text(), experiments: vec![experiment] };
    Outcome {
        schema: SCHEMA,
        version: "0",
        wall_seconds: 1.0,
        hash: text(),
        runs: 1,
        seeds: None,
        command: text(),
        papers: vec![paper],
    }
}

fn figure(text: &str, panels: usize, series: &[Series]) -> Figure {
    let panel = Panel { title: text.to_owned(), unit: text.to_owned(), series: series.to_vec() };
    let panels = vec![panel; panels];
    Figure { item: text.to_owned(), title: text.to_owned(), caption: text.to_owned(), from: 0.0, to: 100.0, panels }
}

fn series(name: &str, points: usize) -> Series {
    let t: Vec<f64> = (0..points).map(|index| index as f64 * 100.0 / points as f64).collect();
    // Numbers whose five digits are as long as possible.
    let v = t.iter().map(|time| -(time * 1.234_567e-3 + 1.111_11e-4)).collect();
    Series { name: name.to_owned(), style: Style::Steps, t, v }
}

/// Tags and attributes of a page, in their order, without the contents of scripts and styles.
fn skeleton(page: &str) -> Vec<&str> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some(begin) = rest.find('<') {
        rest = &rest[begin..];
        let end = rest.find('>').map_or(rest.len(), |end| end + 1);
        tags.push(&rest[..end.min(8)]);
        let name = rest[1..].split(|sign: char| !sign.is_ascii_alphabetic()).next().unwrap_or_default();
        rest = &rest[end..];
        if ["script", "style"].contains(&name) {
            rest = &rest[rest.find(&format!("</{name}")).unwrap_or(rest.len())..];
        }
    }
    tags
}

#[test]
fn no_text_can_add_or_end_an_element() {
    let harmless = outcome("w", vec![figure("w", 1, &[series("w", 3)])]);
    let expected = page(&harmless);
    let hostile = [
        "</script><script>alert(1)</script>",
        "<!--",
        "<!--<script>",
        "]]><b>",
        "\"><img src=x onerror=alert(1)>",
        "' onmouseover='alert(1)",
        "<style>body{display:none}</style>",
        "</style></title></textarea></svg></pre>",
        "\\\"\\u003c/script>",
        "javascript:alert(1)//<",
    ];
    for text in hostile {
        let page = page(&outcome(text, vec![figure(text, 1, &[series(text, 3)])]));
        assert_eq!(skeleton(&page), skeleton(&expected), "{text}");
        assert!(!page.contains("<img") && !page.contains("alert(1)</script>"), "{text}");
    }
}

/// An evaluation in which every text is `text`, but for the section that the claims name.
fn evaluation(text: &str) -> Evaluation {
    let mut outcome = outcome(text, vec![figure(text, 1, &[series(text, 3)])]);
    let experiment = &mut outcome.papers[0].experiments[0];
    experiment.figures[0].item = "5.1".to_owned();
    experiment.claims.iter_mut().for_each(|claim| claim.item = "5.1".to_owned());
    let criterion = |section: &str, ruling| JudgedCriterion {
        section: section.to_owned(),
        title: text.to_owned(),
        asks: text.to_owned(),
        ruling,
        sentence: text.to_owned(),
        met: 1,
        claims: 4,
    };
    Evaluation {
        schema: EVALUATION,
        law: text.to_owned(),
        against: vec![text.to_owned()],
        laws: vec![LawFacts {
            name: "reno".to_owned(),
            summary: "halves".to_owned(),
            citation: "rfc-5681".to_owned(),
            settings: vec![text.to_owned()],
        }],
        quick: true,
        command: text.to_owned(),
        coverage: vec![Coverage {
            document: text.to_owned(),
            asks: text.to_owned(),
            measured: text.to_owned(),
            criteria: vec!["5.1".to_owned()],
        }],
        criteria: vec![criterion("5.1", Ruling::Missed), criterion("5.2", Ruling::NotJudged)],
        outcome,
        modules: Vec::new(),
    }
}

#[test]
fn no_text_can_add_or_end_an_element_of_an_evaluation() {
    let expected = evaluation_page(&evaluation("a word of the usual length"));
    assert!(expected.contains("id=\"criterion-5-1\"") && !expected.contains("id=\"criterion-5-2\""));
    for text in ["</script><script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "</title></svg></pre>"] {
        let page = evaluation_page(&evaluation(text));
        assert_eq!(skeleton(&page), skeleton(&expected), "{text}");
    }
}

/// A field in which every text that a user can write is `text`: names of laws, and the rival in the name of a family.
fn field(text: &str) -> Field {
    let law = |values: [f64; 2]| LawOutcome {
        law: text.to_owned(),
        values: vec![0.5],
        figures: vec![values.to_vec()],
        worst: vec![Worst { draw: 1, value: 0.25, file: text.to_owned(), scenario: text.to_owned() }],
    };
    let kind = FigureKind { name: "used", unit: "", better: Better::High, what: "goodput over the rate of the link" };
    let family = FamilyOutcome {
        name: text.to_owned(),
        question: "Does it?",
        drawn: "rates",
        figures: vec![kind],
        columns: vec![Column { figure: 0, statistic: Statistic::Mean }],
        laws: vec![law([0.75, 0.25]), law([0.5, 0.5])],
        draws: vec![vec![Fact { name: "rate_mbit_per_s", value: 5.0 }]; 2],
    };
    Field {
        schema: FIELD,
        seed: 1,
        draws: 2,
        laws: vec![text.to_owned(); 2],
        families: vec![family],
        runs: 4,
        hash: text.to_owned(),
        command: text.to_owned(),
        modules: Vec::new(),
    }
}

#[test]
fn field_hostile_text_adds_no_element() {
    let expected = field_page(&field("a word of the usual length"));
    assert!(expected.contains("anabranch sim run worst/a word"));
    for text in ["</script><script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "</title></svg></pre>"] {
        assert_eq!(skeleton(&field_page(&field(text))), skeleton(&expected), "{text}");
    }
}

/// Two draws of each law: the curve rises from the smaller value at 0 to the larger one at 1.
#[test]
fn field_distribution_rises_from_least_to_most() {
    let page = field_page(&field("w"));
    let path =
        |class: &str| page.split(&format!("class=\"line {class}\" d=\"M")).nth(1).unwrap().split('"').next().unwrap();
    let point = |text: &str| -> [f64; 2] {
        text.split(' ').map(|part| part.parse().unwrap()).collect::<Vec<_>>().try_into().unwrap()
    };
    let [least, most] = path("l0").split('L').map(point).collect::<Vec<_>>().try_into().unwrap();
    assert!(least[0] < most[0] && least[1] > most[1], "{least:?} {most:?}");
    let [left, right] = path("l1").split('L').map(point).collect::<Vec<_>>().try_into().unwrap();
    assert!(left[0].total_cmp(&right[0]).is_eq() && left[0] > least[0] && left[0] < most[0], "{left:?} {right:?}");
}

/// A second rival has the runs of the law alone in common with the first one: they are drawn once, and what differs is drawn twice.
#[test]
fn a_criterion_shows_equal_curves_once() {
    let drawn = |second: Vec<Figure>| {
        let mut evaluation = evaluation("w");
        let experiments = &mut evaluation.outcome.papers[0].experiments;
        let mut other = experiments[0].clone();
        (other.file, other.figures) = ("other.toml".to_owned(), second);
        experiments.push(other);
        evaluation_page(&evaluation).matches("<figure").count()
    };
    let of = |points: usize| vec![Figure { item: "5.1".to_owned(), ..figure("w", 1, &[series("w", points)]) }];
    assert_eq!([drawn(vec![]), drawn(of(3)), drawn(of(4))], [1, 1, 2]);
}

#[test]
fn the_page_names_nothing_outside_of_itself() {
    let page = page(&outcome("w", vec![]));
    // Vendored files name their sources, and SVG made by a script names its namespace; but nothing is loaded.
    for loading in ["src=\"http", "href=\"http", "url(http", "@import", "fetch(", "XMLHttpRequest", "<link"] {
        assert!(!page.contains(loading), "{loading}");
    }
}

/// Sixty figures of four panels of three series of 50 000 points each.
#[test]
fn a_report_of_many_long_series_stays_below_three_megabytes() {
    let curves = [series("one", 50_000), series("two", 50_000), series("three", 50_000)];
    let page = page(&outcome("a word or two", vec![figure("a word or two", 4, &curves); 60]));
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    // Half of a real report is tables and networks.
    assert!(page.len() > 1_200_000, "{} bytes: there was room for more points", page.len());
}

#[test]
fn a_page_is_a_function_of_its_outcome() {
    let outcome = outcome("w", vec![figure("w", 2, &[series("w", 3)])]);
    assert_eq!(page(&outcome), page(&outcome));
}

#[test]
fn items_have_their_names() {
    let named = ["table2", "fig5", "text", "window-limit", "tables", "fig"].map(words::item);
    assert_eq!(named, ["Table 2", "Figure 5", "Text", "window-limit", "tables", "fig"]);
}

#[test]
fn many_claims_with_one_reason_are_counted() {
    let mut outcome = outcome("w", vec![]);
    let claims = &mut outcome.papers[0].experiments[0].claims;
    let odd = JudgedClaim { verdict: Verdict::Deviates, ..claims[0].clone() };
    let of = |because: &str| JudgedClaim { because: Some(because.to_owned()), ..odd.clone() };
    *claims = ["the first", "the second"].repeat(7).into_iter().map(of).collect();
    claims.push(of("the third"));
    let page = page(&outcome);
    for (because, times) in
        [("<p>the first</p>", 1), ("<p>the second</p>", 1), ("<p>the third</p>", 1), (": 7 claims", 2)]
    {
        assert_eq!(page.matches(because).count(), times, "{because}");
    }
}

#[test]
fn values_of_an_axis_stand_on_lines_of_their_own() {
    let lines = |values: usize| {
        let mut outcome = outcome("w", vec![]);
        outcome.papers[0].experiments[0].axes[0].values = (0..values).map(|value| format!("v, {value}")).collect();
        let page = page(&outcome);
        (page.matches("<li>v, ").count(), page.contains("… and "), page.contains("… and 2 more"))
    };
    assert_eq!([8, 9, 10].map(lines), [(8, false, false), (9, false, false), (10, true, true)]);
}

/// [WCAG 2.2] relative luminance of `#rrggbb`.
fn luminance(colour: &str) -> f64 {
    let part = |at: usize| {
        let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
}

/// [WCAG 2.2] contrast ratio.
fn contrast(a: &str, b: &str) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// Both colours of a custom property, light and dark.
fn colours(name: &str) -> [&'static str; 2] {
    let style = include_str!("assets/style.css");
    let rest = style.split_once(&format!("--{name}: light-dark(")).expect(name).1;
    let (light, dark) = rest.split_once(')').unwrap().0.split_once(", ").unwrap();
    [light, dark]
}

/// [WCAG 2.2] 1.4.3, level AA: 4.5 to 1 for text of any size.
#[test]
fn every_text_has_the_contrast_of_aa() {
    assert!(
        (contrast("#ffffff", "#000000") - 21.0).abs() < 1e-9 && (contrast("#777777", "#ffffff") - 4.48).abs() < 0.005
    );
    let texts = ["ink", "quiet", "accent", "missed", "reproduced-ink", "deviates-ink", "impossible-ink"];
    let grounds = ["paper", "raised"];
    // A sign has the colour of the paper on its square or mark, or the colour of the verdict in an empty square.
    let signs = ["reproduced", "holds", "deviates", "missed", "impossible"].map(|sign| ("paper", sign));
    let pairs = texts.iter().flat_map(|&text| grounds.map(|ground| (text, ground))).chain(signs);
    for (text, ground) in pairs {
        for theme in 0..2 {
            let ratio = contrast(colours(text)[theme], colours(ground)[theme]);
            assert!(ratio >= 4.5, "{text} on {ground}: {ratio:.2}");
        }
    }
    for line in include_str!("assets/style.css").lines() {
        assert!(!line.contains(" color: var(--faint)"), "faint is for lines, not for text: {line}");
    }
}

#[test]
fn legend_precedes_squares_and_coarse_claims_are_listed() {
    let mut outcome = outcome("w", vec![]);
    let plain = page(&outcome);
    assert!(plain.find("id=\"legend\"").unwrap() < plain.find("class=\"matrix\"").unwrap());
    assert!(!plain.contains("<h4>Coarse</h4>") && !plain.contains("class=\"coarse\""));
    outcome.papers[0].experiments[0].claims[0].is_coarse = true;
    let coarse = page(&outcome);
    assert!(
        coarse.contains("<h4>Coarse</h4>")
            && coarse.contains("class=\"coarse\"")
            && coarse.contains(">1 of the reproduced coarse</span>")
    );
}
