//! What a comparison of agents found: lines while it runs, a Markdown table at its end, rows of a CSV, a plot.

use std::fmt;
use std::fs;

use anyhow::{Context as _, Result};

use crate::chart::{Bar, Chart, Group, number};
use crate::child::Usage;
use crate::results::median;
use xtask::workspace::Workspace;

/// One shape and share, done by every agent.
pub(super) struct Case {
    shape: String,
    selection: &'static str,
    lines: u64,
    pub(super) file_bytes: u64,
    agents: Vec<&'static str>,
    /// By agent: its runs. Run `i` of all stands beside each other.
    pub(super) usages: Vec<Vec<Usage>>,
    /// One for each run, where everything is sent.
    pub(super) yardsticks: Vec<Yardstick>,
}

/// What `zstd -1` alone costs on a file's OTLP bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Yardstick {
    cpu_seconds: f64,
    otlp_bytes: f64,
    zstd_bytes: f64,
}

impl Yardstick {
    /// Of the line that `tailrace-bench zstd` prints.
    pub(super) fn parse(line: &str) -> Result<Yardstick> {
        let value: serde_json::Value =
            serde_json::from_str(line.trim()).with_context(|| format!("no JSON: {line}"))?;
        let number = |name: &str| value.get(name).and_then(serde_json::Value::as_f64);
        let parsed = || {
            Some(Yardstick {
                cpu_seconds: number("cpu_us")? / 1e6,
                otlp_bytes: number("otlp_bytes")?,
                zstd_bytes: number("zstd_bytes")?,
            })
        };
        parsed().with_context(|| format!("not a yardstick: {line}"))
    }
}

/// The columns of the CSV, one row per agent and case.
pub(super) const CSV_COLUMNS: &str = "shape,sent,agent,lines,file_bytes,cpu_seconds,cpu_seconds_per_million_lines,\
     peak_bytes,wall_seconds,wire_bytes,zstd1_cpu_seconds,zstd1_bytes,times_zstd1,payload_to_zstd1,tailrace_is_cheaper_by";

impl Case {
    pub(super) fn new(
        shape: &str,
        selection: &'static str,
        lines: u64,
        agents: &[&'static str],
    ) -> Case {
        Case {
            shape: shape.to_owned(),
            selection,
            lines,
            file_bytes: 0,
            agents: agents.to_vec(),
            usages: vec![Vec::new(); agents.len()],
            yardsticks: Vec::new(),
        }
    }

    fn median(&self, agent: usize, of: impl Fn(&Usage) -> f64) -> f64 {
        median(&self.usages[agent].iter().map(of).collect::<Vec<f64>>())
    }

    /// CPU seconds for a million lines; of start-up, for one.
    fn cpu(&self, agent: usize) -> f64 {
        let cpu = self.median(agent, |usage| usage.cpu_seconds);
        match self.lines {
            0 => cpu,
            lines => cpu * 1e6 / lines as f64,
        }
    }

    /// How many times the CPU of `zstd -1` an agent takes, run by run.
    fn times_zstd(&self, agent: usize) -> Option<f64> {
        let runs = self.usages[agent].iter().zip(&self.yardsticks);
        let ratios: Vec<f64> = runs.map(|(u, y)| u.cpu_seconds / y.cpu_seconds).collect();
        (!ratios.is_empty()).then(|| median(&ratios))
    }

    fn payload_to_zstd(&self, agent: usize) -> Option<f64> {
        let bytes = self.yardsticks.first()?.zstd_bytes;
        Some(self.median(agent, |usage| usage.wire_bytes as f64) / bytes)
    }

    /// How many times the CPU of Tailrace an agent takes, run by run.
    fn times_tailrace(&self, agent: usize) -> Option<f64> {
        let ours = self.agents.iter().position(|name| *name == OURS)?;
        let runs = self.usages[agent].iter().zip(&self.usages[ours]);
        let ratio =
            |(theirs, ours): (&Usage, &Usage)| theirs.cpu_seconds / ours.cpu_seconds.max(0.01);
        let ratios: Vec<f64> = runs.map(ratio).collect();
        (agent != ours && self.lines > 0).then(|| median(&ratios))
    }

    /// One row for each agent.
    pub(super) fn csv(&self) -> Vec<Vec<String>> {
        let of_yardstick = |of: fn(&Yardstick) -> f64| {
            let all: Vec<f64> = self.yardsticks.iter().map(of).collect();
            (!all.is_empty()).then(|| median(&all))
        };
        let text = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.4}"));
        let row = |(at, agent): (usize, &&'static str)| {
            vec![
                self.shape.clone(),
                self.selection.to_owned(),
                (*agent).to_owned(),
                self.lines.to_string(),
                self.file_bytes.to_string(),
                format!("{:.3}", self.median(at, |usage| usage.cpu_seconds)),
                format!("{:.4}", self.cpu(at)),
                format!("{:.0}", self.median(at, |usage| usage.peak_bytes as f64)),
                format!("{:.2}", self.median(at, |usage| usage.wall_seconds)),
                format!("{:.0}", self.median(at, |usage| usage.wire_bytes as f64)),
                text(of_yardstick(|yardstick| yardstick.cpu_seconds)),
                text(of_yardstick(|yardstick| yardstick.zstd_bytes)),
                text(self.times_zstd(at)),
                text(self.payload_to_zstd(at)),
                text(self.times_tailrace(at)),
            ]
        };
        self.agents.iter().enumerate().map(row).collect()
    }
}

const OURS: &str = "Tailrace";

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}:", self.shape, self.selection)?;
        for (at, agent) in self.agents.iter().enumerate() {
            write!(f, " {agent} {:.3} CPU s per million lines;", self.cpu(at))?;
        }
        if let Some(yardstick) = self.yardsticks.first() {
            let megabytes = yardstick.otlp_bytes / 1e6;
            let speed = megabytes / yardstick.cpu_seconds;
            write!(
                f,
                " zstd -1 {:.3} CPU s at {speed:.0} MB/s",
                yardstick.cpu_seconds
            )?;
        }
        Ok(())
    }
}

/// The table; CPU seconds are per million lines read.
pub(super) fn markdown(cases: &[Case], runs: u32) -> String {
    let mut text = format!(
        "Medians of {runs} runs, in turns.\n\n\
         | shape | sent | agent | lines | CPU s per 1 M lines | Tailrace is cheaper by | times `zstd -1` | payload to `zstd -1` | peak MiB | bytes sent per line | wall s |\n\
         |---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
    );
    let optional = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.2}"));
    for case in cases {
        for (at, agent) in case.agents.iter().enumerate() {
            let sent = case.median(at, |usage| usage.wire_bytes as f64) / case.lines.max(1) as f64;
            text.push_str(&format!(
                "| {} | {} | {agent} | {} | {:.3} | {} | {} | {} | {:.0} | {sent:.1} | {:.1} |\n",
                case.shape,
                case.selection,
                case.lines,
                case.cpu(at),
                optional(case.times_tailrace(at)),
                optional(case.times_zstd(at)),
                optional(case.payload_to_zstd(at)),
                case.median(at, |usage| usage.peak_bytes as f64) / f64::from(1 << 20),
                case.median(at, |usage| usage.wall_seconds),
            ));
        }
    }
    text
}

/// The plot of docs/performance.md.
pub(super) fn draw(workspace: &Workspace, cases: &[Case]) -> Result<()> {
    let group = |case: &Case| {
        let bar = |(at, name): (usize, &&'static str)| Bar {
            name: (*name).to_owned(),
            value: case.cpu(at),
            is_ours: *name == OURS,
        };
        Group {
            title: format!("{}, {} sent", case.shape, case.selection),
            bars: case.agents.iter().enumerate().map(bar).collect(),
        }
    };
    let groups: Vec<Group> = cases
        .iter()
        .filter(|case| case.lines > 0)
        .map(group)
        .collect();
    if groups.is_empty() {
        return Ok(());
    }
    let chart = Chart {
        title: "From a file to OTLP with zstd".to_owned(),
        unit: "CPU seconds per million lines, whole process; shorter is better".to_owned(),
        groups,
    };
    let dir = workspace.root.join("docs/img");
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let path = dir.join("agents.svg");
    chart.write(&path)?;
    println!(
        "drawn: docs/img/agents.svg, the largest {}",
        number(chart.longest())
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(cpu_seconds: f64, wire_bytes: u64) -> Usage {
        Usage {
            cpu_seconds,
            peak_bytes: 64 << 20,
            wall_seconds: 0.6,
            wire_bytes,
        }
    }

    #[test]
    fn ratios_are_taken_run_by_run() {
        let mut case = Case::new("simple", "all", 500_000, &["Tailrace", "Other"]);
        case.usages = vec![
            vec![usage(0.5, 5_000_000), usage(1.0, 5_000_000)],
            vec![usage(5.0, 9_000_000), usage(12.0, 9_000_000)],
        ];
        let line = r#"{"lines":500000,"cpu_us":250000,"otlp_bytes":90000000,"zstd_bytes":4000000}"#;
        let yardstick = Yardstick::parse(line).expect("a yardstick");
        case.yardsticks = vec![yardstick; 2];
        let text = markdown(&[case], 2);
        let rows: Vec<&str> = text.lines().skip(4).collect();
        assert_eq!(
            rows[0],
            "| simple | all | Tailrace | 500000 | 1.500 |  | 3.00 | 1.25 | 64 | 10.0 | 0.6 |"
        );
        assert_eq!(
            rows[1],
            "| simple | all | Other | 500000 | 17.000 | 11.00 | 34.00 | 2.25 | 64 | 18.0 | 0.6 |"
        );
    }
}
