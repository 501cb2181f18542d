//! Clients of the API server and the kubelet. A client is built from the credentials that the configuration
//! names. Each one is made of what the files hold now; kube-rs reads the token and, in a pod, the CA again once
//! a minute by itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::error::Kind;

/// Makes a client; called again after each failure, so that rotated credentials are found.
pub(crate) type Connect =
    Arc<dyn Fn() -> BoxFuture<'static, Result<Client, ConnectError>> + Send + Sync>;

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error(transparent)]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    #[error(transparent)]
    InCluster(#[from] kube::config::InClusterError),
    #[error("cannot make a client")]
    Client(#[source] kube::Error),
}

/// The other address to use the credentials for.
#[derive(Clone, Debug)]
pub(crate) struct Elsewhere {
    pub(crate) url: http::Uri,
    pub(crate) skip_verify: bool,
}

/// Takes the kubeconfig, if one is named, and the address if it is not the API server's. Fails when the
/// credentials are not there at all.
pub(crate) fn connector(
    kubeconfig: Option<&Path>,
    elsewhere: Option<Elsewhere>,
) -> Result<Connect, Kind> {
    let kubeconfig = kubeconfig.map(Path::to_owned);
    match &kubeconfig {
        Some(path) => drop(
            Kubeconfig::read_from(path).map_err(|source| Kind::Kubeconfig {
                path: path.clone(),
                source,
            })?,
        ),
        None => drop(kube::Config::incluster().map_err(|source| Kind::InCluster { source })?),
    }
    Ok(Arc::new(move || {
        Box::pin(connect(kubeconfig.clone(), elsewhere.clone()))
    }))
}

async fn connect(
    kubeconfig: Option<PathBuf>,
    elsewhere: Option<Elsewhere>,
) -> Result<Client, ConnectError> {
    let mut config = match kubeconfig {
        Some(path) => {
            let kubeconfig = Kubeconfig::read_from(path)?;
            let names_proxy = kubeconfig.clusters.iter().any(|named| {
                let cluster = named.cluster.as_ref();
                cluster.is_some_and(|cluster| cluster.proxy_url.is_some())
            });
            let options = KubeConfigOptions::default();
            let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
            if !names_proxy {
                // HTTPS_PROXY is meant for the way out of the cluster, not for its API server.
                config.proxy_url = None;
            }
            config
        }
        None => kube::Config::incluster()?,
    };
    if let Some(Elsewhere { url, skip_verify }) = elsewhere {
        config.cluster_url = url;
        config.accept_invalid_certs |= skip_verify;
    }
    // Failures are counted and spaced here.
    config.default_retry = false;
    Client::try_from(config).map_err(ConnectError::Client)
}
