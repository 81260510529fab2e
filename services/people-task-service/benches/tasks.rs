//! The JSON of tasks.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use criterion::{BatchSize, Criterion};
use people_task_service::benchmarks::{StoredTask, page_to_json};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for (name, number) in [("a task", 1), ("a page of 20 tasks", 20)] {
        let page = vec![StoredTask::default(); number];
        criterion.bench_function(name, |bencher| {
            bencher.iter_batched(
                || page.clone(),
                |page| page_to_json(page).unwrap(),
                BatchSize::SmallInput,
            );
        });
    }
    criterion.final_summary();
}
