//! Asks a query of a directory.

use std::path::Path;

use tailrace_query::{Engine, Error, Input, Options};

const LOGS: &str = r#"{"dur":"12","k":1,"status":200,"name":"n1","time":"2026-03-01T10:00:00Z"}
{"dur":"a","k":0,"status":"ok","name":"n2"}
"#;

/// The rows as JSON lines, or why there are none. `DIR` in the query is the directory.
pub(crate) fn ask(dir: &Path, sql: &str, options: Options) -> Result<String, Error> {
    let logs = dir.join("d.log");
    std::fs::write(&logs, LOGS).unwrap();
    let sql = sql.replace("DIR", dir.to_str().unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let engine = Engine::new(options).unwrap();
        let plan = engine.plan(&sql, &[Input::File(logs)]).await?;
        let mut out = arrow_json::LineDelimitedWriter::new(Vec::new());
        plan.run(|batch| {
            out.write(&batch).unwrap();
            true
        })
        .await?;
        out.finish().unwrap();
        Ok(String::from_utf8(out.into_inner()).unwrap())
    })
}
