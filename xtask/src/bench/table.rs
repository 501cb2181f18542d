//! The results as a Markdown table, ready for docs/performance.md.

use super::child::Usage;

/// One line of the table.
pub(crate) struct Row {
    pub(crate) shape: String,
    pub(crate) selection: &'static str,
    pub(crate) agent: &'static str,
    pub(crate) file_bytes: u64,
    pub(crate) usage: Usage,
}

/// The table; CPU seconds are per million lines read.
pub(crate) fn markdown(rows: &[Row], lines: u64, runs: u32) -> String {
    let mut text = format!(
        "{lines} lines per file, median of {runs} runs.\n\n\
         | shape | sent | agent | CPU s per 1 M lines | peak MiB | MB read per CPU s | bytes sent per line read | wall s |\n\
         |---|---|---|---:|---:|---:|---:|---:|\n"
    );
    for row in rows {
        let usage = &row.usage;
        text.push_str(&format!(
            "| {} | {} | {} | {:.2} | {:.0} | {:.0} | {:.1} | {:.1} |\n",
            row.shape,
            row.selection,
            row.agent,
            usage.cpu_seconds * 1e6 / lines as f64,
            usage.peak_bytes as f64 / f64::from(1 << 20),
            row.file_bytes as f64 / 1e6 / usage.cpu_seconds.max(0.01),
            usage.wire_bytes as f64 / lines as f64,
            usage.wall_seconds,
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_per_million_lines() {
        let usage = Usage {
            cpu_seconds: 0.5,
            peak_bytes: 64 << 20,
            wall_seconds: 0.6,
            wire_bytes: 5_000_000,
        };
        let row = Row {
            shape: "simple".to_owned(),
            selection: "all",
            agent: "Tailrace",
            file_bytes: 82_500_000,
            usage,
        };
        let text = markdown(&[row], 500_000, 3);
        assert_eq!(
            text.lines().last(),
            Some("| simple | all | Tailrace | 1.00 | 64 | 165 | 10.0 | 0.6 |")
        );
    }
}
