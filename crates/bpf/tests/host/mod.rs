//! The C laws compiled for the host: a program that reads events and writes windows (`c/host.c`).

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;

use anabranch_bpf::{Event, Law, Settings};

/// The window after each event, as C has it.
pub(crate) fn windows(law: Law, settings: &Settings, events: impl Iterator<Item = Event>) -> Vec<u64> {
    let mut input = settings.to_bytes().to_vec();
    events.for_each(|event| input.extend(event.to_bytes()));
    let mut program = Command::new(program(law));
    let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    let (mut stdin, mut stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let writer = thread::spawn(move || stdin.write_all(&input));
    let mut output = vec![];
    stdout.read_to_end(&mut output).expect("the program writes");
    writer.join().expect("no panic").expect("the program reads all");
    assert!(child.wait().expect("the program ends").success());
    output.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes"))).collect()
}

/// The program of a law; compiled once in a run, by the C compiler that Rust links with.
fn program(law: Law) -> &'static Path {
    static ANABRANCH: OnceLock<PathBuf> = OnceLock::new();
    static OTHERS: OnceLock<PathBuf> = OnceLock::new();
    let (program, header) = match law {
        Law::Anabranch => (&ANABRANCH, "anabranch/law.h"),
        _ => (&OTHERS, "law.h"),
    };
    program.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c/host.c");
        let name = format!("host-{}-{}", header.replace('/', "-"), std::process::id());
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut compiler = Command::new("cc");
        compiler.args([
            "-std=c11",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fno-strict-aliasing",
            "-fsanitize=undefined",
            "-fno-sanitize-recover",
        ]);
        compiler.arg(format!("-DAB_LAW=\"{header}\""));
        let status = compiler.arg("-o").arg(&program).arg(&source).status().expect("there is a C compiler");
        assert!(status.success(), "{} does not compile with {header}", source.display());
        program
    })
}
