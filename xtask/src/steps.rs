//! The steps of the test command, and the time each took.

use std::fs;
use std::time::{Duration, Instant};

use crate::run;

/// The finished steps.
#[derive(Default)]
pub(crate) struct Steps {
    done: Vec<Step>,
}

struct Step {
    name: &'static str,
    wall: Duration,
    /// The time of all processors; `None` if the system does not report it.
    cpu: Option<Duration>,
}

impl Steps {
    /// Does the next step and remembers its cost, even if it fails.
    pub(crate) fn run<T>(&mut self, name: &'static str, work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let (begin, before) = (Instant::now(), processor_time());
        let result = work();
        let cpu = processor_time().zip(before).map(|(after, before)| after.saturating_sub(before));
        self.done.push(Step { name, wall: begin.elapsed(), cpu });
        result
    }

    /// Prints a line for each step, and their sum.
    pub(crate) fn print(&self) {
        let cpu = self.done.iter().map(|step| step.cpu).sum();
        let total = Step { name: "in all", wall: self.done.iter().map(|step| step.wall).sum(), cpu };
        run::say("");
        run::say(&format!("{:<26}{:>10}{:>14}", "step", "wall", "processors"));
        for Step { name, wall, cpu } in self.done.iter().chain([&total]) {
            let cpu = cpu.map_or("?".to_owned(), |cpu| format!("{:.1} s", cpu.as_secs_f64()));
            run::say(&format!("{name:<26}{:>10}{cpu:>14}", format!("{:.1} s", wall.as_secs_f64())));
        }
    }
}

/// The processor time of this process and of the finished processes that it started. Only on Linux.
fn processor_time() -> Option<Duration> {
    spent(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// The sum of `utime`, `stime`, `cutime` and `cstime`, fields 14 to 17 of proc(5)'s `stat`.
fn spent(stat: &str) -> Option<Duration> {
    // The second field is a name in parentheses, which may contain any character.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks =
        fields.split_whitespace().skip(11).take(4).map(str::parse::<u64>).collect::<Result<Vec<_>, _>>().ok()?;
    (ticks.len() == 4).then(|| Duration::from_millis(ticks.iter().sum::<u64>() * TICK_MS))
}

/// Linux reports hundredths of a second, for any internal clock.
const TICK_MS: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// 150, 50, 2000 and 300 hundredths of a second, of a program whose name contains parentheses and spaces.
    #[test]
    fn the_processors_time_is_that_of_the_children_too() {
        let stat = "4711 (a) S (b) R 1 4711 1 0 -1 4194304 9 0 0 0 150 50 2000 300 20 0 1 0 12345 678 90";
        assert_eq!(spent(stat), Some(Duration::from_secs(25)));
        assert_eq!(spent("4711 (cut) R 1 4711"), None);
    }
}
