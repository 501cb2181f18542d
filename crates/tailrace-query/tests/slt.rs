//! The files of `tests/slt`, in the format of sqllogictest: what queries over `logs.jsonl` give, written by hand.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use arrow::util::display::{ArrayFormatter, FormatOptions};
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner};
use tailrace_query::{Engine, Error, Input, Options};
use tokio::runtime::Runtime;

const DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/slt");

struct Logs(Runtime);

impl DB for Logs {
    type Error = Error;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Error> {
        let inputs = [Input::File(Path::new(DIR).join("logs.jsonl"))];
        let mut rows = Vec::new();
        let columns = self.0.block_on(async {
            let engine = Engine::new(Options::default()).unwrap();
            let plan = engine.plan(sql, &inputs).await?;
            let options = FormatOptions::default().with_null("NULL");
            plan.run(|batch| {
                let columns = batch.columns().iter();
                let columns: Vec<_> = columns
                    .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
                    .collect();
                rows.extend((0..batch.num_rows()).map(|row| {
                    let values = columns.iter();
                    values.map(|column| column.value(row).to_string()).collect()
                }));
                true
            })
            .await?;
            Ok::<_, Error>(plan.schema().fields().len())
        })?;
        Ok(DBOutput::Rows {
            types: vec![DefaultColumnType::Any; columns],
            rows,
        })
    }
}

#[test]
fn files_of_queries() {
    let mut files: Vec<_> = std::fs::read_dir(DIR)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "slt"))
        .collect();
    files.sort();
    assert!(files.len() >= 3);
    for file in files {
        let mut runner = Runner::new(|| async { Ok(Logs(Runtime::new().unwrap())) });
        if let Err(error) = runner.run_file(&file) {
            panic!("{}", error.display(false));
        }
    }
}
