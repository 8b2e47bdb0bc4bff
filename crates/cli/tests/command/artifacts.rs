//! Artifacts.

use std::fs;

use crate::support::{anabranch, folder, random_experiment, stderr, stdout};

#[test]
fn an_artifact_can_be_checked() {
    let folder = folder("an_artifact_can_be_checked");
    fs::create_dir_all(folder.join("experiments/test-2000")).unwrap();
    fs::write(folder.join("experiments/test-2000/table1.toml"), random_experiment()).unwrap();
    let packed = anabranch(&folder, &["artifact", "pack", "a.zip", "--seeds", "2"]);
    assert_eq!(packed.status.code(), Some(0), "{}", stderr(&packed));
    let verified = anabranch(&folder, &["artifact", "verify", "a.zip"]);
    assert_eq!(verified.status.code(), Some(0), "{}", stderr(&verified));
    assert!(stdout(&verified).contains("every file comes out again, byte by byte"), "{}", stdout(&verified));
}

#[test]
fn file_that_is_no_artifact_is_refused() {
    let folder = folder("file_that_is_no_artifact_is_refused");
    fs::write(folder.join("a.zip"), "no archive").unwrap();
    for (file, message) in [("a.zip", "not a ZIP file"), ("missing.zip", "No such file")] {
        let output = anabranch(&folder, &["artifact", "verify", file]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
}
