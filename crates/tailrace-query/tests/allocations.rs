//! What a query that is run again allocates: so much for a batch, and nothing for a row. And what planning allocates: so much for a column.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::alloc::System;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tailrace_query::{Engine, Input, Options};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const COLUMNS: usize = 20;
const ROWS: usize = 20_000;
const CHUNK_BYTES: usize = 64 << 10;

fn write(path: &Path, lines: usize) {
    let mut text = String::new();
    for line in 0..lines {
        text.push('{');
        for column in 0..COLUMNS {
            let comma = if column == 0 { "" } else { "," };
            match column % 4 {
                0 => write!(text, "{comma}\"c{column}\":{line}"),
                1 => write!(text, "{comma}\"c{column}\":\"text number {line}\""),
                2 => write!(text, "{comma}\"c{column}\":{line}.5"),
                _ => write!(text, "{comma}\"c{column}\":{}", line % 2 == 0),
            }
            .unwrap();
        }
        text.push_str("}\n");
    }
    std::fs::write(path, text).unwrap();
}

/// Allocations of a run of this query that is not the first one.
async fn of_run(sql: &str, path: &Path, chunk_bytes: usize) -> usize {
    let options = Options {
        partitions: 1,
        chunk_bytes,
        ..Options::default()
    };
    let engine = Engine::new(options).unwrap();
    let plan = engine
        .plan(sql, &[Input::File(path.to_owned())])
        .await
        .unwrap();
    let mut least = usize::MAX;
    // The runtime allocates now and then, too.
    for _ in 0..3 {
        let again = plan.again().await.unwrap();
        let region = Region::new(ALLOCATOR);
        again.run(|_| true).await.unwrap();
        let change = region.change();
        least = least.min(change.allocations + change.reallocations);
    }
    least
}

/// Held by each test: the allocator counts what all threads do.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_run_allocates_for_batches_and_not_for_rows() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let [few, many] = ["few", "many"].map(|name| dir.path().join(name));
    write(&few, ROWS);
    write(&many, 4 * ROWS);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let columns = |count: usize| {
        let names: Vec<_> = (0..count).map(|column| format!("c{column}")).collect();
        names.join(", ")
    };
    let mut queries: Vec<_> = [5, 10, COLUMNS]
        .map(|count| format!("SELECT {} FROM logs", columns(count)))
        .into();
    queries.push("SELECT c0, c1 FROM logs WHERE c3 AND c1 LIKE '%7%'".to_owned());
    queries.push("SELECT c3, count(*), avg(c2), max(c0) FROM logs GROUP BY c3".to_owned());
    for sql in queries {
        runtime.block_on(async {
            // As many chunks with four times the rows, and four times as many chunks.
            let of_few = of_run(&sql, &few, CHUNK_BYTES).await;
            let of_rows = of_run(&sql, &many, 4 * CHUNK_BYTES).await;
            let of_chunks = of_run(&sql, &many, CHUNK_BYTES).await;
            let row = of_rows.saturating_sub(of_few) as f64 / (3 * ROWS) as f64;
            let chunks = std::fs::metadata(&many).unwrap().len() as usize / CHUNK_BYTES * 3 / 4;
            let chunk = of_chunks.saturating_sub(of_rows) as f64 / chunks as f64;
            println!("{sql}: {of_few}; {chunk:.0} for a chunk more, {row:.3} for a row more");
            // Buffers grow with the first chunks, and up to 256 templates of records are learnt.
            assert!(row < 0.05, "{sql}: {row} for each row");
            assert!(chunk < 200.0, "{sql}: {chunk} for each chunk");
        });
    }
}

/// Allocations of the plan of this query.
async fn of_plan(sql: &str, path: &Path) -> usize {
    let engine = Engine::new(Options::default()).unwrap();
    let region = Region::new(ALLOCATOR);
    engine
        .plan(sql, &[Input::File(path.to_owned())])
        .await
        .unwrap();
    let change = region.change();
    change.allocations + change.reallocations
}

#[test]
fn a_plan_allocates_for_columns_and_not_for_pairs_of_them() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let file = |columns: usize| {
        let members: Vec<_> = (0..columns).map(|at| format!("\"c{at}\":{at}")).collect();
        let path = dir.path().join(columns.to_string());
        std::fs::write(&path, format!("{{{}}}\n", members.join(","))).unwrap();
        path
    };
    let [few, many] = [200, 800].map(file);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for sql in [
        "SELECT * FROM logs",
        "SELECT * EXCLUDE (c1) FROM logs WHERE c2 > 0 AND timestamp IS NULL ORDER BY c3 DESC, lower(c4::text) LIMIT 1",
    ] {
        runtime.block_on(async {
            // The first plan of a process makes what all share.
            of_plan(sql, &few).await;
            let (of_few, of_many) = (of_plan(sql, &few).await, of_plan(sql, &many).await);
            println!("{sql}: {of_few} for 200 columns, {of_many} for 800");
            // For pairs it would be sixteen times as many.
            assert!(of_many < 7 * of_few, "{sql}: {of_few}, {of_many}");
        });
    }
}
