//! The kubelet of this node as the source: its `/pods`, polled. Updates the store through a client.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kube::Client;
use tokio::time::{Instant, sleep, sleep_until};

use crate::api::take_list;
use crate::attempts::backoff;
use crate::connect::Connect;
use crate::health::{Failure, Health};
use crate::store::Store;

/// How often it is asked when nothing is awaited.
const IDLE: Duration = Duration::from_secs(30);

/// How often it is asked at most.
const BUSY: Duration = Duration::from_secs(1);

const PERMISSION: &str =
    "; the service account needs get on nodes/pods, or on nodes/proxy before 1.33";

/// Polls the kubelet. Never returns; a failure is reported to `health` and retried.
pub(crate) async fn poll(store: &Store, health: &Health, connect: &Connect) -> Infallible {
    let mut backoff = backoff();
    let mut client = None;
    loop {
        let begin = Instant::now();
        match ask(client.take(), store, health, connect).await {
            Ok(used) => {
                client = Some(used);
                backoff.reset();
                tokio::select! {
                    () = sleep_until(begin + IDLE) => {}
                    () = async {
                        sleep_until(begin + BUSY).await;
                        store.wanted().await;
                    } => {}
                }
            }
            Err(failure) => {
                health.failed("cannot ask the kubelet for its pods", PERMISSION, &failure);
                sleep(backoff.next_delay().max(BUSY)).await;
            }
        }
    }
}

async fn ask(
    client: Option<Client>,
    store: &Store,
    health: &Health,
    connect: &Connect,
) -> Result<Client, Failure> {
    health.lists.fetch_add(1, Ordering::Relaxed);
    let client = match client {
        Some(client) => client,
        None => connect().await?,
    };
    let request = http::Request::get("/pods").body(Vec::new());
    take_list(&client, request.map_err(Failure::Http)?, store, health).await?;
    Ok(client)
}
