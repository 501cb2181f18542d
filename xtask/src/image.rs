//! `cargo xtask image`: the container image as an OCI archive, without a container engine.
//!
//! One layer: the static binary, and the authorities of this machine that TLS servers are checked against. The same
//! as deploy/docker/Dockerfile makes. Equal input gives equal bytes.
//! Format: OCI image specification v1.1 (image-layout, manifest, config), as a tar; and `manifest.json`, without which
//! `docker load` does not find the image in it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::dist;
use crate::toolchain::Toolchain;
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
        None => static_binary(workspace)?,
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
    let binary = static_binary(workspace)?;
    let output = workspace.target.join("dist-out/image.tar");
    write(&binary, name, &output)?;
    Ok(output)
}

/// Builds what ships, which must be static: an image has nothing that could load it.
fn static_binary(workspace: &Workspace) -> Result<PathBuf> {
    let toolchain = Toolchain::find(workspace, std::env::consts::ARCH)
        .context("what ships is a static binary; --binary takes one that is there")?;
    dist::build(workspace, &toolchain)
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
    let for_docker = json!([{
        "Config": path_of(&config),
        "RepoTags": [name],
        "Layers": [path_of(&layer)],
    }]);
    add(
        &mut tar,
        "manifest.json",
        0o644,
        for_docker.to_string().as_bytes(),
    )?;
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
    let descriptor = json!({
        "mediaType": format!("application/vnd.oci.image.{kind}"),
        "digest": digest(content),
        "size": content.len(),
    });
    add(tar, &path_of(&descriptor), 0o644, content)?;
    Ok(descriptor)
}

/// Where the content of a descriptor is in the archive.
fn path_of(descriptor: &Value) -> String {
    let digest = descriptor["digest"].as_str().unwrap_or_default();
    format!("blobs/{}", digest.replace(':', "/"))
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::io::Read as _;

    use super::*;

    fn files(archive: &[u8]) -> HashMap<String, Vec<u8>> {
        let mut tar = tar::Archive::new(archive);
        let read = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_str().unwrap().to_owned();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (path, content)
        };
        tar.entries().unwrap().map(read).collect()
    }

    /// By the index, as containerd goes, and by `manifest.json`, as docker does, one comes to the same content.
    #[test]
    fn both_ways_lead_to_the_image() {
        let files = files(&archive("r.example/a:1", b"layer", b"compressed").unwrap());
        let parse = |path: &str| serde_json::from_slice::<Value>(&files[path]).unwrap();
        let index = parse("index.json");
        let manifest = parse(&path_of(&index["manifests"][0]));
        let docker = &parse("manifest.json")[0];
        assert_eq!(docker["RepoTags"], json!(["r.example/a:1"]));
        assert_eq!(docker["Config"], path_of(&manifest["config"]));
        assert_eq!(docker["Layers"], json!([path_of(&manifest["layers"][0])]));
        let config = parse(docker["Config"].as_str().unwrap());
        assert_eq!(config["rootfs"]["diff_ids"], json!([digest(b"layer")]));
        assert_eq!(files[docker["Layers"][0].as_str().unwrap()], b"compressed");
        for (path, content) in files.iter().filter(|(path, _)| path.starts_with("blobs/")) {
            assert_eq!(*path, path_of(&json!({"digest": digest(content)})));
        }
    }
}
