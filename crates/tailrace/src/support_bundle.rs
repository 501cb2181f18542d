//! `tailrace support-bundle`: collects what somebody else needs to help, in one archive. Each part is bounded, and a part that
//! cannot be had is named in the manifest. Lines of logs, `tests`, secrets and values of variables are never in it.

mod agent;
mod archive;
mod data_dir;
mod machine;

use std::borrow::Cow;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};
use tailrace_config::{AdminAddress, Config};

use archive::Bundle;

use crate::cli::{ConfigArgs, Failure};
use crate::printed::{self, Stdout};
use crate::{config, diagnostics, explain, style, validate};

/// Arguments of `tailrace support-bundle`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// Admin endpoint of the running agent. Without it: `admin.listen` of the config.
    #[arg(long, value_name = "ADDRESS", env = "TAILRACE_ADMIN")]
    admin: Option<AdminAddress>,
    /// The archive to write, which must not exist; `-` is standard output.
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "tailrace-support.tar.gz"
    )]
    output: PathBuf,
    /// Include the texts of errors of the running agent. Servers may quote records in them.
    #[arg(long)]
    with_errors: bool,
}

/// Writes the archive. What cannot be collected is noted in it.
///
/// # Errors
///
/// The archive cannot be written.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    if args.output == Path::new("-") {
        let bundle = collect(args);
        archive::write(&bundle, &mut Stdout::lock()).context("stdout")?;
        return Ok(());
    }
    let file = archive::create(&args.output)?;
    let bundle = collect(args);
    let path = printed::path(&args.output);
    if let Err(error) = archive::write(&bundle, file) {
        // Half an archive is worse than none.
        let _ = std::fs::remove_file(&args.output);
        return Err(error.context(format!("{path} cannot be written")).into());
    }
    // The manifest is one, too.
    let parts = bundle.parts().len() + 1;
    writeln!(out, "wrote {}: {parts} files", style::strong(&path)).context("stdout")?;
    for (name, reason) in bundle.missing() {
        writeln!(out, "  without {name}: {}", printed::shown(reason)).context("stdout")?;
    }
    let next = format!("tar -xzf {path}");
    writeln!(
        out,
        "\nNames of files, pipelines and pods are in it. Look through it before you send it:\n\n    {}",
        style::accent(next)
    )
    .context("stdout")?;
    Ok(())
}

fn collect(args: &Args) -> Bundle {
    let mut bundle = Bundle::default();
    // First: from here on it is known what must not be shown.
    let config = add_config(args, &mut bundle);
    machine::add(&mut bundle);
    let data_dir = match (&args.config.data_dir, &config) {
        (Some(dir), _) => Some(dir.clone()),
        (None, Some(config)) => Some(config.data_dir.clone()),
        (None, None) => None,
    };
    match data_dir {
        Some(dir) => data_dir::add(&dir, &mut bundle),
        None => bundle.miss("data_dir.txt", "no config says where it is".to_owned()),
    }
    let listens = config.and_then(|config| config.admin.listen);
    let admin = args.admin.clone();
    match admin.or_else(|| listens.map(on_this_machine)) {
        Some(address) => agent::add(&address, args.with_errors, &mut bundle),
        None => bundle.miss(
            "agent/",
            "no admin endpoint is known: name it with --admin".to_owned(),
        ),
    }
    bundle
}

/// Adds what the config is, and returns it if it is sound.
fn add_config(args: &Args, bundle: &mut Bundle) -> Option<Config> {
    let env = |name: &str| std::env::var(name).ok();
    let loaded = match args.config.load(&env) {
        Ok(loaded) => loaded,
        Err(failure) => {
            bundle.miss("config.yaml", reason(failure));
            return None;
        }
    };
    printed::hide(&loaded.redactor);
    let yaml = config::effective(&args.config, &env);
    let yaml = yaml.map(|mut effective| {
        // People paste lines of their logs there.
        effective.leave_out("tests");
        tailrace_config::to_yaml(&effective)
    });
    let what = "the effective config without `tests`";
    bundle.add("config.yaml", what, yaml.map_err(reason));
    let verdict = validate::report(&args.config).map(|mut json| {
        leave_out_quotes(&mut json);
        json.to_string()
    });
    let what = "what `tailrace validate` finds";
    bundle.add_json("validate.json", what, verdict.map_err(reason));
    let plans = explain::report(&args.config).map(|json| json.to_string());
    let what = "what `tailrace explain` shows";
    bundle.add_json("explain.json", what, plans.map_err(reason));
    loaded.config.ok()
}

/// Why a part is missing, without a line of the config.
fn reason(failure: Failure) -> String {
    match failure {
        Failure::Config(found) => {
            let first = found.first();
            let first = first.map(|it| diagnostics::to_json(it, diagnostics::Severity::Error));
            let message = first.map(|it| it["message"].as_str().unwrap_or_default().to_owned());
            let message = message.unwrap_or_default();
            format!("the config is refused: {}", without_quote(&message))
        }
        Failure::Usage(text) => text,
        Failure::Runtime(error) => format!("{error:#}"),
        Failure::Refused
        | Failure::OutputClosed
        | Failure::Logged { .. }
        | Failure::Undelivered { .. } => "it cannot be made".to_owned(),
    }
}

/// Leaves out of what is wrong with a config what may quote its tests.
fn leave_out_quotes(verdict: &mut Value) {
    let found = verdict["diagnostics"].as_array_mut();
    for it in found.into_iter().flatten() {
        let message = it["message"].as_str().unwrap_or_default();
        if let Cow::Owned(shown) = without_quote(message) {
            it["message"] = json!(shown);
            it["hint"] = Value::Null;
        }
    }
}

/// A message, of those about `tests` only where: it may quote a line that somebody pasted there.
fn without_quote(message: &str) -> Cow<'_, str> {
    let is_of_tests = message
        .strip_prefix("tests")
        .is_some_and(|rest| rest.starts_with(['.', ':']));
    match message.split_once(": ") {
        Some((place, _)) if is_of_tests => format!("{place}: [left out]").into(),
        _ if is_of_tests => "tests: [left out]".into(),
        _ => message.into(),
    }
}

/// Where an agent of this machine is asked that listens on this address.
fn on_this_machine(listens: AdminAddress) -> AdminAddress {
    let AdminAddress::Tcp(mut address) = listens else {
        return listens;
    };
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    address.set_ip(ip);
    AdminAddress::Tcp(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_listens_everywhere_is_asked_here() {
        for (listens, asked) in [
            ("unix:/run/admin.sock", "unix:/run/admin.sock"),
            ("0.0.0.0:9464", "127.0.0.1:9464"),
            ("[::]:9464", "[::1]:9464"),
            ("10.0.0.1:1", "10.0.0.1:1"),
        ] {
            let listens: AdminAddress = listens.parse().expect("an address");
            assert_eq!(on_this_machine(listens).to_string(), asked);
        }
    }
}
