//! `anabranch eval`: refused arguments. The verdicts are tested in the laboratory, where a part of the suite can be run.

use crate::support::{anabranch, assert_exit, folder, stderr, stdout};

#[test]
fn laws_that_there_are_not_are_refused_with_the_nearest_one() {
    let folder = folder("eval-laws");
    let cases: [(&[&str], &str); 6] = [
        (&["eval", "--cc", "cubik"], "there is no congestion law `cubik`; did you mean `cubic`?"),
        (
            &["eval", "--cc", "reno", "--against", "cubic,vegsa"],
            "there is no congestion law `vegsa`; did you mean `vegas`?",
        ),
        (&["eval", "--cc", "reno", "--against", ""], "there is no congestion law ``"),
        (&["eval", "--cc", "fast,alhpa=5"], "alhpa"),
        (&["eval", "--cc", "reno", "--against", "cubic,slow_start=slow,bbr"], "slow"),
        (
            &["eval", "--cc", "reno", "--against", "slow_start=hystart,cubic"],
            "there is no congestion law `slow_start=hystart`",
        ),
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
