//! Commands that use a network, between processes: what all of them share, and transfers.

mod bench;
mod items;
mod tunnel;
mod watch;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{anabranch, assert_exit, document, folder, stderr, stdout};

/// A listening process, which is stopped at the end.
struct Server {
    child: Child,
    lines: BufReader<ChildStdout>,
    ticket: String,
}

impl Server {
    fn start(folder: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.args(args).args(["--listen", "127.0.0.1:0", "--json"]).current_dir(folder);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self { child, lines, ticket: String::new() };
        server.ticket = server.line()["ticket"].as_str().unwrap().to_owned();
        server
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    #[track_caller]
    fn ends_with(mut self, code: i32) {
        assert_eq!(self.child.wait().unwrap().code(), Some(code));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Bytes that differ from each other.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut open, mut files) = (vec![folder.to_owned()], vec![]);
    while let Some(path) = open.pop() {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                files.push((path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

/// Others read the arguments of a process, and a ticket admits whoever has it.
#[test]
#[cfg(target_os = "linux")]
fn ticket_not_among_arguments_of_running_command() {
    let here = folder("online-ticket");
    let server = Server::start(&here, &["bench", "serve"]);
    fs::write(here.join("ticket"), format!("{}\n", server.ticket)).unwrap();
    let places = ["-", "@ticket", "env:MINE", &server.ticket];
    for place in places {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.args(["bench", place, "--time", "1", "--json"]).current_dir(&here).env("MINE", &server.ticket);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), server.ticket.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let arguments = fs::read(format!("/proc/{}/cmdline", child.id())).unwrap();
        let arguments = String::from_utf8(arguments).unwrap();
        assert!(arguments.contains("bench\0") && arguments.contains("\0--json\0"), "{arguments:?}");
        assert!(!arguments.contains(&server.ticket), "{place}: {arguments:?}");
        document(&child.wait_with_output().unwrap());
    }
    for (place, why) in [
        ("@none", "none cannot be read: No such file"),
        ("env:NONE", "the variable NONE of the environment: environment variable not found"),
        ("@.", "it is no plain file"),
        ("-", "a ticket begins with `ab1`"),
    ] {
        refused(&anabranch(&here, &["bench", place]), 2, why);
    }
}

#[test]
fn a_folder_goes_from_one_shell_to_another() {
    let here = folder("online-folder");
    fs::create_dir_all(here.join("pictures/old")).unwrap();
    for (name, len) in [("a", 0), ("b", 1000), ("old/c", 3_000_000)] {
        fs::write(here.join("pictures").join(name), noise(1, len)).unwrap();
    }
    let mut server = Server::start(&here, &["recv", "--to", "there", "--once"]);
    let sent = document(&anabranch(&here, &["send", "pictures", &server.ticket, "--json"]));
    assert_eq!((&sent["files"], &sent["bytes"]), (&3.into(), &3_001_000.into()));
    let sent = Instant::now();
    let received = server.line();
    assert_eq!((&received["event"], &received["files"]), (&"received".into(), &3.into()));
    server.ends_with(0);
    assert!(sent.elapsed() < Duration::from_secs(10), "who waits for the idle timeout has waited for 30 s");
    assert!(files(&here.join("pictures")) == files(&here.join("there/pictures")));
}

/// The sender ends after the receiver's confirmation, and confirms it.
#[test]
fn both_ends_of_a_transfer_end_at_once() {
    let here = folder("online-end");
    fs::write(here.join("f"), noise(7, 1000)).unwrap();
    let server = Server::start(&here, &["recv", "--to", "there", "--once"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(["send", "f", &server.ticket, "--json"]).current_dir(&here).stdout(Stdio::piped());
    let mut sender = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(sender.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let said = Instant::now();
    assert!(sender.wait().unwrap().success());
    let sender_after = said.elapsed();
    server.ends_with(0);
    let both_after = said.elapsed();
    // The RTT is nearly zero. Without the confirmation the end that closes first would wait for two seconds, and the receiver as long.
    assert!(
        both_after < Duration::from_secs(1),
        "the sender ended {sender_after:?} after its line, both {both_after:?}"
    );
}

/// Both processes are killed with SIGKILL in the middle, one after the other, and started again.
#[test]
fn a_transfer_that_was_killed_goes_on() {
    const SIZE: usize = 60 << 20;
    let here = folder("online-killed");
    fs::write(here.join("big"), noise(2, SIZE)).unwrap();
    let arrived = || {
        let parts = fs::read_dir(here.join("there/.anabranch")).into_iter().flatten();
        let sizes = parts.map(|part| part.unwrap().metadata().map_or(0, |metadata| metadata.len()));
        sizes.max().unwrap_or(0)
    };
    let begin = |ticket: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.args(["send", "big", ticket]).current_dir(&here).stderr(Stdio::null()).stdout(Stdio::null());
        command.spawn().unwrap()
    };
    let wait_for = |bytes: u64| {
        let begin = Instant::now();
        while arrived() < bytes && begin.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    let server = Server::start(&here, &["recv", "--to", "there"]);
    let mut sender = begin(&server.ticket);
    wait_for(10 << 20);
    sender.kill().unwrap();
    sender.wait().unwrap();
    assert!(!here.join("there/big").exists());
    let before = arrived();
    let mut sender = begin(&server.ticket);
    wait_for(before + (10 << 20));
    // The receiver is killed, and the sender gets no message.
    drop(server);
    sender.kill().unwrap();
    sender.wait().unwrap();
    assert!(!here.join("there/big").exists());
    let server = Server::start(&here, &["recv", "--to", "there", "--once"]);
    let sent = document(&anabranch(&here, &["send", "big", &server.ticket, "--json"]));
    assert!(sent["bytes_there"].as_u64().unwrap() >= 15 << 20, "{sent}");
    server.ends_with(0);
    assert!(fs::read(here.join("there/big")).unwrap() == noise(2, SIZE));
    assert_eq!(fs::read_dir(here.join("there")).unwrap().count(), 1);
}

/// A file that cannot be read is named. Root can read every file, so for root it does not exist.
#[cfg(unix)]
#[test]
fn unreadable_file_is_named() {
    let here = folder("online-unreadable");
    fs::create_dir(here.join("f")).unwrap();
    fs::write(here.join("f/good"), "good").unwrap();
    std::os::unix::fs::symlink("nowhere", here.join("f/link")).unwrap();
    let server = Server::start(&here, &["recv", "--to", "there", "--once"]);
    let sent = anabranch(&here, &["send", "f", &server.ticket]);
    assert_exit(&sent, 1);
    assert!(stderr(&sent).contains("1 did not arrive"), "{}", stderr(&sent));
    assert!(stderr(&sent).contains("f/link: it is a symbolic link, which is not sent"), "{}", stderr(&sent));
    server.ends_with(0);
    assert_eq!(fs::read(here.join("there/f/good")).unwrap(), b"good");
}

/// A file of the same size and time counts as there, and the output says so; with `--checksum` its content counts.
#[test]
fn changed_file_of_same_size_and_time_needs_checksum() {
    let here = folder("online-checksum");
    let time = std::time::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let write = |name: &str, content: &str| {
        fs::write(here.join(name), content).unwrap();
        fs::File::options().write(true).open(here.join(name)).unwrap().set_modified(time).unwrap();
    };
    fs::create_dir(here.join("there")).unwrap();
    write("f", "new");
    write("there/f", "old");
    let server = Server::start(&here, &["recv", "--to", "there", "--overwrite"]);
    let sent = anabranch(&here, &["send", "f", &server.ticket]);
    assert_exit(&sent, 0);
    let said = "sent 0 files, 1 were there already (by size and time; --checksum compares content)";
    assert!(stdout(&sent).starts_with(said), "{}", stdout(&sent));
    let sent = document(&anabranch(&here, &["send", "f", &server.ticket, "--json", "--checksum"]));
    assert_eq!((&sent["files"], &sent["files_there"]), (&1.into(), &0.into()));
    let sent = anabranch(&here, &["send", "f", &server.ticket, "--checksum"]);
    assert!(stdout(&sent).starts_with("sent 0 files, 1 were there already (by content)"), "{}", stdout(&sent));
    assert_eq!(fs::read_to_string(here.join("there/f")).unwrap(), "new");
}

/// Links inside of the folder are sent with `--links`; names are escaped in messages.
#[cfg(unix)]
#[test]
fn links_are_sent_with_links_and_names_are_escaped() {
    let here = folder("online-links");
    fs::create_dir(here.join("f")).unwrap();
    fs::write(here.join("f/good"), "good").unwrap();
    std::os::unix::fs::symlink("good", here.join("f/link")).unwrap();
    fs::write(here.join("f/a\u{202e}b\nc"), "bad name").unwrap();
    let server = Server::start(&here, &["recv", "--to", "there", "--once"]);
    let sent = anabranch(&here, &["send", "f", &server.ticket, "--links"]);
    assert_exit(&sent, 1);
    assert!(stdout(&sent).starts_with("sent 1 files and 1 links; 4 B"), "{}", stdout(&sent));
    assert!(stderr(&sent).contains("f/a\\u{202e}b\\nc: the name has a character"), "{}", stderr(&sent));
    server.ends_with(0);
    assert_eq!(fs::read_link(here.join("there/f/link")).unwrap(), Path::new("good"));
}

/// The folder is a file, or not writable: both ends report it.
#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let here = folder("online-folder-is-file");
    fs::write(here.join("there"), "a file").unwrap();
    fs::write(here.join("f"), "f").unwrap();
    let server = Server::start(&here, &["recv", "--to", "there", "--once"]);
    let sent = anabranch(&here, &["send", "f", &server.ticket]);
    assert_exit(&sent, 1);
    assert!(stderr(&sent).contains("the receiver cannot go on: there: "), "{}", stderr(&sent));
    server.ends_with(1);
}

#[track_caller]
fn refused(output: &Output, code: i32, message: &str) {
    assert_exit(output, code);
    assert!(stderr(output).contains(message), "{}", stderr(output));
}

#[test]
fn mistakes_are_said() {
    let here = folder("online-mistakes");
    fs::write(here.join("f"), "f").unwrap();
    let ticket = Server::start(&here, &["recv"]).ticket.clone();
    refused(&anabranch(&here, &["send", "f", "hello"]), 2, "a ticket begins with `ab1`");
    let mut wrong = ticket.clone();
    wrong.replace_range(20..21, if &ticket[20..21] == "x" { "y" } else { "x" });
    refused(&anabranch(&here, &["send", "f", &wrong]), 2, "its checksum does not fit");
    refused(&anabranch(&here, &["send", "nothing", &ticket]), 2, "nothing: No such file");
    refused(&anabranch(&here, &["send", &ticket]), 2, "required arguments");
    refused(&anabranch(&here, &["bench"]), 2, "TICKET");
    refused(&anabranch(&here, &["recv", "--key", "nothing"]), 2, "nothing: No such file");
    refused(&anabranch(&here, &["recv", "--allow", "abc"]), 2, "a public key has 58 letters");
}

#[cfg(unix)]
#[test]
fn keys_are_made_shown_and_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let here = folder("online-keys");
    fs::write(here.join("f"), "f").unwrap();
    let made = anabranch(&here, &["key", "new", "mine"]);
    assert_exit(&made, 0);
    let name = stdout(&made).trim().to_owned();
    assert_eq!(stdout(&anabranch(&here, &["key", "show", "mine"])).trim(), name);
    refused(&anabranch(&here, &["key", "new", "mine"]), 2, "nothing is written over a key");
    // Only keys on the list are admitted.
    let server = Server::start(&here, &["recv", "--to", "there", "--allow", &name]);
    document(&anabranch(&here, &["send", "f", &server.ticket, "--key", "mine", "--json"]));
    refused(&anabranch(&here, &["send", "f", &server.ticket]), 1, "nobody with the ticket's key answers");
    fs::set_permissions(here.join("mine"), fs::Permissions::from_mode(0o644)).unwrap();
    refused(&anabranch(&here, &["key", "show", "mine"]), 2, "others may read it (mode 644)");
}

/// A disk of 8 MB: both ends report that it is full, and when there is room the transfer goes on.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let here = folder("online-full");
    fs::create_dir(here.join("there")).unwrap();
    fs::write(here.join("big"), noise(3, 20 << 20)).unwrap();
    let script =
        "mount -t tmpfs -o size=8m tmpfs there && exec \"$0\" recv --to there --once --json --listen 127.0.0.1:0";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_anabranch")]).current_dir(&here);
    let Ok(mut child) = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() else {
        return println!("not run: there is no unshare");
    };
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    if line.is_empty() {
        child.wait().unwrap();
        return println!("not run: only root may mount a small disk");
    }
    let told: Value = serde_json::from_str(&line).unwrap();
    let sent = anabranch(&here, &["send", "big", told["ticket"].as_str().unwrap()]);
    assert_exit(&sent, 1);
    assert!(stderr(&sent).contains("No space left on device"), "{}", stderr(&sent));
    let received = child.wait_with_output().unwrap();
    assert_exit(&received, 1);
    assert!(stderr(&received).contains("No space left on device"), "{}", stderr(&received));
}

/// 500,000 bytes at 4 Mbit/s take a second, and the packets' headers some more.
#[test]
fn sending_keeps_its_rate() {
    let here = folder("online-rate");
    fs::write(here.join("f"), noise(6, 500_000)).unwrap();
    let server = Server::start(&here, &["recv", "--to", "there", "--once"]);
    let sent = document(&anabranch(&here, &["send", "f", &server.ticket, "--json", "--rate", "4Mbit/s"]));
    let seconds = sent["wall_seconds"].as_f64().unwrap();
    assert!((1.0..20.0).contains(&seconds), "{seconds}");
    let ticket = server.ticket.clone();
    server.ends_with(0);
    refused(&anabranch(&here, &["send", "f", &ticket, "--rate", "9kbit/s"]), 2, "the rate is below 10kbit/s");
    refused(&anabranch(&here, &["tunnel", &ticket, "--socks", "0", "--rate", "fast"]), 2, "--rate <RATE>");
}

/// The arguments of a command in docs/commands.md.
fn documented(begin: &str) -> Vec<String> {
    let blocks = crate::pages::blocks("docs/commands.md", "console");
    let mut lines = blocks.iter().flat_map(|block| block.lines());
    let line = lines.find(|line| line.starts_with(begin)).unwrap_or_else(|| panic!("the page has `{begin}`"));
    let command = line.split(" #").next().unwrap().strip_prefix("anabranch ").unwrap();
    command.split_whitespace().map(str::to_owned).collect()
}

/// The rates of the page, 20 Mbit/s asked for by the receiving end and 10 Mbit/s of the sending one: 2,500,000 bytes take a second at the one, and two at the other.
#[test]
fn sender_keeps_the_rate_that_the_receiver_asks_for() {
    let here = folder("online-rate-asked");
    fs::write(here.join("pictures"), noise(6, 2_500_000)).unwrap();
    let recv = documented("anabranch recv --rate");
    assert_eq!(recv[1..], ["--rate", "20Mbit/s"]);
    let recv: Vec<&str> = recv.iter().map(String::as_str).collect();
    let send = documented("anabranch send pictures ab1... --rate");
    assert_eq!(send[3..], ["--rate", "10Mbit/s"]);
    for (to, options, least) in [("one", &send[..3], 1.0), ("two", &send[..], 2.0)] {
        let server = Server::start(&here, &[&recv[..], &["--to", to, "--once"]].concat());
        let send: Vec<_> = options.iter().map(|word| word.replace("ab1...", &server.ticket)).collect();
        let send: Vec<&str> = send.iter().map(String::as_str).chain(["--json"]).collect();
        let seconds = document(&anabranch(&here, &send))["wall_seconds"].as_f64().unwrap();
        assert!((least..least + 20.0).contains(&seconds), "{least}: {seconds}");
        server.ends_with(0);
    }
    refused(&anabranch(&here, &["recv", "--rate", "9kbit/s"]), 2, "the rate is below 10kbit/s");
}

/// Both ends write a log of a transfer. If the log cannot be written, nothing is sent.
#[test]
fn transfers_are_logged() {
    let here = folder("online-qlog");
    fs::write(here.join("f"), noise(5, 2_000_000)).unwrap();
    let server = Server::start(&here, &["recv", "--to", "there", "--once", "--qlog", "logs"]);
    refused(&anabranch(&here, &["send", "f", &server.ticket, "--qlog", "f"]), 1, "no logs can be written into f: ");
    document(&anabranch(&here, &["send", "f", &server.ticket, "--json", "--qlog", "logs"]));
    server.ends_with(0);
    for (vantage, direction) in [("client", "packet_sent"), ("server", "packet_received")] {
        let logs = files(&here.join("logs"));
        let mut logs = logs.iter().filter(|(name, _)| name.to_string_lossy().ends_with(&format!("-{vantage}.sqlog")));
        let text = String::from_utf8(logs.next().unwrap().1.clone()).unwrap();
        assert!(text.starts_with("\u{1e}{\"qlog_version\":\"0.3\""), "{}", &text[..100]);
        assert!(text.matches(direction).count() > 1000, "{vantage}: {} records", text.lines().count());
    }
}

/// Standard error reports the begin and end of a connection, with the peer and its address. Standard output is the same as without.
#[test]
fn connection_begin_and_end_are_logged() {
    let here = folder("online-told");
    fs::write(here.join("f"), b"hello").unwrap();
    let server = Server::start(&here, &["recv", "--to", "there", "--once"]);
    let ticket = server.ticket.clone();
    let sent = anabranch(&here, &["send", "f", &ticket, "--json", "--log", "info"]);
    document(&sent);
    server.ends_with(0);
    let told = stderr(&sent);
    let lines: Vec<_> = told.lines().filter(|line| line.contains("connection{side=\"client\" peer=")).collect();
    for word in ["calls local=", "established local=", ": over"] {
        assert!(lines.iter().any(|line| line.contains(" INFO ") && line.contains(word)), "no `{word}` in {told}");
    }
    refused(&anabranch(&here, &["send", "f", &ticket, "--log", "all"]), 2, "invalid value 'all' for '--log <LEVEL>'");
}

/// The disk for the log has 64 kB: one line reports it, and everything arrives.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full_of_logs_stops_no_transfer() {
    let here = folder("online-qlog-full");
    fs::create_dir(here.join("logs")).unwrap();
    fs::write(here.join("big"), noise(6, 20 << 20)).unwrap();
    let server = Server::start(&here, &["recv", "--to", "there", "--once"]);
    let script = "mount -t tmpfs -o size=64k tmpfs logs && exec \"$0\" send big \"$1\" --qlog logs --json";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_anabranch"), &server.ticket]).current_dir(&here);
    let Ok(sent) = command.output() else { return println!("not run: there is no unshare") };
    if sent.stdout.is_empty() {
        return println!("not run: only root may mount a small disk");
    }
    document(&sent);
    assert_eq!(stderr(&sent).matches("the log is not complete: logs/").count(), 1, "{}", stderr(&sent));
    assert!(stderr(&sent).contains("No space left on device"), "{}", stderr(&sent));
    server.ends_with(0);
    assert!(fs::read(here.join("there/big")).unwrap() == noise(6, 20 << 20));
}

#[test]
fn the_doctor_looks_at_sockets() {
    let looked = anabranch(&folder("doctor"), &["doctor", "--json"]);
    assert_exit(&looked, 0);
    let findings = document(&looked);
    let found = |what: &str| findings.as_array().unwrap().iter().find(|finding| finding["what"] == what).cloned();
    assert!(found("batches out (GSO)").is_some() && found("TUN devices").is_some(), "{findings}");
    let without =
        findings.as_array().unwrap().iter().filter(|finding| finding["found"] == "no" && finding["remedy"].is_null());
    assert_eq!(without.count(), 0, "what is missing has a remedy: {findings}");
}
