//! An ordered parallel map over threads, for tests that wait on many processes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Applies `job` to every item on as many threads as there are cores (`FIRN_JOBS` overrides); results in input order.
pub fn map<T: Sync, R: Send>(items: &[T], job: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..threads().min(items.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let result = job(item);
                    done.lock().expect("nothing panics while it holds the results").push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("nothing panics while it holds the results");
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

fn threads() -> usize {
    let asked = std::env::var("FIRN_JOBS").ok().and_then(|jobs| jobs.parse().ok());
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(2, usize::from)).max(1)
}
