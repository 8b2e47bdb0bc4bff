//! Commands that use a network, between processes.

mod tunnel;

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
    let here = folder("network-ticket");
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
    let here = folder("network-folder");
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
    let here = folder("network-end");
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
    let here = folder("network-killed");
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
    let here = folder("network-unreadable");
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
    let here = folder("network-checksum");
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
    let here = folder("network-links");
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
    let here = folder("network-folder-is-file");
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
    let here = folder("network-mistakes");
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
    let here = folder("network-keys");
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

#[test]
fn a_network_is_measured() {
    let here = folder("network-bench");
    let server = Server::start(&here, &["bench", "serve"]);
    for args in [&["--streams", "3"][..], &["--reverse"]] {
        let measured =
            document(&anabranch(&here, &[&["bench", &server.ticket, "--time", "2", "--json"], args].concat()));
        assert!(measured["bits_per_second"].as_f64().unwrap() > 1e6, "{measured}");
        assert!(!measured["intervals"].as_array().unwrap().is_empty(), "{measured}");
    }
    let jumbo = ["bench", &server.ticket, "--time", "1", "--packet-max", "9000", "--json"];
    assert_exit(&anabranch(&here, &jumbo), 0);
    refused(&anabranch(&here, &["bench", &server.ticket, "--packet-max", "10000"]), 2, "1280..=9000");
    let several = ["bench", &server.ticket, "--time", "2", "--connections", "3", "--rate", "24Mbit/s", "--json"];
    let measured = document(&anabranch(&here, &several));
    let rates: Vec<_> =
        measured["connection_bits_per_second"].as_array().unwrap().iter().map(|rate| rate.as_f64().unwrap()).collect();
    // The connections share the rate limit evenly.
    assert!(rates.len() == 3 && rates.iter().all(|rate| (4e6..9e6).contains(rate)), "{measured}");
    let sum = rates.iter().sum::<f64>();
    assert!((sum - measured["bits_per_second"].as_f64().unwrap()).abs() < 1.0, "{measured}");
    assert_eq!(measured["paths"].as_array().unwrap().len(), 3, "{measured}");
    let measured = anabranch(&here, &["bench", &server.ticket, "--time", "1"]);
    assert_exit(&measured, 0);
    assert!(stdout(&measured).contains("RTT p99"), "{}", stdout(&measured));
    assert!(stdout(&measured).contains("\nlimited by: "), "{}", stdout(&measured));
}

/// The commands of docs/commands.md. The names are those of iperf3's report of UDP.
#[test]
fn datagrams_and_round_trips_of_a_network_are_measured() {
    let here = folder("network-bench-datagrams");
    let server = Server::start(&here, &["bench", "serve"]);
    let run = |begin: &str, options: &[&str]| {
        let words = documented(begin).into_iter().map(|word| word.replace("ab1...", &server.ticket));
        let words: Vec<String> = words.chain(options.iter().map(|&word| word.to_owned())).collect();
        anabranch(&here, &words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let measured = document(&run("anabranch bench --datagrams", &["--time", "2", "--bidir", "--json"]));
    for way in ["up", "down"] {
        let way = &measured["datagrams"][way];
        let number = |name: &str| way[name].as_f64().unwrap_or_else(|| panic!("{name}: {way}"));
        // 160 bytes at 64 kbit/s are 50 a second. A busy machine makes up for a tenth of a second, and may drop what waits for a quarter.
        let (packets, lost, unsent) = (number("packets"), number("lost_packets"), number("unsent_packets"));
        assert!((60.0..=101.0).contains(&(packets + unsent)) && lost + unsent <= 15.0, "{way}");
        assert!((number("lost_percent") - 100.0 * lost / packets).abs() < 1e-9, "{way}");
        assert!((number("bytes") - 160.0 * (packets - lost)).abs() < 1e-9, "{way}");
        assert!((number("bits_per_second") - 4.0 * number("bytes")).abs() < 1e-6, "of two seconds: {way}");
        assert!((0.0..500.0).contains(&number("jitter_ms")), "{way}");
        assert!(number("delay_variation_ms_p50") <= number("delay_variation_ms_p99"), "{way}");
    }
    let shown = run("anabranch bench --datagrams", &["--time", "1"]);
    let text = stdout(&shown);
    assert!(text.contains("up: lost") && text.contains(" %)") && !text.contains("down: "), "{text}");
    let measured = document(&run("anabranch bench --ping-pong", &["--time", "1", "--streams", "3", "--json"]));
    let trips = &measured["round_trips"];
    assert!(trips["count"].as_f64().unwrap() > 3.0 && trips["size_bytes"] == 64, "{trips}");
    assert!(trips["ms_min"].as_f64().unwrap() <= trips["ms_p99"].as_f64().unwrap(), "{trips}");
    assert_eq!(measured["datagrams"], Value::Null);
    let shown = run("anabranch bench --ping-pong", &["--time", "1"]);
    let text = stdout(&shown);
    assert!(text.contains("round trip p99"), "{text}");
    let wrong: [(&[&str], &str); 6] = [
        (&["--datagrams", "--ping-pong"], "cannot be used with"),
        (&["--datagrams", "--connections", "2"], "cannot be used with"),
        (&["--ping-pong", "--rate", "1Mbit/s"], "cannot be used with"),
        (&["--size", "100"], "required arguments"),
        (&["--datagrams", "--size", "15"], "a datagram has 16 to 8900 bytes"),
        (&["--ping-pong", "--size", "0"], "--size <BYTES>"),
    ];
    for (options, says) in wrong {
        refused(&anabranch(&here, &[&["bench", &server.ticket], options].concat()), 2, says);
    }
    // More than a packet carries.
    let large = anabranch(&here, &["bench", &server.ticket, "--datagrams", "--size", "2000", "--time", "1"]);
    refused(&large, 1, "a datagram of 2000 bytes is too large");
}

/// Ctrl-C after one and a half seconds: the result so far is printed, and the part of the second interval is in it.
#[cfg(unix)]
#[test]
fn interrupted_measurement_prints_the_result_so_far() {
    let here = folder("network-bench-interrupted");
    let server = Server::start(&here, &["bench", "serve"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(["bench", &server.ticket, "--time", "60", "--rate", "8Mbit/s", "--jsonl"]).current_dir(&here);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let lines: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (end, intervals) = lines.split_last().unwrap();
    let (last, whole) = (intervals.last().unwrap()["seconds"].as_f64().unwrap(), end["seconds"].as_f64().unwrap());
    assert!(whole - last < 0.05 && whole > 1.0 && whole < 3.0, "the last interval ended at {last} s of {whole}");
    assert!(end["bits_per_second"].as_f64().unwrap() > 4e6, "{end}");
}

/// Both ends send at most 8 Mbit/s each, far less than loopback carries: so both are limited by the application for most of the time.
#[test]
fn a_network_is_measured_both_ways_at_a_rate() {
    let here = folder("network-bench-bidir");
    let server = Server::start(&here, &["bench", "serve"]);
    let measured =
        anabranch(&here, &["bench", &server.ticket, "--time", "3", "--bidir", "--rate", "8Mbit/s", "--jsonl"]);
    assert_exit(&measured, 0);
    let lines: Vec<Value> = stdout(&measured).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (end, intervals) = lines.split_last().unwrap();
    assert!(intervals.len() >= 2 && intervals.iter().all(|line| line["event"] == "interval"), "{lines:?}");
    // The last interval is the rest of a second: the intervals cover the whole time.
    let (last, whole) = (intervals.last().unwrap()["seconds"].as_f64().unwrap(), end["seconds"].as_f64().unwrap());
    assert!(whole - last < 0.05, "the last interval ended at {last} s of {whole}");
    assert_eq!((&end["event"], &end["direction"]), (&"end".into(), &"both".into()));
    for direction in ["bytes_sent", "bytes_received"] {
        let bytes = end[direction].as_f64().unwrap();
        // 3 MB in three seconds, headers, and a piece at the end.
        assert!((1e6..3.3e6).contains(&bytes), "{direction}: {end}");
    }
    assert!(end["limits"]["application"].as_f64().unwrap() > 0.5, "{end}");
    assert_eq!(intervals[0]["limited_by"], "application", "{end}");
    let total: f64 = end["limits"].as_object().unwrap().values().map(|share| share.as_f64().unwrap()).sum();
    assert!((total - 1.0).abs() < 1e-9, "{end}");
    refused(&anabranch(&here, &["bench", &server.ticket, "--rate", "1bit/s"]), 2, "below 8kbit/s");
    refused(&anabranch(&here, &["bench", &server.ticket, "--bidir", "--reverse"]), 2, "cannot be used with");
}

/// A disk of 8 MB: both ends report that it is full, and when there is room the transfer goes on.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let here = folder("network-full");
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
    let here = folder("network-rate");
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
    let here = folder("network-rate-asked");
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
    let here = folder("network-qlog");
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
    let here = folder("network-told");
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
    let here = folder("network-qlog-full");
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

/// A measurement is watched by its process id, in a list of two, and as the only one after the other was killed.
#[cfg(unix)]
#[test]
fn running_measurement_can_be_watched() {
    use std::os::unix::fs::PermissionsExt as _;
    let here = folder("network-watch");
    // Names of sockets must be short.
    let runtime = std::env::temp_dir().join(format!("ab-watch-{}", std::process::id()));
    _ = fs::remove_dir_all(&runtime);
    fs::create_dir(&runtime).unwrap();
    let command = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.args(args).current_dir(&here).env("XDG_RUNTIME_DIR", &runtime);
        command
    };
    let watched = |args: &[&str]| command(&[&["watch", "--once"], args].concat()).output().unwrap();
    refused(&watched(&[]), 1, "no command that could be watched");
    refused(&watched(&["1"]), 1, "process 1 cannot be watched: ");
    let serve = command(&["bench", "serve", "--listen", "127.0.0.1:0", "--json"]).stdout(Stdio::piped()).spawn();
    let mut serve = serve.unwrap();
    let lines = BufReader::new(serve.stdout.take().unwrap());
    let mut serve = Server { child: serve, lines, ticket: String::new() };
    let ticket = serve.line()["ticket"].as_str().unwrap().to_owned();
    let args = ["bench", &ticket, "--time", "120", "--rate", "8Mbit/s", "--jsonl"];
    let mut child = command(&args).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    let mut bench = Server { child, lines, ticket: String::new() };
    bench.line();
    let (serving, measuring) = (serve.child.id().to_string(), bench.child.id().to_string());
    let socket = runtime.join(format!("anabranch-{measuring}.sock"));
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let seen = watched(&[&measuring]);
    assert_exit(&seen, 0);
    for expected in ["anabranch bench (process", "path 0: ", "it/s  RTT ", "nothing to send", "window "] {
        assert!(stdout(&seen).contains(expected), "{expected} in {}", stdout(&seen));
    }
    let listed = watched(&[]);
    assert_exit(&listed, 0);
    for expected in
        [format!("anabranch watch {serving}    bench serve"), format!("anabranch watch {measuring}    bench")]
    {
        assert!(stdout(&listed).contains(&expected), "{expected} in {}", stdout(&listed));
    }
    drop(bench);
    assert!(socket.exists(), "it was killed");
    let alone = watched(&[]);
    assert_exit(&alone, 0);
    assert!(stdout(&alone).contains(&format!("anabranch bench serve (process {serving})")), "{}", stdout(&alone));
    assert!(!socket.exists(), "nobody was behind it");
    drop(serve);
    fs::remove_dir_all(&runtime).unwrap();
}

/// A socket behind which nobody takes connections, as of a stopped command: with room in its queue of connections, and without.
#[cfg(unix)]
#[test]
fn silent_socket_ends_watch_within_seconds() {
    use std::os::unix::net::{UnixListener, UnixStream};
    let here = folder("network-watch-silent");
    let runtime = std::env::temp_dir().join(format!("ab-silent-{}", std::process::id()));
    _ = fs::remove_dir_all(&runtime);
    fs::create_dir(&runtime).unwrap();
    let socket = runtime.join("anabranch-77.sock");
    let _silent = UnixListener::bind(&socket).unwrap();
    let watch = |args: &[&str], reason: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.arg("watch").args(args).current_dir(&here).env("XDG_RUNTIME_DIR", &runtime);
        let begin = Instant::now();
        refused(&command.output().unwrap(), 1, reason);
        assert!(begin.elapsed().as_secs() < 9, "{args:?}: {:?}", begin.elapsed());
    };
    watch(&["77"], "the command shows nothing");
    let waiting: Vec<_> = {
        let (sender, receiver) = std::sync::mpsc::channel();
        let socket = socket.clone();
        std::thread::spawn(move || while sender.send(UnixStream::connect(&socket)).is_ok() {});
        std::iter::from_fn(|| receiver.recv_timeout(Duration::from_millis(300)).ok()).collect()
    };
    assert!(waiting.len() > 10, "{}", waiting.len());
    watch(&["77", "--once"], "process 77 cannot be watched: it takes no connections");
    watch(&[], "process 77 cannot be watched: it takes no connections");
    fs::remove_dir_all(&runtime).unwrap();
}

/// Prometheus metrics, on loopback by default; a port in use is reported.
#[test]
fn a_server_tells_prometheus() {
    let folder = folder("network-metrics");
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(["bench", "serve", "--listen", "127.0.0.1:0", "--metrics", "0", "--json"]).current_dir(&folder);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let lines = BufReader::new(child.stdout.take().unwrap());
    let mut server = Server { child, lines, ticket: String::new() };
    server.line();
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    let address = line.trim_end().strip_prefix("metrics at http://").and_then(|rest| rest.strip_suffix("/metrics"));
    let address = address.unwrap_or_else(|| panic!("{line}"));
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let mut tcp = std::net::TcpStream::connect(address).unwrap();
    std::io::Write::write_all(&mut tcp, b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut tcp, &mut answer).unwrap();
    assert!(answer.contains("\nanabranch_connections 0\n"), "{answer}");
    let taken = anabranch(&folder, &["recv", "--metrics", address]);
    refused(&taken, 1, &format!("cannot serve metrics at {address}: "));
    refused(&anabranch(&folder, &["recv", "--metrics", "x"]), 2, "the port");
}

/// Sockets of another user's processes are not used, even if this user owns the file; they are neither listed nor removed.
#[cfg(target_os = "linux")]
#[test]
fn process_of_another_user_is_not_watched() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    use std::os::unix::process::CommandExt as _;
    const ANOTHER: u32 = 4711;
    let runtime = std::env::temp_dir().join(format!("ab-foreign-{}", std::process::id()));
    _ = fs::remove_dir_all(&runtime);
    fs::create_dir(&runtime).unwrap();
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o777)).unwrap();
    let command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.current_dir(&runtime).env("XDG_RUNTIME_DIR", &runtime);
        command
    };
    let serve = ["bench", "serve", "--listen", "127.0.0.1:0", "--json"];
    let Ok(mut child) = command().args(serve).uid(ANOTHER).stdout(Stdio::piped()).spawn() else {
        fs::remove_dir_all(&runtime).unwrap();
        return println!("not run: only root may act as another user");
    };
    let lines = BufReader::new(child.stdout.take().unwrap());
    let mut serve = Server { child, lines, ticket: String::new() };
    serve.line();
    let pid = serve.child.id().to_string();
    let socket = runtime.join(format!("anabranch-{pid}.sock"));
    while !socket.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let watched = |args: &[&str]| command().args(["watch", "--once"]).args(args).output().unwrap();
    let expected = format!("process {pid} cannot be watched: its socket is another user's (number {ANOTHER};");
    refused(&watched(&[&pid]), 1, &expected);
    refused(&watched(&[]), 1, "no command that could be watched");
    chown(&socket, Some(0), None).unwrap();
    let expected =
        format!("process {pid} cannot be watched: the process behind it is another user's (number {ANOTHER};");
    refused(&watched(&[&pid]), 1, &expected);
    refused(&watched(&[]), 1, "no command that could be watched");
    assert!(socket.exists());
    drop(serve);
    fs::remove_dir_all(&runtime).unwrap();
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
