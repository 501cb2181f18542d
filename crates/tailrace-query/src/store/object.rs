//! An object as a stream of bytes for readers that wait.

use std::hash::{Hash, Hasher};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use bytes::Bytes;
use futures::StreamExt;
use object_store::{GetOptions, GetRange, ObjectMeta};
use tokio::sync::Semaphore;

use super::{Store, threads};

/// What is asked for at once: a request of a slow network ends before the client gives it up.
const PIECE_BYTES: u64 = 4 << 20;
/// Pieces that are fetched at the same time, and those that wait for the reader.
const AT_ONCE: usize = 2;
const AHEAD: usize = 2;

/// An object of a store.
#[derive(Clone, Debug)]
pub struct Object {
    pub(crate) store: Store,
    pub(crate) meta: ObjectMeta,
    /// The part of its path that is below what was named: its directories say something of its records.
    pub(crate) below: String,
}

impl PartialEq for Object {
    fn eq(&self, other: &Object) -> bool {
        self.meta.location == other.meta.location && self.store.url == other.store.url
    }
}

impl Eq for Object {}

impl Hash for Object {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.meta.location.hash(state);
    }
}

impl Object {
    pub(crate) fn name(&self) -> String {
        self.store.name(&self.meta.location)
    }

    /// Where it is on this machine, if it is.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.store.is_local().then(|| PathBuf::from(self.name()))
    }

    /// Begins to fetch it. The version that was listed is the one that is read, or none.
    pub(crate) fn open(&self) -> anyhow::Result<impl Read + Send + use<>> {
        // A permit for each piece: the task, which must not wait for its reader, finds room.
        let (sender, pieces) = sync_channel(AHEAD + 1);
        let room = Arc::new(Semaphore::new(AHEAD));
        let reading = Reading {
            pieces,
            room: Arc::clone(&room),
            rest: Bytes::new(),
            left: self.meta.size,
        };
        let Object { store, meta, .. } = self.clone();
        threads()?.spawn(async move {
            let starts = (0..meta.size).step_by(PIECE_BYTES as usize);
            let fetches = starts.map(|start| {
                let options = GetOptions {
                    if_match: meta.e_tag.clone(),
                    range: Some(GetRange::Bounded(start..meta.size.min(start + PIECE_BYTES))),
                    ..GetOptions::default()
                };
                let (store, location) = (store.clone(), meta.location.clone());
                async move {
                    store
                        .objects
                        .get_opts(&location, options)
                        .await?
                        .bytes()
                        .await
                }
            });
            let mut fetched = futures::stream::iter(fetches).buffered(AT_ONCE);
            while let Some(piece) = fetched.next().await {
                let Ok(permit) = room.acquire().await else {
                    return;
                };
                // The reader gives it back.
                permit.forget();
                let is_last = piece.is_err();
                if sender.send(piece).is_err() || is_last {
                    return;
                }
            }
        });
        Ok(reading)
    }
}

/// An object that is being fetched.
struct Reading {
    pieces: Receiver<object_store::Result<Bytes>>,
    room: Arc<Semaphore>,
    rest: Bytes,
    /// Bytes that are to come, those of `rest` included.
    left: u64,
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() && self.left > 0 {
            let piece = self
                .pieces
                .recv()
                .map_err(|_| io::Error::other("fetching was given up"))?;
            self.room.add_permits(1);
            self.rest = piece.map_err(io::Error::other)?;
        }
        let count = buffer.len().min(self.rest.len());
        buffer[..count].copy_from_slice(&self.rest.split_to(count));
        // An object that is longer than it was when it was listed is another one.
        self.left = self
            .left
            .checked_sub(count as u64)
            .ok_or_else(|| io::Error::other("it changed while it was read"))?;
        Ok(count)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.room.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use datafusion::execution::object_store::ObjectStoreUrl;
    use object_store::ObjectStoreExt;
    use object_store::memory::InMemory;
    use object_store::path::Path;

    /// An object of so many bytes, and what it holds.
    async fn object(len: usize) -> (Object, Vec<u8>) {
        let bytes: Vec<u8> = (0..len).map(|at| (at / 7 % 251) as u8).collect();
        let objects = Arc::new(InMemory::new());
        let location = Path::from("a/b.log");
        objects
            .put(&location, bytes.clone().into())
            .await
            .expect("memory takes it");
        let meta = objects.head(&location).await.expect("it is there");
        let url = ObjectStoreUrl::parse("memory://a").expect("valid");
        let store = Store { url, objects };
        (
            Object {
                store,
                meta,
                below: "b.log".to_owned(),
            },
            bytes,
        )
    }

    #[tokio::test]
    async fn all_bytes_come_in_their_order() {
        for len in [0, 1, PIECE_BYTES as usize, PIECE_BYTES as usize * 7 + 5] {
            let (object, bytes) = object(len).await;
            let mut read = Vec::new();
            object
                .open()
                .and_then(|mut it| Ok(it.read_to_end(&mut read)?))
                .expect("it can be read");
            assert!(read == bytes, "{len}");
        }
    }

    #[tokio::test]
    async fn another_version_is_an_error() {
        let (object, _) = object(10).await;
        object
            .store
            .objects
            .put(&object.meta.location, "another".into())
            .await
            .expect("memory takes it");
        let read = object
            .open()
            .and_then(|mut it| Ok(it.read_to_end(&mut Vec::new())?));
        assert!(read.is_err());
    }

    #[tokio::test]
    async fn a_reader_that_goes_ends_the_fetching() {
        let (object, _) = object(PIECE_BYTES as usize * 9).await;
        let mut reading = object.open().expect("it is there");
        let mut one = [0];
        reading.read_exact(&mut one).expect("there are bytes");
        drop(reading);
    }
}
