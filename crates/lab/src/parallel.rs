//! Independent jobs over a number of threads.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// The default number of parallel jobs: one for each core.
pub fn jobs_default() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Runs `job` on the numbers below `count` and returns the results, in order. `on_done` is called after each, on the calling
/// thread.
pub(crate) fn in_order<T: Send>(
    count: usize,
    jobs: NonZeroUsize,
    job: impl Fn(usize) -> T + Sync,
    mut on_done: impl FnMut(),
) -> Vec<T> {
    let mut results: Vec<Option<T>> = (0..count).map(|_| None).collect();
    as_done(count, jobs, job, |index, result| {
        results[index] = Some(result);
        on_done();
    });
    results.into_iter().map(|result| result.expect("each number is handed out once")).collect()
}

/// Runs `job` on the numbers below `count`, begun in their order, and passes each result to `on_done` when it is ready, on the calling
/// thread. If the system can start fewer threads than `jobs`, these do the work; if none, the calling thread does.
pub(crate) fn as_done<T: Send>(
    count: usize,
    jobs: NonZeroUsize,
    job: impl Fn(usize) -> T + Sync,
    mut on_done: impl FnMut(usize, T),
) {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        let mut threads = 0;
        for _ in 0..jobs.get().min(count) {
            let (sender, next, job) = (sender.clone(), &next, &job);
            let work = move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count || sender.send((index, job(index))).is_err() {
                        break;
                    }
                }
            };
            match thread::Builder::new().spawn_scoped(scope, work) {
                Ok(_) => threads += 1,
                // The system would refuse the next one, too.
                Err(_) => break,
            }
        }
        if threads == 0 {
            (0..count).for_each(|index| on_done(index, job(index)));
        }
        // The loop below ends when the last thread drops its sender.
        drop(sender);
        for (index, result) in receiver {
            on_done(index, result);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_their_order_on_any_number_of_threads() {
        for jobs in [1, 2, 7] {
            let mut done = 0;
            let results = in_order(100, NonZeroUsize::new(jobs).unwrap(), |index| index * index, || done += 1);
            assert!(results.iter().enumerate().all(|(index, &result)| result == index * index));
            assert_eq!(done, 100);
        }
        assert!(in_order(0, NonZeroUsize::MIN, |index| index, || ()).is_empty());
    }
}
