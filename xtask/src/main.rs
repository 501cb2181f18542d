//! `cargo xtask`: the project's chores. It drives cargo and other programs and
//! reports; it builds, checks and measures nothing by itself.
// This program's output is what it prints.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod book;
mod deny;
mod deploy;
mod dist;
mod docs;
mod image;
mod kubernetes;
mod oracle;
mod package;
mod page;
mod python;
mod readme;
mod setup;
mod steps;
mod test;
mod timings;
mod toolchain;
mod torture;
mod venv;

use xtask::collector;
use xtask::workspace::{self, Workspace};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Project chores")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs every check there is
    Test(test::Args),
    /// Brings the programs of the checks that this machine lacks, into the cache of the user
    Setup,
    /// Writes the generated documents anew
    Docs,
    /// Measures; results are printed as Markdown
    #[command(disable_help_flag = true)]
    Bench(bench::Args),
    /// Builds what ships, and prints its size, checksum and build time
    Dist(dist::Args),
    /// Tells where the minutes of a first build go
    Timings(timings::Args),
    /// Makes a container image, an OCI archive, of what ships
    Image(image::Args),
    /// Makes the packages of a release: .tar.gz, .deb and .rpm, with checksums and a bill of materials
    Package(package::Args),
    /// Makes the wheel of the Python package
    Wheel,
    /// Runs the examples of the book in docs/, and makes a site of it where mdbook is there
    Book(book::Args),
    /// Builds the OpenTelemetry Collector of the tests, and prints its path
    Collector,
    /// Checks the agent's page in a browser
    Page(page::Args),
    /// Kills, rotates, refuses, and counts what is lost
    Torture(torture::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = Workspace::find().and_then(|workspace| match cli.command {
        Command::Test(args) => test::run(&workspace, &args),
        Command::Setup => Ok(setup::run(&workspace)),
        Command::Docs => docs::run(&workspace).map(|()| ExitCode::SUCCESS),
        Command::Bench(args) => bench::run(&workspace, &args).map(|()| ExitCode::SUCCESS),
        Command::Dist(args) => dist::run(&workspace, &args).map(|()| ExitCode::SUCCESS),
        Command::Timings(args) => timings::run(&workspace, &args).map(|()| ExitCode::SUCCESS),
        Command::Image(args) => image::run(&workspace, &args).map(|()| ExitCode::SUCCESS),
        Command::Page(args) => page::run_alone(&workspace, &args),
        Command::Package(args) => package::run(&workspace, &args).map(|()| ExitCode::SUCCESS),
        Command::Wheel => python::wheel(&workspace).map(|()| ExitCode::SUCCESS),
        Command::Book(args) => book::command(&workspace, &args),
        Command::Torture(args) => torture::run(&workspace, &args),
        Command::Collector => {
            let path = collector::build(&workspace)?;
            println!("{}", path.display());
            Ok(ExitCode::SUCCESS)
        }
    });
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        super::Cli::command().debug_assert();
    }
}
