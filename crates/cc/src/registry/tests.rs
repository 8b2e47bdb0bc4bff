use super::*;

#[test]
fn names_are_unique_and_sorted() {
    let names: Vec<_> = rows().iter().map(|row| row.name).collect();
    assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
}

#[test]
fn every_row_says_what_people_need() {
    for row in rows() {
        assert!(!row.summary.is_empty() && !row.summary.ends_with('.'), "summary of {}", row.name);
        assert!(!row.citation.is_empty(), "citation of {}", row.name);
        let parameters = row.parameters();
        let mut names: Vec<_> = parameters.iter().map(|parameter| (&parameter.name, parameter.only)).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "parameters of {}: {names:?}", row.name);
        for parameter in &parameters {
            assert!(!parameter.help.is_empty() && !parameter.help.ends_with('.'), "{}.{}", row.name, parameter.name);
        }
    }
}

/// Every default can be set by its printed form, and lies within its own range.
#[test]
fn every_default_can_be_set() {
    for row in rows() {
        let defaults = Settings::default_for(row);
        let mut settings = Settings::default_for(row);
        for parameter in defaults.parameters() {
            // A setting of another kind can be set once the part has that kind.
            let mut settings = match (parameter.only, parameter.name.split_once('.')) {
                (Some(kind), Some((part, _))) if defaults.value(part) != Some(Value::Choice(kind)) => {
                    Settings::parse(row, [(part, kind)]).unwrap()
                }
                _ => settings.clone(),
            };
            settings.set(&parameter.name, &parameter.value.to_string()).unwrap();
            assert_eq!(settings.value(&parameter.name), Some(parameter.value), "{}: {}", row.name, parameter.name);
        }
        for parameter in defaults.parameters() {
            if defaults.value(&parameter.name).is_some() {
                settings.set(&parameter.name, &parameter.value.to_string()).unwrap();
            }
        }
        assert_eq!(settings.parameters(), defaults.parameters(), "{}", row.name);
    }
}

#[track_caller]
fn message(result: Result<Settings, SettingError>) -> String {
    result.unwrap_err().to_string()
}

fn set(name: &str, key: &str, value: &str) -> Result<Settings, SettingError> {
    Settings::parse(find(name)?, [(key, value)])
}

#[test]
fn errors_say_what_would_do() {
    assert_eq!(message(set("rneo", "", "")), "there is no congestion law `rneo`; did you mean `reno`?");
    assert_eq!(
        message(set("reno", "intial_window", "1")),
        "reno has no parameter `intial_window`; did you mean `initial_window`?"
    );
    assert_eq!(message(set("reno", "zeta", "1")), "reno has no parameter `zeta`; it has initial_window");
    for value in ["0.5", "1001", "ten", "NaN", "inf", "-1", ""] {
        assert_eq!(
            message(set("reno", "initial_window", value)),
            format!("`initial_window` of reno cannot be `{value}`: it is a number from 1 to 1000 segments")
        );
    }
}

#[test]
fn a_refused_value_changes_nothing() {
    let mut settings = Settings::default_for(find("reno").unwrap());
    settings.set("initial_window", "3").unwrap();
    settings.set("initial_window", "0").unwrap_err();
    assert_eq!(settings.value("initial_window"), Some(Value::Number(3.0)));
}

#[test]
fn the_ends_of_a_range_belong_to_it() {
    for value in ["1", "1000"] {
        set("reno", "initial_window", value).unwrap();
    }
}
