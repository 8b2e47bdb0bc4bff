use super::*;

/// 2^-24 segments: alpha 20 is 20 << 24; gamma 0.5 is 1 << 15; 0.75 ms are 750,000 ns; 1/256 is 1 << 24.
#[test]
fn defaults_of_fast_encode_as_words() {
    let words = Settings::of(Law::Fast).words;
    assert_eq!(*words, [10 << 24, 20 << 24, 0, 1 << 15, 750_000, 1 << 24, 0, 0, 0, 0]);
}

/// Parts have 32 bits after the point, 0.75 is 3 << 30; 5 s are nanoseconds.
#[test]
fn defaults_of_anabranch_encode_as_words() {
    let words = Settings::of(Law::Anabranch).words;
    assert_eq!(*words, [10 << 24, 20 << 24, 5_000_000_000, 3 << 30, 644_245_094, 3_435_973_837, 0]);
}

#[test]
fn number_shown_as_shortest_text_of_its_word() {
    let pairs = Settings::of(Law::Anabranch).pairs();
    let value = |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str());
    assert_eq!((value("decrease"), value("ours"), value("alpha")), (Some("0.15"), Some("0.8"), Some("20")));
}

#[test]
fn presets_differ_in_one_word_each() {
    let differing = |law| {
        let (fast, other) = (Settings::of(Law::Fast).words, Settings::of(law).words);
        (0..fast.len()).filter(|&at| fast[at] != other[at]).collect::<Vec<_>>()
    };
    assert_eq!(differing(Law::Emfast), [7]);
    assert_eq!(differing(Law::Rrfast), [8]);
    assert_eq!(differing(Law::Composite), [6, 9]);
}

#[test]
fn settings_survive_the_kernel_map() {
    for law in Law::ALL {
        let mut settings = Settings::of(law);
        settings.set("initial_window", "4").expect("every law has it");
        assert_eq!(Settings::from_bytes(law, &settings.to_bytes()), Some(settings.clone()), "{law}");
        assert_eq!(Settings::encode(law, &settings.decode()).expect("valid"), settings, "{law}");
    }
}

#[test]
fn part_set_by_name_changes_its_word() {
    let mut settings = Settings::of(Law::Fast);
    for (key, value) in [("alpha", "200"), ("refill", "ccafr"), ("loss", "composite"), ("base_rtt", "reroute")] {
        settings.set(key, value).expect("C has it");
    }
    assert_eq!(settings.words[1], 200 << 24);
    assert_eq!(settings.words[7..], [1, 1, 1]);
}

#[test]
fn setting_without_c_is_refused_by_name() {
    let refused = |law, key: &str, value: &str| {
        let mut settings = Settings::of(law);
        let refused = settings.set(key, value).expect_err("refused").to_string();
        assert_eq!(settings, Settings::of(law), "a refused setting changes nothing");
        refused
    };
    assert!(refused(Law::Fast, "clockwork", "ns2_module").contains("no `clockwork` in the kernel"));
    assert!(refused(Law::Emfast, "refill.gapflag", "even").contains("no `refill.gapflag` in the kernel"));
    assert!(refused(Law::Composite, "base", "cubic").contains("no `base` in the kernel"));
    assert!(refused(Law::Fast, "alpha", "0").contains("alpha"));
    assert!(refused(Law::Composite, "alpha", "5").contains("alpha"));
}

#[test]
fn words_out_of_range_are_no_settings() {
    let mut bytes = Settings::of(Law::Fast).to_bytes();
    bytes[56] = 7;
    assert_eq!(Settings::from_bytes(Law::Fast, &bytes), None);
    assert_eq!(Settings::from_bytes(Law::Anabranch, &Settings::of(Law::Fast).to_bytes()), None);
}
