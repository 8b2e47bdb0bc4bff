//! The load of the machine during a measurement: on a busy machine, times depend on the other load, too.

use std::fs;

/// The sampled load of the machine.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    /// Ticks of all processors so far: those stolen by the host of this virtual machine, and all.
    before: Option<(u64, u64)>,
    /// The last message.
    told: Option<String>,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self { before: ticks(&read("/proc/stat")), told: None }
    }

    /// The load average of the last minute, and the share of processor time stolen by the host since the last call or the start: `0.94, 12 %`. If the
    /// last call was just now, the same text again.
    pub(crate) fn load_and_stolen(&mut self) -> String {
        let now = ticks(&read("/proc/stat"));
        let passed = self.before.zip(now);
        let is_new = passed.is_none_or(|((_, before), (_, now))| now >= before + TICKS_LEAST);
        if let Some(told) = self.told.as_ref().filter(|_| !is_new) {
            return told.clone();
        }
        self.before = now;
        let load = read("/proc/loadavg").split_whitespace().next().unwrap_or("?").to_owned();
        let stolen = passed.and_then(|(before, now)| stolen(before, now));
        let told = stolen.map_or_else(|| load.clone(), |part| format!("{load}, {:.0} %", part * 100.0));
        self.told.insert(told).clone()
    }
}

/// The least number of ticks between two samples: half a second of two processors.
const TICKS_LEAST: u64 = 100;

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The stolen share between two samples, if time has passed.
fn stolen(before: (u64, u64), now: (u64, u64)) -> Option<f64> {
    let (stolen, all) = (now.0.checked_sub(before.0)?, now.1.checked_sub(before.1)?);
    (all > 0).then(|| stolen as f64 / all as f64)
}

/// Stolen and all ticks. The eighth number of the line of all processors is the stolen time; the first eight are the total, as guest time is in the
/// first two.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let numbers: Vec<u64> = line.split_whitespace().take(8).map(|number| number.parse().ok()).collect::<Option<_>>()?;
    Some((*numbers.get(7)?, numbers.iter().sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_told_as_a_part_of_all() {
        let before = ticks("cpu  100 0 50 800 10 0 0 40 7 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n").unwrap();
        let now = ticks("cpu  130 0 60 850 10 0 0 50 9 0\n").unwrap();
        assert_eq!((before, now), ((40, 1000), (50, 1100)));
        assert_eq!(stolen(before, now), Some(0.1));
        assert_eq!(stolen(now, now), None);
        assert_eq!(ticks("intr 1 2 3\n"), None);
    }
}
