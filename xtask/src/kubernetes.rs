//! `cargo xtask test --kubernetes`: the chart and the agent on a real cluster, against the real collector.
//!
//! Installs the chart with helm on the cluster that KUBECONFIG names, lets pods of every shape write numbered
//! records, disturbs the agent while they do, and checks each record that arrives: there, once, and with the facts of
//! its pod. Everything is in one namespace, which is removed at the end, whatever the end.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process;

use anyhow::{Context as _, Result};

mod agent;
mod arrived;
mod cluster;
mod kubelet;
mod run;
mod server;
mod token;
mod writers;

use crate::collector;
use crate::image;
use crate::steps::Steps;
use crate::workspace::{Workspace, run as execute};
use agent::Agent;
use arrived::Arrived;
use cluster::{Cleanup, Cluster, NAME};
use kubelet::Kubelet;
use run::Run;
use server::Server;

#[derive(clap::Args, Debug, Default)]
#[group(skip)]
pub(crate) struct Args {
    /// Run only the test on the cluster that KUBECONFIG names
    #[arg(long, conflicts_with_all = ["skip", "only", "deploy"])]
    pub(crate) kubernetes: bool,
    /// What the image is called in the cluster
    #[arg(
        long,
        default_value = "localhost/tailrace:test",
        requires = "kubernetes"
    )]
    image: String,
    /// Brings an image archive to the nodes, such as `kind load image-archive {}`; without it the image is there
    #[arg(long, value_name = "COMMAND", requires = "kubernetes")]
    load: Option<String>,
    /// The archive to load [default: what `cargo xtask image` makes]
    #[arg(long, value_name = "FILE", requires = "load")]
    archive: Option<PathBuf>,
    /// Where pods reach this machine [default: its address on the way to the first node]
    #[arg(long, value_name = "ADDRESS", requires = "kubernetes")]
    collector_address: Option<IpAddr>,
    /// A further value for the chart; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE", requires = "kubernetes")]
    values: Vec<String>,
}

/// Says that it was not asked for.
pub(crate) fn skip(steps: &mut Steps) {
    steps.skip(
        "kubernetes",
        "not asked for: `cargo xtask test --kubernetes`, see docs/kubernetes.md",
    );
}

/// Runs the test; each part is a step of its own.
pub(crate) fn run(workspace: &Workspace, args: &Args, steps: &mut Steps) {
    let mut cluster = None;
    steps.run("kubernetes: cluster", || {
        cluster = Some(Cluster::find(workspace)?);
        Ok(())
    });
    let Some(cluster) = cluster else { return };
    if !steps.run("kubernetes: image", || load(workspace, args)) {
        return;
    }
    let mut server = None;
    steps.run("kubernetes: collector", || {
        let address = match args.collector_address {
            Some(address) => address,
            None => server::address_towards(&cluster.node_address()?)?,
        };
        server = Some(Server::start(
            workspace,
            &collector::build(workspace)?,
            address,
        )?);
        Ok(())
    });
    let Some(server) = server else { return };
    // Of this run alone: what an earlier one left would change what the agent reads.
    let state = format!("/var/lib/{NAME}-{}", process::id());
    let mut test = None;
    steps.run("kubernetes: plan", || {
        let kubelet = Kubelet::new(&cluster.kubelet()?);
        let cleanup = Cleanup::later(server.id(), &state, kubelet.static_pod.as_deref())?;
        let arrived = Arrived::new(server.received.clone());
        test = Some((Run::new(&cluster, kubelet, &args.image, arrived), cleanup));
        Ok(())
    });
    let Some((mut test, _cleanup)) = test else {
        return;
    };
    let agent = Agent { cluster: &cluster };
    let installed = steps.run("kubernetes: helm install", || {
        cluster.make_namespace()?;
        agent.install(&args.image, &server.endpoint, &state, &args.values)
    });
    if !installed || !parts(&mut test, &agent, steps) {
        println!("{}", agent.describe());
    }
}

/// The parts that need an agent; false when one failed.
fn parts(test: &mut Run<'_>, agent: &Agent<'_>, steps: &mut Steps) -> bool {
    let mut is_well = steps.run("kubernetes: what the token may do", || agent.check_token());
    is_well &= steps.run("kubernetes: pods of every shape", || test.shapes());
    let node = test.node().unwrap_or_default();
    if agent.is_here(&node) {
        is_well &= test.disturb(steps, "killed", true, || agent.kill(&node));
    } else {
        steps.skip(
            "kubernetes: agent killed",
            "the agent is no process of this machine",
        );
    }
    is_well &= test.disturb(steps, "replaced", true, || agent.replace(&node));
    is_well &= test.disturb(steps, "upgraded", false, || agent.upgrade());
    is_well &= test.disturb(steps, "rolled-back", false, || agent.roll_back());
    if is_well {
        is_well = steps.run("kubernetes: helm uninstall", || agent.uninstall());
    }
    // Last: what arrives a second time does so late.
    is_well
        & steps.run("kubernetes: every record, once, with its facts", || {
            test.check()
        })
}

/// Brings the image to the nodes.
fn load(workspace: &Workspace, args: &Args) -> Result<()> {
    let Some(load) = &args.load else {
        println!(
            "without --load the nodes have to have {} already",
            args.image
        );
        return Ok(());
    };
    let archive = match &args.archive {
        Some(archive) => archive.clone(),
        None => image::build(workspace, &args.image)?,
    };
    let archive = archive.to_str().context("the archive's name is no UTF-8")?;
    let mut words = load
        .split_whitespace()
        .map(|word| word.replace("{}", archive));
    let program = words.next().context("--load is empty")?;
    let mut command = workspace.command(program, &[]);
    execute(command.args(words))
}
