//! What `send` takes besides files, and who receives it: streams, texts, several receivers, what lies at the receiver.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::{Server, documented, files, noise, refused};
use crate::support::{anabranch, assert_exit, document, folder, stderr, stdout};

/// A command of which the standard output is read, and the ticket that it has printed to standard error.
fn begin(here: &Path, args: &[&str]) -> (Child, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(args).current_dir(here).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.find_map(|line| line.unwrap().trim().strip_prefix("anabranch send PATH... ").map(str::to_owned));
    // What else it says must not stop it.
    std::thread::spawn(move || lines.for_each(drop));
    (child, line.unwrap())
}

/// Runs the command with these bytes as its standard input.
fn fed(here: &Path, args: &[&str], bytes: &[u8]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(args).current_dir(here).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let feeding = std::thread::spawn(move || _ = stdin.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    feeding.join().unwrap();
    output
}

#[test]
fn standard_input_reaches_file_and_standard_output() {
    let here = folder("online-stdin");
    let bytes = noise(1, 2_345_678);
    let page = fs::read_to_string(crate::support::repository().join("docs/commands.md")).unwrap();
    assert!(page.contains("tar c pictures | anabranch send - ab1... "));
    let server = Server::start(&here, &["recv", "--to", "there", "--once"]);
    let sent = document(&fed(&here, &["send", "-", &server.ticket, "--json", "--name", "pictures.tar"], &bytes));
    assert_eq!((&sent["files"], &sent["bytes"]), (&1.into(), &2_345_678.into()));
    server.ends_with(0);
    assert!(fs::read(here.join("there/pictures.tar")).unwrap() == bytes);
    let words = documented("anabranch recv --stdout");
    assert_eq!(words, ["recv", "--stdout", ">", "pictures.tar"]);
    let (mut receiver, ticket) = begin(&here, &["recv", "--stdout", "--listen", "127.0.0.1:0"]);
    let mut out = receiver.stdout.take().unwrap();
    let reading = std::thread::spawn(move || {
        let mut read = vec![];
        out.read_to_end(&mut read).unwrap();
        read
    });
    assert_exit(&fed(&here, &["send", "-", &ticket], &bytes), 0);
    assert!(reading.join().unwrap() == bytes);
    assert_eq!(receiver.wait().unwrap().code(), Some(0));
}

/// A reader that has seen enough, such as `head`, ends both ends at once.
#[test]
fn standard_output_that_is_closed_ends_both_ends() {
    let here = folder("online-closed");
    let (mut receiver, ticket) = begin(&here, &["recv", "--stdout", "--listen", "127.0.0.1:0"]);
    drop(receiver.stdout.take());
    let sent = fed(&here, &["send", "-", &ticket], &vec![7; 50_000_000]);
    refused(&sent, 1, "cannot be written to the standard output");
    assert_eq!(receiver.wait().unwrap().code(), Some(1));
}

#[test]
fn text_is_shown_and_its_control_characters_are_not_obeyed() {
    let here = folder("online-text");
    let mut receiver = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    receiver.args(["recv", "--to", "there", "--once", "--listen", "127.0.0.1:0"]).current_dir(&here);
    let mut receiver = receiver.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(receiver.stdout.take().unwrap()).lines().map(Result::unwrap);
    let ticket = lines.find_map(|line| line.trim().strip_prefix("anabranch send PATH... ").map(str::to_owned)).unwrap();
    let sent = anabranch(&here, &["send", "--text", "to be\n\u{1b}[2Jor not\u{202e}", &ticket]);
    assert_exit(&sent, 0);
    assert!(stdout(&sent).starts_with("sent a text in "), "{}", stdout(&sent));
    let said: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    assert!(said[0].starts_with("received a text in "), "{said:?}");
    assert_eq!(said[1..], ["to be", "\\u{1b}[2Jor not\\u{202e}"]);
    assert!(receiver.wait().unwrap().success());
    let mut server = Server::start(&here, &["recv", "--to", "there", "--once"]);
    let sent = document(&anabranch(&here, &["send", "--text", "hello", &server.ticket, "--json"]));
    assert_eq!(sent["texts_sent"], 1);
    assert_eq!(server.line()["texts"], Value::from(vec!["hello"]));
    let long = "x".repeat(65_537);
    refused(&anabranch(&here, &["send", "--text", &long, &server.ticket]), 2, "a text has at most 65536 bytes");
}

/// Three receivers at once; a fourth one is not there.
#[test]
fn several_tickets_reach_several_receivers() {
    let here = folder("online-several");
    fs::create_dir(here.join("f")).unwrap();
    fs::write(here.join("f/x"), noise(2, 3_000_000)).unwrap();
    let servers = ["one", "two", "three"].map(|to| Server::start(&here, &["recv", "--to", to, "--once"]));
    let gone = Server::start(&here, &["recv"]).ticket.clone();
    let lines = format!("{}\n{}\n", servers[1].ticket, gone);
    fs::write(here.join("tickets"), lines).unwrap();
    let tickets = [&servers[0].ticket, "@tickets", &servers[2].ticket];
    let sent = anabranch(&here, &[&["send", "f"][..], &tickets, &["--json"]].concat());
    assert_exit(&sent, 1);
    let lines: Vec<Value> = stdout(&sent).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |event: &str| lines.iter().filter(|line| line["event"] == event).count();
    assert_eq!((lines.len(), count("sent"), count("broken")), (4, 3, 1), "{lines:?}");
    assert!(lines.iter().all(|line| line["to"].as_str().is_some_and(|key| key.len() == 58)), "{lines:?}");
    assert!(stderr(&sent).contains("not everything has arrived at every receiver"), "{}", stderr(&sent));
    for (server, to) in servers.into_iter().zip(["one", "two", "three"]) {
        server.ends_with(0);
        assert!(files(&here.join("f")) == files(&here.join(to).join("f")), "{to}");
    }
}

/// The sender waits, and everyone who comes gets it, also at the same time.
#[test]
fn sender_that_waits_serves_all_who_come() {
    let here = folder("online-wait");
    fs::create_dir(here.join("pictures")).unwrap();
    fs::write(here.join("pictures/x"), noise(3, 5_000_000)).unwrap();
    let words = documented("anabranch send --wait");
    assert_eq!(words, ["send", "--wait", "pictures"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut server = Server::start(&here, &[&words[..], &["--receivers", "3"]].concat());
    let receivers: Vec<_> = ["one", "two", "three"]
        .map(|to| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
            command.args(["recv", &server.ticket, "--to", to, "--json"]).current_dir(&here).stdout(Stdio::piped());
            command.spawn().unwrap()
        })
        .into_iter()
        .map(|receiver| receiver.wait_with_output().unwrap())
        .collect();
    for (receiver, to) in receivers.iter().zip(["one", "two", "three"]) {
        assert_eq!(document(receiver)["event"], "received");
        assert!(files(&here.join("pictures")) == files(&here.join(to).join("pictures")), "{to}");
        assert_eq!(server.line()["event"], "sent");
    }
    let ticket = server.ticket.clone();
    server.ends_with(0);
    refused(&anabranch(&here, &["recv", &ticket]), 1, "nobody with the ticket's key answers");
    // Only this key is admitted.
    let key = anabranch(&here, &["key", "new", "mine"]);
    let server = Server::start(&here, &["send", "--wait", "pictures", "--allow", stdout(&key).trim()]);
    refused(&anabranch(&here, &["recv", &server.ticket, "--to", "four"]), 1, "nobody with the ticket's key answers");
    document(&anabranch(&here, &["recv", &server.ticket, "--to", "four", "--key", "mine", "--json"]));
}

/// Each of two codes is typed once.
#[test]
fn several_codes_reach_several_receivers() {
    let here = folder("online-codes");
    fs::write(here.join("x"), noise(4, 100_000)).unwrap();
    let relay = Server::start(&here, &["relay", "serve"]);
    let mut sender = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    sender.args(["send", "x", "--relay", &relay.ticket, "--receivers", "2", "--json"]).current_dir(&here);
    let mut sender = sender.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(sender.stdout.take().unwrap()).lines().map(|line| {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        line
    });
    let codes: Vec<String> = lines.by_ref().take(2).map(|line| line["code"].as_str().unwrap().to_owned()).collect();
    assert_ne!(codes[0], codes[1]);
    for (code, to) in codes.iter().zip(["one", "two"]) {
        let args = ["recv", code, "--relay", &relay.ticket, "--to", to, "--listen", "127.0.0.1:0", "--json"];
        document(&anabranch(&here, &args));
        assert!(fs::read(here.join(to).join("x")).unwrap() == noise(4, 100_000));
        assert_eq!(lines.next().unwrap()["event"], "sent");
    }
    assert!(sender.wait().unwrap().success());
}

#[test]
fn verification_names_what_differs_at_the_receiver() {
    let here = folder("online-verify");
    fs::create_dir(here.join("pictures")).unwrap();
    for name in ["a", "b"] {
        fs::write(here.join("pictures").join(name), noise(5, 50_000)).unwrap();
    }
    let server = Server::start(&here, &["recv", "--to", "there", "--overwrite"]);
    assert_exit(&anabranch(&here, &["send", "pictures", &server.ticket]), 0);
    let words = documented("anabranch send --verify");
    assert_eq!(words, ["send", "--verify", "pictures", "ab1..."]);
    let verified = anabranch(&here, &["send", "--verify", "pictures", &server.ticket]);
    assert_exit(&verified, 0);
    assert!(stdout(&verified).starts_with("verified: 2 files are there and equal; 100.0 kB"), "{}", stdout(&verified));
    let path = here.join("there/pictures/b");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, noise(6, 50_000)).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    let verified = anabranch(&here, &["send", "--verify", "pictures", &server.ticket]);
    refused(&verified, 1, "1 are missing or differ:\n  pictures/b: its content differs there");
    assert!(fs::read(&path).unwrap() == noise(6, 50_000), "nothing is written");
}

#[test]
#[cfg(unix)]
fn archive_keeps_names_of_one_file() {
    use std::os::unix::fs::MetadataExt as _;
    let here = folder("online-archive");
    fs::create_dir(here.join("home")).unwrap();
    fs::write(here.join("home/a"), "content").unwrap();
    fs::hard_link(here.join("home/a"), here.join("home/b")).unwrap();
    std::os::unix::fs::symlink("a", here.join("home/link")).unwrap();
    let words = documented("anabranch send --archive");
    assert_eq!(words, ["send", "--archive", "home", "ab1..."]);
    let server = Server::start(&here, &["recv", "--to", "there", "--once"]);
    let sent = document(&anabranch(&here, &["send", "--archive", "home", &server.ticket, "--json"]));
    assert_eq!((&sent["files"], &sent["links"]), (&1.into(), &2.into()), "{sent}");
    server.ends_with(0);
    let inode = |name: &str| fs::metadata(here.join("there/home").join(name)).unwrap().ino();
    assert!(inode("a") == inode("b") && inode("a") == inode("link"));
}

/// A file that is named like a ticket is a file, and a text is a text, whatever it says. The same ticket twice is one receiver.
#[test]
fn ticket_in_place_of_file_or_text_is_none() {
    let here = folder("online-named");
    let other = Server::start(&here, &["recv", "--to", "other"]).ticket.clone();
    let mut server = Server::start(&here, &["recv", "--to", "there"]);
    fs::write(here.join("aaa"), "a").unwrap();
    fs::write(here.join(&other), "b").unwrap();
    let sent = document(&anabranch(&here, &["send", "aaa", &other, &server.ticket, &server.ticket, "--json"]));
    assert_eq!(sent["files"], 2, "{sent}");
    assert_eq!(server.line()["files"], 2);
    fs::remove_file(here.join(&other)).unwrap();
    document(&anabranch(&here, &["send", "--text", &other, &server.ticket, "--json"]));
    assert_eq!(server.line()["texts"], Value::from(vec![other]));
}

/// A transfer that lacks something has ended, too.
#[test]
#[cfg(unix)]
fn sender_that_waits_ends_with_what_it_could_not_send() {
    let here = folder("online-wait-link");
    fs::create_dir(here.join("f")).unwrap();
    fs::write(here.join("f/a"), "a").unwrap();
    std::os::unix::fs::symlink("a", here.join("f/l")).unwrap();
    let mut server = Server::start(&here, &["send", "--wait", "f", "--receivers", "1"]);
    assert_exit(&anabranch(&here, &["recv", &server.ticket, "--to", "there"]), 0);
    assert_eq!(server.line()["failed"][0]["name"], "f/l");
    server.ends_with(1);
}

/// Ctrl-C at the receiver tells the sender at once, and removes what came of a stream.
#[test]
#[cfg(unix)]
fn interrupted_receiver_says_goodbye() {
    let here = folder("online-interrupted");
    let mut server = Server::start(&here, &["recv", "--to", "there"]);
    let mut sender = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    sender.args(["send", "-", &server.ticket]).current_dir(&here).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut sender = sender.spawn().unwrap();
    let mut stdin = sender.stdin.take().unwrap();
    stdin.write_all(&[7; 100_000]).unwrap();
    let part = || fs::read_dir(here.join("there/.anabranch")).into_iter().flatten().count();
    let begin = std::time::Instant::now();
    while part() == 0 {
        assert!(begin.elapsed().as_secs() < 30, "it comes");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(Command::new("kill").args(["-INT", &server.child.id().to_string()]).status().unwrap().success());
    assert_eq!(server.child.wait().unwrap().code(), Some(130));
    // The sender reads on until its input ends, or the next write fails.
    drop(stdin);
    assert_eq!(sender.wait().unwrap().code(), Some(1));
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
    assert_eq!(part(), 0);
}

#[test]
fn mistakes_about_items_and_receivers_are_said() {
    let here = folder("online-items");
    fs::write(here.join("f"), "f").unwrap();
    let tickets = [(); 2].map(|()| Server::start(&here, &["recv"]).ticket.clone());
    let [one, two] = &tickets;
    refused(&fed(&here, &["send", "-", "-"], b""), 2, "so it cannot have the ticket");
    refused(&fed(&here, &["send", "-", one, two], b""), 2, "the standard input can be read once");
    refused(&fed(&here, &["send", "--verify", "-", one], b""), 2, "the standard input can be read once");
    refused(&fed(&here, &["send", "--name", "a/b", "-", one], b""), 2, "a/b: the name has a character");
    refused(&anabranch(&here, &["send", "f", one, "--receivers", "2"]), 2, "there is a ticket for each");
    refused(&anabranch(&here, &["send", "--wait", "f", one]), 2, "so there is no ticket of one among the words");
    refused(&anabranch(&here, &["send", "f", "@f"]), 2, "f: a ticket begins with `ab1`");
    refused(&anabranch(&here, &["send", "f", "--listen", "127.0.0.1:0"]), 2, "--wait");
    refused(&anabranch(&here, &["recv", one, "--allow", &"a".repeat(58)]), 2, "");
    refused(&anabranch(&here, &["recv", one, "--qr"]), 2, "with a ticket this end comes to the sender");
    refused(&anabranch(&here, &["recv", "--stdout", "--to", "x"]), 2, "cannot be used with");
    refused(&anabranch(&here, &["recv", "7-guitar"]), 2, "CODE|TICKET");
}
