//! Plays scripts in packetdrill's syntax against our TCP, without a kernel: `scripts/` has some of our own, written from the RFCs.

mod calls;
mod packet;
mod player;
mod script;
mod text;

use std::fs;
use std::path::Path;

use crate::player::{Push, Verdict, play};

#[track_caller]
fn holds(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drill/scripts").join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    match play(&text, "reno", Push::Judged) {
        Verdict::Holds { .. } => {}
        Verdict::Fails(wrong) | Verdict::Unplayable(wrong) => panic!("{name}, {wrong}"),
    }
}

macro_rules! scripts {
    ($($name:ident: $file:literal,)*) => {
        $(#[test]
        fn $name() {
            holds($file);
        })*

        /// Each script is played by a test.
        #[test]
        fn every_script_has_a_test() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drill/scripts");
            let mut names: Vec<_> = fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            let mut played = vec![$($file),*];
            played.sort_unstable();
            assert_eq!(names, played);
        }
    };
}

scripts! {
    server_answers_handshake_and_closes: "handshake-server.pkt",
    client_repeats_syn_and_is_closed: "handshake-client.pkt",
    both_ends_open_at_once: "handshake-simultaneous.pkt",
    reset_of_the_syn_refuses: "refused.pkt",
    peer_without_options_gets_none: "options.pkt",
    fast_open_is_not_answered: "fast-open-refused.pkt",
    sacked_segments_are_not_sent_again: "sack-sender.pkt",
    latest_block_is_reported_first: "sack-receiver.pkt",
    timeout_doubles_and_window_begins_anew: "rto.pkt",
    silent_tail_is_probed: "tlp.pkt",
    reordering_is_given_a_quarter_of_the_rtt: "rack.pkt",
    older_timestamp_is_dropped: "paws.pkt",
    blind_segments_are_challenged: "challenge-ack.pkt",
    shut_window_is_probed: "zero-window.pkt",
    segment_is_cut_at_the_edge_of_the_window: "window-edge.pkt",
    silent_peer_is_probed_and_given_up: "keep-alive.pkt",
    close_with_unread_data_resets: "close-unread.pkt",
    window_that_shrinks_ends_nothing: "window-shrinks.pkt",
    reset_counts_while_the_window_is_shut: "reset-shut-window.pkt",
}

/// The reason and the line of a script that does not hold.
fn verdict(script: &str) -> String {
    match play(script, "reno", Push::Judged) {
        Verdict::Holds { skipped } => format!("holds, {skipped} skipped"),
        Verdict::Fails(wrong) => format!("fails, {wrong}"),
        Verdict::Unplayable(wrong) => format!("not played, {wrong}"),
    }
}

/// The player itself: a difference in each part of a segment, and in each kind of time, is found.
#[test]
fn player_finds_each_difference() {
    let begin = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
        +0 < S 0:0(0) win 9000 <mss 1000>\n";
    let answer = "+0 > S. 0:0(0) ack 1 <mss 1460>\n";
    let open = format!(
        "{answer}+.1 < . 1:1(0) ack 1 win 9000\n+0 accept(3, ..., ...) = 4\n+0 < . 1:101(100) ack 1 win 9000\n"
    );
    for (rest, expected) in [
        (answer.to_owned(), "holds, 0 skipped"),
        ("+0 > S 0:0(0) <mss 1460>".to_owned(), "fails, line 5: flags differ"),
        ("+0 > S. 1:1(0) ack 1 <mss 1460>".to_owned(), "fails, line 5: numbers differ"),
        ("+0 > S. 0:0(0) ack 2 <mss 1460>".to_owned(), "fails, line 5: acknowledgements differ"),
        ("+0 > S. 0:0(0) ack 1 win 5 <mss 1460>".to_owned(), "fails, line 5: windows differ"),
        ("+0 > S. 0:0(0) ack 1 <mss 1000>".to_owned(), "fails, line 5: options differ"),
        ("+0 > S. 0:0(0) ack 1 <mss 1460,sackOK>".to_owned(), "fails, line 5: options differ"),
        ("+0 > [ect0] S. 0:0(0) ack 1 <mss 1460>".to_owned(), "fails, line 5: codepoints differ"),
        (
            "+.1 > S. 0:0(0) ack 1 <mss 1460>".to_owned(),
            "fails, line 5: `S. 0:0(0) ack 1 <mss 1460>` is sent at 0.000000 s",
        ),
        (
            format!("{answer}+.99 > S. 0:0(0) ack 1 <mss 1460>"),
            "fails, line 6: `S. 0:0(0) ack 1 <mss 1460>` is not sent",
        ),
        (format!("{answer}+.9~+1.1 > S. 0:0(0) ack 1 <mss 1460>"), "holds"),
        (format!("{answer}* > S. 0:0(0) ack 1 <...>"), "holds"),
        (format!("{answer}+0 accept(3, ..., ...) = 4"), "fails, line 6: the call would wait"),
        (format!("{answer}+0...0.2 accept(3, ..., ...) = 4\n+.2 < . 1:1(0) ack 1 win 9"), "holds"),
        (
            format!("{answer}+0...0.1 accept(3, ..., ...) = 4\n+.2 < . 1:1(0) ack 1 win 9"),
            "fails, line 6: the call is over at",
        ),
        (format!("{answer}+0...0.2 accept(3, ..., ...) = 4"), "fails, line 6: the call is never over"),
        (format!("{open}+0 ioctl(4, SIOCINQ, [100]) = 0\n+0 read(4, ..., 200) = 100"), "holds"),
        (format!("{open}+0 ioctl(4, SIOCINQ, [99]) = 0"), "fails, line 9: 100 bytes wait, not 99"),
        (format!("{open}+0 recvmsg(4, {{msg_iov(2)=[{{..., 30}}, {{..., 40}}]}}, 0) = 70"), "holds"),
        (
            format!("{open}+0 recvmsg(4, {{msg_iov(1)=[{{..., 30}}]}}, MSG_ERRQUEUE) = 30"),
            "not played, line 9: the call `recvmsg`",
        ),
        (
            format!(
                "{open}+0 recvmsg(4, {{msg_iov(1)=[{{..., 30}}], msg_control=[{{cmsg_type=TCP_CM_INQ, cmsg_data=71}}]}}, 0) = 30"
            ),
            "fails, line 9: 70 bytes wait, not 71",
        ),
        (
            format!("{open}+0 sendmsg(4, {{msg_iov(2)=[{{..., 3}}, {{..., 4}}]}}, 0) = 7\n+0 > P. 1:8(7) ack 101"),
            "holds",
        ),
        (format!("{open}+0 < U. 101:111(10) ack 1 win 9 urg 10\n+0 read(4, ..., 200) = 110"), "holds"),
        (format!("{answer}+0 %{{ assert True }}%\n+0 `true`"), "holds, 2 skipped"),
        (format!("{answer}+0 epoll_create(1) = 5"), "not played, line 6: the call `epoll_create`"),
        ("+0 < X 0:0(0)".to_owned(), "not played, line 5: flag X"),
        ("+0 < . 0:9(8) ack 1".to_owned(), "not played, line 5: 0:9 are not 8 bytes"),
        ("+0 < . 0:0(0) ack 99999999999".to_owned(), "not played, line 5: a number that fits"),
        ("+0 < . 0:0(0) <mss x>".to_owned(), "not played, line 5: option `mss x`"),
        ("+0 read(3, ..., 10 = 4".to_owned(), "not played, line 5: `)` is missing"),
        ("/* +0".to_owned(), "not played, line 5: the comment has no end"),
    ] {
        let verdict = verdict(&format!("{begin}{rest}"));
        assert!(verdict.starts_with(expected), "{rest}: {verdict}, not {expected}");
    }
}

/// Systems push at more places than the last of what was written; what we push must be as the script says.
#[test]
fn push_may_miss_if_it_is_not_judged() {
    let begin = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
        +0 < S 0:0(0) win 9000 <mss 1000>\n";
    for (script, is_free) in [("> SP. 0:0(0) ack 1 <mss 1460>", true), ("> S 0:0(0) <mss 1460>", false)] {
        let script = format!("{begin}+0 {script}");
        assert!(matches!(play(&script, "reno", Push::Judged), Verdict::Fails(_)));
        assert_eq!(matches!(play(&script, "reno", Push::MayMiss), Verdict::Holds { .. }), is_free);
    }
}

proptest::proptest! {
    /// A script is read or refused, whatever is in it.
    #[test]
    fn random_script_causes_no_panic(text in "[-+~*.:0-9a-zA-Z<>()`%{}/\\[\\],= \n]{0,120}", cut in 0usize..600) {
        let script = include_str!("scripts/sack-sender.pkt");
        let cut = (cut.min(script.len())..=script.len()).find(|&at| script.is_char_boundary(at)).unwrap_or(0);
        _ = play(&text, "reno", Push::Judged);
        _ = play(&format!("{}{text}{}", &script[..cut], &script[cut..]), "reno", Push::Judged);
    }
}
