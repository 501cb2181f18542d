//! Opens an output as the config describes it.

use std::sync::Arc;

use tailrace_config::{self as config, OutputKind};
use tailrace_output::{
    Compression, DiscardOutput, DriveConfig, FileOutput, OnRefused, Otlp, OtlpConfig, Output,
    Protocol, RetryConfig, StdoutOutput, TlsConfig,
};
use tokio::runtime::Handle;

use crate::error::{Error, Kind};

/// An output, and how it is driven.
pub(crate) struct OpenOutput {
    pub(crate) name: String,
    pub(crate) output: Output,
    pub(crate) drive: DriveConfig,
}

/// Opens it: reads its certificates, and connects to nothing.
pub(crate) fn open(
    pipeline: &str,
    output: &config::Output,
    runtime: &Handle,
) -> Result<OpenOutput, Error> {
    // Lines stay in order: one at a time.
    let mut drive = DriveConfig {
        concurrency: 1,
        on_refused: OnRefused::Hold,
    };
    let opened = match &output.kind {
        OutputKind::Otlp(otlp) => {
            let _entered = runtime.enter();
            let opened = Otlp::new(otlp_config(otlp)).map_err(|source| Kind::Output {
                pipeline: pipeline.to_owned(),
                output: output.name.clone(),
                source,
            })?;
            drive.concurrency = otlp.concurrency;
            if otlp.on_refused == config::OnRefused::Drop {
                drive.on_refused = OnRefused::Drop;
            }
            Output::Otlp(Arc::new(opened))
        }
        OutputKind::Stdout(_) => Output::Stdout(StdoutOutput::new()),
        OutputKind::File(file) => Output::File(FileOutput::new(&file.path)),
        OutputKind::Discard => Output::Discard(DiscardOutput),
    };
    Ok(OpenOutput {
        name: output.name.clone(),
        output: opened,
        drive,
    })
}

/// The config crate has filled in the environment and the defaults already.
fn otlp_config(otlp: &config::OtlpOutput) -> OtlpConfig {
    let exposed =
        |(name, value): (&String, &config::Secret)| (name.clone(), value.expose().to_owned());
    OtlpConfig {
        endpoint: otlp.endpoint.clone(),
        logs_endpoint: otlp.logs_endpoint.clone(),
        protocol: Some(match otlp.protocol {
            config::Protocol::HttpProtobuf => Protocol::HttpProtobuf,
            config::Protocol::Grpc => Protocol::Grpc,
        }),
        compression: Some(match otlp.compression {
            config::Compression::Auto => Compression::Auto,
            config::Compression::Zstd => Compression::Zstd,
            config::Compression::Gzip => Compression::Gzip,
            config::Compression::None => Compression::None,
        }),
        headers: otlp.headers.iter().map(exposed).collect(),
        timeout: Some(otlp.timeout),
        tls: TlsConfig {
            ca_file: otlp.tls.ca_file.clone(),
            cert_file: otlp.tls.cert_file.clone(),
            key_file: otlp.tls.key_file.clone(),
            server_name: otlp.tls.server_name.clone(),
        },
        insecure: None,
        max_connection_age: Some(otlp.max_connection_age),
        retry: RetryConfig {
            initial: otlp.retry.initial,
            max: otlp.retry.max,
            ..RetryConfig::default()
        },
    }
}
