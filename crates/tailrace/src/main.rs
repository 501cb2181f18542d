//! The Tailrace log agent: chooses a command and an exit code, nothing else.

use std::process::ExitCode;

use clap::Parser;
use tailrace::cli::Failure;
use tailrace::commands::Cli;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            ExitCode::from(match failure {
                Failure::Runtime(_) => 1,
                Failure::Undelivered { .. } => 3,
                Failure::Config(_) | Failure::Refused => 78,
            })
        }
    }
}
