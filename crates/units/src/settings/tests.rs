use super::*;

/// A table with a number, a part of two kinds, and a part that is always present.
#[derive(Clone, Debug, PartialEq)]
struct Tea {
    cups: f64,
    milk: Milk,
    water: Water,
}

#[derive(Clone, Debug, PartialEq)]
enum Milk {
    None,
    Some { share: f64 },
}

#[derive(Clone, Debug, PartialEq)]
struct Water {
    boils: f64,
    is_soft: bool,
}

impl Table for Tea {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.number("cups", &mut self.cups, 1.0..=8.0, "cups", "how many");
        fields.choice("milk", &mut self.milk, "whether there is milk");
        fields.table("water", &mut self.water);
    }
}

impl Choice for Milk {
    const KINDS: &'static [(&'static str, Self)] = &[("none", Self::None), ("some", Self::Some { share: 0.1 })];

    fn visit(&mut self, fields: &mut Fields<'_>) {
        if let Self::Some { share } = self {
            fields.number("share", share, 0.0..=0.5, "", "how much of a cup");
        }
    }
}

impl Table for Water {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        let minutes = Span::ZERO..=Span::from_secs(600);
        fields.seconds("boils", &mut self.boils, minutes, "for how long it boils");
        fields.switch("soft", &mut self.is_soft, "whether it is soft");
    }
}

const TEA: Tea = Tea { cups: 2.0, milk: Milk::None, water: Water { boils: 60.0, is_soft: false } };

fn set(tea: &mut Tea, key: &str, value: &str) -> Result<(), String> {
    AnyTable::set(tea, "tea", key, value).map_err(|error| error.to_string())
}

#[test]
fn fields_are_set_by_their_names() {
    let mut tea = TEA;
    for (key, value) in
        [("cups", "3"), ("milk", "some"), ("milk.share", "0.2"), ("water.boils", "90s"), ("water.soft", "true")]
    {
        set(&mut tea, key, value).unwrap();
    }
    assert_eq!(tea, Tea { cups: 3.0, milk: Milk::Some { share: 0.2 }, water: Water { boils: 90.0, is_soft: true } });
}

/// A change of the kind resets its settings; setting the present kind changes nothing.
#[test]
fn a_part_begins_with_the_defaults_of_its_kind() {
    let mut tea = Tea { milk: Milk::Some { share: 0.3 }, ..TEA };
    set(&mut tea, "milk", "some").unwrap();
    assert_eq!(tea.milk, Milk::Some { share: 0.3 });
    set(&mut tea, "milk", "none").unwrap();
    set(&mut tea, "milk", "some").unwrap();
    assert_eq!(tea.milk, Milk::Some { share: 0.1 });
}

/// The key `kind`, as in `milk = { kind = "some", share = 0.2 }`. A setting that is no part has no kind.
#[test]
fn the_kind_of_a_part_can_be_named() {
    let mut tea = TEA;
    set(&mut tea, "milk.kind", "some").unwrap();
    assert_eq!(tea.milk, Milk::Some { share: 0.1 });
    set(&mut tea, "cups.kind", "3").unwrap_err();
    set(&mut tea, "water.kind", "3").unwrap_err();
}

#[test]
fn everything_is_listed_with_the_kind_that_has_it() {
    let list = |tea: &Tea| -> Vec<(String, String, Option<&'static str>)> {
        let shown = |parameter: Parameter| (parameter.name, parameter.value.to_string(), parameter.only);
        tea.parameters().into_iter().map(shown).collect()
    };
    let row = |name: &str, value: &str, only| (name.to_owned(), value.to_owned(), only);
    let mut expected = [
        row("cups", "2", None),
        row("milk", "none", None),
        row("milk.share", "0.1", Some("some")),
        row("water.boils", "1min", None),
        row("water.soft", "false", None),
    ];
    expected[3].1 = Span::from_secs(60).to_string();
    assert_eq!(list(&TEA), expected);
    // The settings of the present kind, with their values.
    assert_eq!(list(&Tea { milk: Milk::Some { share: 0.4 }, ..TEA })[2], row("milk.share", "0.4", Some("some")));
}

#[test]
fn setting_of_other_kind_is_refused() {
    let mut tea = TEA;
    assert_eq!(
        set(&mut tea, "milk.share", "0.2").unwrap_err(),
        "`milk.share` of tea is a setting of `some`, and `milk` is `none`; write milk = { kind = \"some\", ... } or remove it"
    );
    for (key, message) in [
        ("milk.shore", "tea has no parameter `milk.shore`; did you mean `milk.share`?"),
        ("water", "tea has no parameter `water`; it is a table: water.boils, water.soft"),
        (
            "water.xxxxxxxxxx",
            "tea has no parameter `water.xxxxxxxxxx`; it has cups, milk, milk.share, water.boils, water.soft",
        ),
        ("share", "tea has no parameter `share`; did you mean `milk.share`?"),
    ] {
        assert_eq!(set(&mut tea, key, "1").unwrap_err(), message);
    }
    for (key, value, message) in [
        ("milk", "sone", "`milk` of tea cannot be `sone`: it is one of none, some; did you mean `none`?"),
        ("cups", "9", "`cups` of tea cannot be `9`: it is a number from 1 to 8 cups"),
        ("water.soft", "yes", "`water.soft` of tea cannot be `yes`: it is true or false"),
    ] {
        assert_eq!(set(&mut tea, key, value).unwrap_err(), message);
    }
    assert_eq!(tea, TEA);
}
