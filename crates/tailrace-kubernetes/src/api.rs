//! The API server as the source: one list of this node's pods, then one watch from its version on. Updates the
//! store through a client. Every request has the node's field selector: RBAC cannot narrow pods to one node.
//!
//! The list is asked for with `resourceVersion=0`, which the API server answers from its memory. It may be a
//! little old, which does no harm: what is gone by it is only marked so and kept, and the watch brings it up to
//! date. A watch that ends or fails is taken up again at the last version seen, of an object or a bookmark;
//! only when that is too old (410) is there another list.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::TryStreamExt;
use kube::Client;
use kube::api::{ListParams, WatchParams};
use kube::core::{Request, WatchEvent};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::attempts::backoff;
use crate::connect::Connect;
use crate::health::{Failure, Health};
use crate::store::Store;
use crate::wire;

const PODS: &str = "/api/v1/pods";

/// For an answer to begin or, to a list, to be complete.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// The server ends a watch after this time; then it is taken up again.
const WATCH_SECONDS: u32 = 290;

/// A watch that is silent for longer than it was to last is dead.
const SILENCE_MAX: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 15);

/// A watch that ends by itself sooner than this did not work.
const WATCH_MIN: Duration = Duration::from_secs(1);

const PERMISSION: &str =
    "; the service account needs get, list and watch on pods in all namespaces";

/// Follows the pods of the node. Never returns; a failure is reported to `health` and retried.
pub(crate) async fn follow(
    store: &Store,
    health: &Health,
    connect: &Connect,
    node_name: &str,
) -> Infallible {
    let mut follower = Follower {
        store,
        health,
        fields: format!("spec.nodeName={node_name}"),
        backoff: backoff(),
        version: None,
    };
    let mut client = None;
    loop {
        match follower.step(client.take(), connect).await {
            Ok(used) => client = Some(used),
            Err(failure) => {
                if failure.is_gone() {
                    follower.version = None;
                }
                health.failed("cannot follow the pods", PERMISSION, &failure);
                tokio::time::sleep(follower.backoff.next_delay()).await;
            }
        }
    }
}

struct Follower<'a> {
    store: &'a Store,
    health: &'a Health,
    fields: String,
    backoff: tailrace_model::backoff::Backoff,
    /// Where to watch on from. None: list first.
    version: Option<String>,
}

impl Follower<'_> {
    /// One list, or one watch to its end.
    async fn step(&mut self, client: Option<Client>, connect: &Connect) -> Result<Client, Failure> {
        let client = match client {
            Some(client) => client,
            None => connect().await?,
        };
        match self.version.clone() {
            None => self.list(&client).await?,
            Some(version) => self.watch(&client, &version).await?,
        }
        Ok(client)
    }

    async fn list(&mut self, client: &Client) -> Result<(), Failure> {
        self.health.lists.fetch_add(1, Ordering::Relaxed);
        let params = ListParams::default().fields(&self.fields).match_any();
        let request = Request::new(PODS).list(&params).map_err(Failure::Build)?;
        let version = take_list(client, request, self.store, self.health).await?;
        self.version = Some(version);
        Ok(())
    }

    async fn watch(&mut self, client: &Client, version: &str) -> Result<(), Failure> {
        self.health.watches.fetch_add(1, Ordering::Relaxed);
        let params = WatchParams::default()
            .fields(&self.fields)
            .timeout(WATCH_SECONDS);
        let request = Request::new(PODS).watch(&params, version);
        let answer = client.request_events::<Value>(request.map_err(Failure::Build)?);
        let begin = Instant::now();
        let events = timeout(ANSWER_MAX, answer).await;
        let mut events = pin!(events.map_err(|_| Failure::Slow(ANSWER_MAX.as_secs()))??);
        self.health.succeeded();
        loop {
            let next = timeout(SILENCE_MAX, events.try_next()).await;
            let next = next.map_err(|_| Failure::Slow(SILENCE_MAX.as_secs()))??;
            // Events alone do not show that it works: a connection may be cut after each.
            let has_lasted = begin.elapsed() >= WATCH_MIN;
            if has_lasted {
                self.backoff.reset();
            }
            match next {
                Some(event) => self.take(event)?,
                None if has_lasted => return Ok(()),
                None => return Err(Failure::Closed),
            }
        }
    }

    /// The version moves on even if the pod cannot be read, or it would be sent again without end.
    fn take(&mut self, event: WatchEvent<Value>) -> Result<(), Failure> {
        let (object, is_gone) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
            WatchEvent::Deleted(object) => (object, true),
            WatchEvent::Bookmark(bookmark) => {
                self.version = Some(bookmark.metadata.resource_version);
                return Ok(());
            }
            WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
        };
        if let Some(version) = object["metadata"]["resourceVersion"].as_str() {
            self.version = Some(version.to_owned());
        }
        match serde_json::from_value::<wire::Pod>(object) {
            Ok(pod) if is_gone => self.store.remove(pod),
            Ok(pod) => self.store.apply(pod),
            Err(_) => {
                self.health.unreadable.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

/// Asks for a list and makes it all the pods there are. Gives its version.
pub(crate) async fn take_list(
    client: &Client,
    request: http::Request<Vec<u8>>,
    store: &Store,
    health: &Health,
) -> Result<String, Failure> {
    let answer = timeout(ANSWER_MAX, client.request_text(request)).await;
    let text = answer.map_err(|_| Failure::Slow(ANSWER_MAX.as_secs()))??;
    let list: wire::List<'_> = serde_json::from_str(&text).map_err(Failure::NoList)?;
    let mut pods = Vec::with_capacity(list.items.len());
    for item in list.items {
        match serde_json::from_str::<wire::Pod>(item.get()) {
            Ok(pod) if !pod.metadata.uid.is_empty() => pods.push(pod),
            _ => {
                health.unreadable.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    store.replace(pods);
    health.synced.store(true, Ordering::Release);
    health.succeeded();
    Ok(list.metadata.resource_version)
}
