//! Rows as a Parquet file.

use std::path::Path;

use tailrace_query::{Encoder, Engine, Input, Options};

/// Writes the rows of a query.
pub(crate) async fn write(sql: &str, inputs: &[Input], path: &Path) {
    let engine = Engine::new(Options::default()).unwrap();
    let plan = engine.plan(sql, inputs).await.unwrap();
    let mut encoder = Encoder::parquet(&plan.schema()).unwrap();
    let mut bytes = Vec::new();
    let ran = plan.run(|batch| {
        bytes.extend(encoder.add(&batch).unwrap());
        true
    });
    ran.await.unwrap();
    bytes.extend(encoder.finish().unwrap());
    std::fs::write(path, bytes).unwrap();
}
