//! Both ends of a transfer are killed repeatedly. Data that has arrived is not sent again.

use std::path::Path;
use std::time::{Duration, Instant};

use super::program::Program;
use super::transfers::part_len;
use super::{Bench, SOON, Table, is_equal};

const BYTES: u64 = 1_000_000_000;
const KILLS: u32 = 20;

pub(super) fn run(bench: &Bench, table: &mut Table) -> Result<(), String> {
    let payload = bench.payload("killed", BYTES)?;
    let to = bench.folder("received")?;
    let key = bench.folder("keys")?.join("receiver");
    crate::links::output(&bench.anabranch, &["key", "new", &key.to_string_lossy()])?;
    let mut random = Random::new(table);
    let mut half_written = 0;
    for kill in 0..KILLS {
        let (mut receiver, mut sender) = begin(bench, &payload, &to, &key)?;
        // Each kill is at most a twenty-fifth of the bytes later, so that the last one is before the end; or after a time in which the transfer may not have begun.
        let more = random.draw(BYTES / 25);
        let until = Duration::from_millis(if random.draw(4) == 0 { random.draw(150) } else { 20_000 });
        let (before, since) = (part_len(&to), Instant::now());
        while part_len(&to) < before + more && since.elapsed() < until && !sender.has_ended() {
            std::thread::sleep(Duration::from_millis(1));
        }
        match kill % 3 {
            0 => sender.kill(),
            1 => receiver.kill(),
            _ => {}
        }
        std::thread::sleep(Duration::from_millis(random.draw(30)));
        sender.kill();
        receiver.kill();
        half_written += u32::from(to.join("killed").exists() && !is_equal(&payload, &to.join("killed"))?);
    }
    let there = part_len(&to);
    let (mut receiver, mut sender) = begin(bench, &payload, &to, &key)?;
    sender.succeed(Duration::from_secs(120))?;
    receiver.succeed(SOON)?;
    let told = sender.json(SOON)?;
    let kept = told["bytes_there"].as_u64().unwrap_or_default();
    let equal = is_equal(&payload, &to.join("killed"))?;
    table.row("content after 20 kills", "equal", if equal { "equal" } else { "different" }, equal);
    table.row(
        "a half-written file under its name",
        "never",
        &format!("{half_written} of {KILLS} times"),
        half_written == 0,
    );
    let measured = format!("{kept} of {there} B that were there before the last time");
    // The chunk that was being written is sent again.
    table.row("not sent again", "all but 2 chunks of 1 MiB", &measured, there > 0 && kept + (2 << 20) >= there);
    Ok(())
}

fn begin(bench: &Bench, payload: &Path, to: &Path, key: &Path) -> Result<(Program, Program), String> {
    let (file, folder, key) = (payload.to_string_lossy(), to.to_string_lossy(), key.to_string_lossy());
    let recv = ["recv", "--to", &folder, "--json", "--once", "--key", &key, "--listen", "127.0.0.1:0"];
    let mut receiver = Program::start(&bench.anabranch, &recv)?;
    let ticket = receiver.json(SOON)?["ticket"].as_str().ok_or("no ticket")?.to_owned();
    let sender = Program::start(&bench.anabranch, &["send", &file, &ticket, "--json"])?;
    Ok((receiver, sender))
}

/// splitmix64, from a seed that is printed.
struct Random(u64);

impl Random {
    fn new(table: &mut Table) -> Self {
        let seed = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| u64::from(since.subsec_nanos()));
        table.note("seed", &seed.to_string());
        Self(seed)
    }

    /// A number below `most`.
    fn draw(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % most.max(1)
    }
}
