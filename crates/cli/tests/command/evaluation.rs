//! `anabranch eval`: refused arguments. The verdicts are tested in the laboratory, where a part of the suite can be run.

use crate::support::{anabranch, assert_exit, folder, stderr, stdout};

#[test]
fn laws_that_there_are_not_are_refused_with_the_nearest_one() {
    let folder = folder("eval-laws");
    let cases: [(&[&str], &str); 4] = [
        (&["eval", "--cc", "cubik"], "there is no congestion law `cubik`; did you mean `cubic`?"),
        (
            &["eval", "--cc", "reno", "--against", "cubic,vegsa"],
            "there is no congestion law `vegsa`; did you mean `vegas`?",
        ),
        (&["eval", "--cc", "reno", "--seed", "1"], "`--seed` and `--family` need `--field` or `--attack`"),
        (&["eval", "--cc", "reno", "--attack", "--by", "used"], "there is no aim `used`; the aims are use, delay"),
    ];
    for (args, message) in cases {
        let output = anabranch(&folder, args);
        assert_exit(&output, 2);
        assert_eq!(stdout(&output), "");
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
        assert!(!folder.join("evaluation").exists(), "nothing is written");
    }
    assert_exit(&anabranch(&folder, &["eval"]), 2);
}

/// The file has the figure, runs, and names the command that finds the same.
#[test]
fn attack_writes_scenario_that_runs() {
    let folder = folder("eval-attack");
    let arguments =
        ["eval", "--cc", "reno", "--attack", "--by", "use", "--family", "policer", "--steps", "2", "--seed", "4"];
    assert_exit(&anabranch(&folder, &arguments), 0);
    let text = std::fs::read_to_string(folder.join("attack/use.toml")).unwrap();
    assert!(text.starts_with("# used 0."), "{text}");
    let command = "# anabranch eval --attack --cc reno --family policer --by use --seed 4 --steps 2\n";
    assert!(text.contains(command), "{text}");
    assert_exit(&anabranch(&folder, &["sim", "run", "attack/use.toml"]), 0);
    assert_exit(&anabranch(&folder, &arguments), 0);
    assert_eq!(std::fs::read_to_string(folder.join("attack/use.toml")).unwrap(), text);
}
