use super::*;

fn value(name: &str, labels: &[String]) -> Result<f64, ExpressionError> {
    match (name, labels) {
        ("flow.my-flow.max_seq", []) => Ok(7.0),
        ("delivered", [agent, error]) if agent == "CTCP" && error == "error=0.01" => Ok(12102.0),
        ("delivered", [agent, _]) if agent == "Vegas" => Ok(8456.0),
        _ => Err(ExpressionError(format!("unknown {name}"))),
    }
}

/// A window of 1, 5 from 2 s and 3 from 4 s on; drops at 1 s and 3 s. The run ends at 10 s.
fn series(name: &str) -> Result<Found, ExpressionError> {
    let series = match name {
        "flow.f.window" => Series::variable([(0.0, 1.0), (2.0, 5.0), (4.0, 3.0)]),
        "link.a.drops" => Series::events([(1.0, 1.0), (3.0, 1.0)]),
        _ => return Err(ExpressionError(format!("unknown {name}"))),
    };
    Ok(Found { series: Some(series), end: 10.0 })
}

#[track_caller]
fn assert_asked(text: &str, expected: f64) {
    let expression = Expression::parse(text).unwrap();
    assert!(expression.asks_series());
    let got = expression.evaluate_run(&mut value, &mut series).unwrap();
    assert!((got - expected).abs() < 1e-9, "{text}: expected {expected}, got {got}");
}

#[test]
fn functions_ask_series() {
    assert_asked("value_at(flow.f.window, 3)", 5.0);
    assert_asked("max(flow.f.window, 0, 9) - min(flow.f.window, 3, 9)", 2.0);
    assert_asked("mean(flow.f.window, 2, 6)", 4.0);
    assert_asked("time_of_max(flow.f.window, 0, 9) + time_of_min(flow.f.window, 3, 9)", 6.0);
    assert_asked("first_time(flow.f.window >= 2 + 1, 0)", 2.0);
    assert_asked("last_time(flow.f.window > 4, 9)", 4.0);
    assert_asked("first_time(link.a.drops, 2) - first_time(link.a.drops, 0)", 2.0);
    assert_asked("last_time(link.a.drops, 9)", 3.0);
    assert_asked("count(link.a.drops, 0, 3)", 1.0);
    assert_asked("quantile(flow.f.window, 0.5, 0, 10) + quantile(link.a.drops, 0.95, 0, 10)", 4.0);
    assert_asked("count(flow.f.window >= 3, 0, 9)", 1.0);
    assert_asked("sum(link.a.drops, 0, 3.5)", 2.0);
    assert_asked("mean(link.a.drops, 0, 4)", 0.5);
    assert_asked("max(bins(link.a.drops, 0.5), 0, 10)", 2.0);
    assert_asked("count(pauses(link.a.drops, 1), 0, 10) + largest(pauses(link.a.drops, 1), 0, 10)", 9.0);
    assert_asked("first_time(pauses(link.a.drops, 2), 0) + sum(pauses(link.a.drops, 2), 0, 10)", 10.0);
    assert_asked("value_at(flow.f.window, first_time(link.a.drops, 2))", 5.0);
    assert_asked("count(falls(flow.f.window, 0.7), 0, 10) + largest(falls(flow.f.window, 0.7), 0, 10)", 3.0);
    assert_asked("max(1, value_at(flow.f.window, 3))", 5.0);
}

#[test]
fn questions_that_have_no_answer_say_why() {
    let parse = |text: &str| Expression::parse(text).unwrap_err().to_string();
    assert_eq!(
        parse("flow.f.window + 1"),
        "`flow.f.window` is a series: ask for one of its values, as value_at(flow.f.window, 5)"
    );
    assert_eq!(
        parse("max(link.a.drops, 0, 1)"),
        "`link.a.drops` has events, and no max: write max(bins(link.a.drops, 0.1), ...)"
    );
    assert_eq!(
        parse("sum(flow.f.window, 0, 1)"),
        "`flow.f.window` is a variable, and has no sum: use mean, min or max"
    );
    assert_eq!(parse("max(flow.f.window, 0)"), "in `max(flow.f.window, 0)`: expected `,`, found `)`");
    assert_eq!(
        parse("first_time(flow.f.window, 0)"),
        "in `first_time(flow.f.window, 0)`: expected one of == != <= >= < >, found `, 0)`"
    );
    let never = Expression::parse("first_time(flow.f.window > 9, 0)").unwrap();
    assert_eq!(
        never.evaluate_run(&mut value, &mut series).unwrap_err().to_string(),
        "`flow.f.window`: it never happens from 0 s on"
    );
    assert_eq!(
        never.evaluate(&mut value).unwrap_err().to_string(),
        "`flow.f.window` is a series of one run; give what you ask of it a name in [measure]"
    );
}

/// Asserts an error before a run of 10 s and after it.
#[track_caller]
fn assert_unanswerable(text: &str, expected: &str) {
    let expression = Expression::parse(text).unwrap();
    let mut before = |name: &str| Ok(Found { series: None, ..series(name)? });
    for (when, lookup) in [("before", &mut before as &mut SeriesLookup<'_>), ("after", &mut series)] {
        let error = expression.evaluate_run(&mut value, lookup).expect_err(text).to_string();
        assert_eq!(error, expected, "{text}, {when} the run");
    }
}

#[test]
fn impossible_expression_is_refused_before_run() {
    let window = |reason: &str| format!("`flow.f.window`: {reason}");
    let drops = |reason: &str| format!("`link.a.drops`: {reason}");
    let outside = "60 s is outside the run, which ends at 10 s: ask from 0 to 10";
    for text in [
        "mean(flow.f.window, 3, 60)",
        "value_at(flow.f.window, 60)",
        "max(flow.f.window, 60, 61)",
        "time_of_min(flow.f.window, 0, 6 * 10)",
        "first_time(flow.f.window > 1, 60)",
        "last_time(flow.f.window > 1, 60)",
        "quantile(flow.f.window, 0.5, 0, 60)",
        "1 + min(2, -value_at(flow.f.window, 60))",
        "value_at(flow.f.window, value_at(flow.f.window, 60))",
    ] {
        assert_unanswerable(text, &window(outside));
    }
    for text in ["sum(link.a.drops, 0, 60)", "count(link.a.drops, 0, 60)", "largest(link.a.drops, 0, 60)"] {
        assert_unanswerable(text, &drops(outside));
    }
    assert_unanswerable(
        "value_at(flow.f.window, -1)",
        &window("-1 s is outside the run, which ends at 10 s: ask from 0 to 10"),
    );
    let reversed = "5 s is later than 3 s: write the earlier time first";
    for text in ["mean(flow.f.window, 5, 3)", "max(flow.f.window, 5, 3)", "count(flow.f.window > 1, 5, 3)"] {
        assert_unanswerable(text, &window(reversed));
    }
    for text in ["sum(link.a.drops, 5, 3)", "quantile(link.a.drops, 0.5, 5, 3)", "mean(bins(link.a.drops, 1), 5, 3)"] {
        assert_unanswerable(text, &drops(reversed));
    }
    let empty = "there is no time from 3 s to 3 s: make the second later";
    assert_unanswerable("count(link.a.drops, 3, 3)", &drops(empty));
    assert_unanswerable("quantile(flow.f.window, 0.5, 3, 3)", &window(empty));
    assert_unanswerable(
        "quantile(flow.f.window, 95, 0, 9)",
        &window("95 is no share: use 0 to 1, such as 0.95 for the 95th percentile"),
    );
    for width in ["0", "-1", "11", "0.000001"] {
        let reason = format!(
            "a run of 10 s cannot be cut into bins of {width} s: use from 0.00001 to 10, which makes at most 1000000 of them"
        );
        assert_unanswerable(&format!("max(bins(link.a.drops, {width}), 0, 9)"), &drops(&reason));
    }
    for width in ["-1", "10"] {
        let reason = format!("no pause of more than {width} s is in a run of 10 s: use 0 or more, and less than that");
        assert_unanswerable(&format!("count(pauses(link.a.drops, {width}), 0, 9)"), &drops(&reason));
    }
}

/// A time that is no number is known only after the run.
#[test]
fn times_that_a_run_tells_are_checked_after_it() {
    let expression = Expression::parse("mean(flow.f.window, 9, first_time(link.a.drops, 0))").unwrap();
    let mut before = |name: &str| Ok(Found { series: None, ..series(name)? });
    assert_eq!(expression.evaluate_run(&mut value, &mut before), Ok(1.0));
    let error = expression.evaluate_run(&mut value, &mut series).unwrap_err().to_string();
    assert_eq!(error, "`flow.f.window`: 9 s is later than 1 s: write the earlier time first");
}

#[test]
fn the_instants_at_which_a_run_begins_and_ends_belong_to_it() {
    assert_asked("value_at(flow.f.window, 10) + max(flow.f.window, 0, 0) + mean(flow.f.window, 0, 0.1 + 9.9)", 7.0);
}

#[track_caller]
fn assert_value(text: &str, expected: f64) {
    let got = Expression::parse(text).and_then(|expression| expression.evaluate(&mut value)).unwrap();
    assert!((got - expected).abs() < 1e-9, "{text}: expected {expected}, got {got}");
}

#[test]
fn arithmetic_binds_as_usual() {
    assert_value("1 + 2 * 3", 7.0);
    assert_value("(1 + 2) * 3", 9.0);
    assert_value("8 / 2 / 2 - 1", 1.0);
    assert_value("-2 * -3", 6.0);
    assert_value("1e3 + 2.5E-1 + 1e+2 - 1e3", 100.25);
    assert_value("min(3, 1 + 1, 5) + max(1, 4)", 6.0);
}

#[test]
fn a_minus_inside_a_name_belongs_to_it() {
    assert_value("flow.my-flow.max_seq - 1", 6.0);
    assert_value("flow.my-flow.max_seq -1", 6.0);
}

/// The paper's 43.1 %: 12102 / 8456 = 1.43117.
#[test]
fn measures_are_asked_at_labels() {
    let text = "100 * (delivered('CTCP', 'error=0.01') / delivered('Vegas', 'error=0.01') - 1)";
    let gain = Expression::parse(text).unwrap().evaluate(&mut value).unwrap();
    assert!((gain - 43.117).abs() < 0.001, "{gain}");
}

#[test]
fn assertions_compare() {
    let holds = |text: &str| Assertion::parse(text).unwrap().evaluate(&mut value, &mut series).unwrap().2;
    assert!(holds("flow.my-flow.max_seq == 7"));
    assert!(holds("1 <= 1") && holds("1 >= 1") && holds("1 != 2"));
    assert!(!holds("1 < 1") && !holds("1 > 1") && !holds("0 / 0 == 0 / 0"));
}

#[test]
fn errors_say_what_was_expected() {
    let message = |text: &str| Expression::parse(text).unwrap_err().to_string();
    assert_eq!(message("1 +"), "in `1 +`: expected a number, a name or a bracket, found the end");
    assert_eq!(message("(1"), "in `(1`: expected `)`, found the end");
    assert_eq!(message("1e"), "in `1e`: expected the end, found `e`");
    assert_eq!(message("1 2"), "in `1 2`: expected the end, found `2`");
    assert_eq!(message("f('a"), "in `f('a`: expected a closing ', found `a`");
    assert!(message(&"(".repeat(1000)).contains("expected fewer brackets"));
    assert_eq!(message(&"1+".repeat(3000)), "an expression of 6000 bytes is too long: at most 4096");
    assert_eq!(
        Assertion::parse("1").unwrap_err().to_string(),
        "in `1`: expected one of == != <= >= < >, found the end"
    );
}

/// The flows `f`, `rival0` and `rival1`, the n-th with the value n, and the link `a`.
fn ids(place: &str) -> Vec<String> {
    match place {
        "flow" => ["f", "rival0", "rival1"].map(str::to_owned).to_vec(),
        "link" => vec!["a".to_owned()],
        _ => vec![],
    }
}

fn counted(name: &str, _: &[String]) -> Result<f64, ExpressionError> {
    let position = ids("flow").iter().position(|id| name == format!("flow.{id}.max_seq"));
    position.map(|position| position as f64 + 1.0).ok_or_else(|| ExpressionError(format!("unknown {name}")))
}

/// 1, 2 and 3: their sum is 6, and Jain's index 36 / (3 · 14).
#[test]
fn a_number_sign_stands_for_each() {
    let value = |text: &str| {
        let expression = Expression::parse(text).unwrap().written_out(&ids).unwrap();
        expression.evaluate(&mut { counted }).unwrap()
    };
    for (text, expected) in [
        ("max(flow.#.max_seq)", 3.0),
        ("min(flow.rival#.max_seq)", 2.0),
        ("total(flow.#.max_seq, 10)", 16.0),
        ("jain(flow.#.max_seq)", 36.0 / 42.0),
        ("jain(4, 4)", 1.0),
        ("jain(4, 0)", 0.5),
        ("total(flow.#.max_seq * flow.#.max_seq)", 14.0),
        ("total(flow.#.max_seq - min(flow.rival#.max_seq))", 0.0),
        ("total(max(flow.f.max_seq, -flow.rival#.max_seq))", 1.0),
    ] {
        assert!((value(text) - expected).abs() < 1e-12, "{text}: {} and not {expected}", value(text));
    }
    let expression = Expression::parse("max(mean(flow.#.window, 0, first_time(link.#.drops, 0)))").unwrap();
    assert!(expression.written_out(&ids).unwrap_err().0.contains("a second `#` stands beside it, in `link.#.drops`"));
    let expression = Expression::parse("max(mean(flow.rival#.window, 0, last_time(flow.rival#.goodput, 9)))").unwrap();
    let series = expression.written_out(&ids).unwrap().series();
    assert_eq!(series, ["flow.rival0.window", "flow.rival0.goodput", "flow.rival1.window", "flow.rival1.goodput"]);
}

#[test]
fn a_number_sign_without_a_meaning_says_so() {
    let refused = |text: &str| Expression::parse(text).unwrap().written_out(&ids).unwrap_err().0;
    assert_eq!(
        refused("flow.#.max_seq + 1"),
        "`flow.#.max_seq` is of each, and stands in no list: write min(...), max(...), total(...) or jain(...) around it"
    );
    assert_eq!(
        refused("max(flow.other#.max_seq)"),
        "`flow.other#.max_seq`: no flow is called `other#`; there are f, rival0, rival1"
    );
    assert!(refused("max(flow.f.#.max_seq)").contains("in the place of an id or at its end"));
}

/// A measure may be called `total`, as a list.
#[test]
fn a_measure_may_have_the_name_of_a_list() {
    let expression = Expression::parse("total('a', 'b') - jain('a')").unwrap();
    let value = expression.evaluate(&mut |name, labels| Ok((name.len() * labels.len()) as f64)).unwrap();
    assert!((value - 6.0).abs() < 1e-12, "{value}");
}
