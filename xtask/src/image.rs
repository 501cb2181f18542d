//! `cargo xtask image`: the container image as an OCI archive, without a container engine.
//!
//! One layer: the static binary, and the authorities of this machine that TLS servers are checked against. The same
//! as deploy/docker/Dockerfile makes. Equal input gives equal bytes.
//! Format: OCI image specification v1.1 (image-layout, manifest, config), as a tar.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::dist;
use crate::workspace::Workspace;

/// Where Linux distributions keep the authorities, and where the image has them.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Put this static binary into it instead of building one
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// What the image is called
    #[arg(long, default_value = "tailrace:dev")]
    name: String,
    /// Write the archive here [default: image.tar in the build directory]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let binary = match &args.binary {
        Some(binary) => binary.clone(),
        None => dist::build(workspace)?.path,
    };
    let out = workspace.target.join("dist-out");
    let output = args.output.clone().unwrap_or(out.join("image.tar"));
    if let Some(dir) = output.parent() {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    }
    write(&binary, &args.name, &output)
}

/// Builds what ships and makes an image of this name of it; gives the archive.
pub(crate) fn build(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    let binary = dist::build(workspace)?.path;
    let output = workspace.target.join("dist-out/image.tar");
    write(&binary, name, &output)?;
    Ok(output)
}

fn write(binary: &Path, name: &str, output: &Path) -> Result<()> {
    let layer = layer(binary)?;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&layer)?;
    let compressed = gzip.finish()?;
    let archive = archive(name, &layer, &compressed)?;
    fs::write(output, archive).with_context(|| format!("cannot write {}", output.display()))?;
    println!("image       {} ({name})", output.display());
    println!("content     {:.1} MB", layer.len() as f64 / 1e6);
    println!("compressed  {:.1} MB", compressed.len() as f64 / 1e6);
    Ok(())
}

/// The files of the image.
fn layer(binary: &Path) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    let program = fs::read(binary).with_context(|| format!("cannot read {}", binary.display()))?;
    add(&mut tar, "tailrace", 0o755, &program)?;
    let authorities = Path::new("/").join(AUTHORITIES);
    match fs::read(&authorities) {
        Ok(authorities) => add(&mut tar, AUTHORITIES, 0o644, &authorities)?,
        Err(error) => eprintln!(
            "warning: {} cannot be read ({error}): the image knows no authorities, and every https output needs \
             `tls: {{ca_file: ...}}`",
            authorities.display()
        ),
    }
    Ok(tar.into_inner()?)
}

/// The image layout: an index of one manifest, its config and its layer.
fn archive(name: &str, layer: &[u8], compressed: &[u8]) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let config = json!({
        "architecture": architecture,
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        // By number, so that `runAsNonRoot` can be checked. Group 0 may read pod logs.
        "config": {
            "User": "65532:0",
            "Entrypoint": ["/tailrace"],
            "Cmd": ["run", "-c", "/etc/tailrace/tailrace.yaml"],
            "WorkingDir": "/",
        },
        "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
        "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "cargo xtask image"}],
    });
    let config = add_blob(&mut tar, "config.v1+json", config.to_string().as_bytes())?;
    let layer = add_blob(&mut tar, "layer.v1.tar+gzip", compressed)?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [layer],
    });
    let mut manifest = add_blob(
        &mut tar,
        "manifest.v1+json",
        manifest.to_string().as_bytes(),
    )?;
    let tag = name.rsplit_once(':').map_or("latest", |(_, tag)| tag);
    manifest["annotations"] = json!({
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": tag,
    });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    });
    add(&mut tar, "index.json", 0o644, index.to_string().as_bytes())?;
    add(
        &mut tar,
        "oci-layout",
        0o644,
        br#"{"imageLayoutVersion":"1.0.0"}"#,
    )?;
    Ok(tar.into_inner()?)
}

/// Adds content under its digest; gives its descriptor.
fn add_blob(tar: &mut tar::Builder<Vec<u8>>, kind: &str, content: &[u8]) -> Result<Value> {
    let digest = digest(content);
    let path = format!("blobs/{}", digest.replace(':', "/"));
    add(tar, &path, 0o644, content)?;
    Ok(json!({
        "mediaType": format!("application/vnd.oci.image.{kind}"),
        "digest": digest,
        "size": content.len(),
    }))
}

fn add(tar: &mut tar::Builder<Vec<u8>>, path: &str, mode: u32, content: &[u8]) -> Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(mode);
    header.set_mtime(0);
    tar.append_data(&mut header, path, content)?;
    Ok(())
}

fn digest(content: &[u8]) -> String {
    let hex: String = Sha256::digest(content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{hex}")
}
