//! The C laws compiled for the host: a program that reads events and writes windows (`c/host.c`).

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;

use anabranch_bpf::{Event, Settings};

/// The window after each event, as C has it.
pub(crate) fn windows(settings: &Settings, events: impl Iterator<Item = Event>) -> Vec<u64> {
    let mut input = settings.to_bytes().to_vec();
    events.for_each(|event| input.extend(event.to_bytes()));
    let mut program = Command::new(program());
    let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    let (mut stdin, mut stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let writer = thread::spawn(move || stdin.write_all(&input));
    let mut output = vec![];
    stdout.read_to_end(&mut output).expect("the program writes");
    writer.join().expect("no panic").expect("the program reads all");
    assert!(child.wait().expect("the program ends").success());
    output.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes"))).collect()
}

/// The program; compiled once in a run, by the C compiler that Rust links with.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c/host.c");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("host-{}", std::process::id()));
        let mut compiler = Command::new("cc");
        compiler.args([
            "-std=c11",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsanitize=undefined",
            "-fno-sanitize-recover",
        ]);
        let status = compiler.arg("-o").arg(&program).arg(&source).status().expect("there is a C compiler");
        assert!(status.success(), "{} does not compile", source.display());
        program
    })
}
