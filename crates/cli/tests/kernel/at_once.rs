//! Commands that run at one time take turns.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::thread;
use std::time::{Duration, Instant};

use crate::killed::{LOCK, assert_nothing_is_left, wait_until_gone};
use crate::support::assert_exit;
use crate::{is_inside, kernel};

const FOR: Duration = Duration::from_secs(8);

/// An `unload` without names removes what others have left half made, and the folder; a `load` at that moment has both.
#[test]
fn laws_are_loaded_while_others_unload_all() {
    if !is_inside("at_once::laws_are_loaded_while_others_unload_all") {
        return;
    }
    let begin = Instant::now();
    let repeat = move |command: &'static str, law: Option<&'static str>| {
        let mut count = 0;
        while begin.elapsed() < FOR {
            if let Some(law) = law {
                wait_until_gone(law);
            }
            assert_exit(&kernel(command), 0);
            count += 1;
        }
        count
    };
    let loads: u32 = thread::scope(|scope| {
        let loaders = [("load fast", "fast"), ("load composite", "composite")]
            .map(|(command, law)| scope.spawn(move || repeat(command, Some(law))));
        for command in ["unload", "unload", "status"] {
            scope.spawn(move || repeat(command, None));
        }
        loaders.into_iter().map(|loader| loader.join().unwrap()).sum()
    });
    assert!(loads > 10, "{loads} loads in {FOR:?}");
    assert_exit(&kernel("unload"), 0);
    assert_nothing_is_left();
}

/// What any user may lock holds nobody up. A file that a killed command has left is taken; one that a command of root holds is waited for.
#[test]
fn only_root_holds_commands_up() {
    if !is_inside("at_once::only_root_holds_commands_up") {
        return;
    }
    let everybodys = File::open("/run").unwrap();
    everybodys.lock().unwrap();
    let left = File::create(LOCK).unwrap();
    fs::set_permissions(LOCK, Permissions::from_mode(0o600)).unwrap();
    assert_exit(&kernel("status"), 0);
    assert_nothing_is_left();
    drop(left);
    let held = File::create(LOCK).unwrap();
    held.lock().unwrap();
    let begin = Instant::now();
    thread::scope(|scope| {
        let status = scope.spawn(|| {
            assert_exit(&kernel("status"), 0);
            begin.elapsed()
        });
        thread::sleep(Duration::from_secs(2));
        drop(held);
        let waited = status.join().unwrap();
        assert!(waited >= Duration::from_secs(2), "{waited:?}");
    });
    assert_nothing_is_left();
}
