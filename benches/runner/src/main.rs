//! `cargo xtask bench`: the stages beside the libraries that do the same, whole agents beside each other, on files
//! and on the pods of a Kubernetes node, memory over large inputs, instruction counts.
//!
//! Takes what the benches and the agents' processes report, gives Markdown on standard output, CSV files under
//! `benches/results` and the plots of docs/performance.md. Measures nothing by itself but other processes.

// This program's output is what it prints.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use xtask::workspace::Workspace;

mod agents;
mod chart;
mod child;
mod data;
mod hostile;
mod instructions;
mod kubernetes;
mod memory;
mod receiver;
mod results;
mod samples;
mod stages;
mod table;

/// Measures; results are printed as Markdown
#[derive(Parser)]
#[command(name = "bench", bin_name = "cargo xtask bench")]
struct Args {
    /// Compare whole agents instead of stages
    #[arg(long, group = "mode")]
    agents: bool,
    /// Sample the memory of `tailrace run` over one large file and over many files
    #[arg(long, group = "mode")]
    memory: bool,
    /// Compare whole agents on the pods of a Kubernetes node: their peak, and their share of one core at a steady rate
    #[arg(long, group = "mode")]
    kubernetes: bool,
    /// Count the instructions of each stage with callgrind, and compare with benches/instructions.csv
    #[arg(long, group = "mode")]
    instructions: bool,
    /// Put the results into docs/performance.md
    #[arg(long)]
    publish: bool,
    #[command(flatten)]
    of_stages: stages::Args,
    #[command(flatten)]
    of_agents: agents::Args,
    #[command(flatten)]
    of_memory: memory::Args,
    #[command(flatten)]
    of_instructions: instructions::Args,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match Workspace::find().and_then(|workspace| run(&workspace, &args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    if args.agents {
        agents::run(workspace, &args.of_agents, args.publish)
    } else if args.memory {
        memory::run(workspace, &args.of_agents, &args.of_memory, args.publish)
    } else if args.kubernetes {
        kubernetes::run(workspace, &args.of_agents, args.publish)
    } else if args.instructions {
        instructions::run(workspace, &args.of_instructions, args.publish)
    } else {
        stages::run(workspace, &args.of_stages, args.publish)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        super::Args::command().debug_assert();
    }
}
