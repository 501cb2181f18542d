//! An object as a stream of bytes for readers that wait.

use std::hash::{Hash, Hasher};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::{GetOptions, ObjectMeta};
use tokio::sync::Semaphore;

use super::{Store, threads};

/// Pieces that are fetched ahead.
const AHEAD: usize = 8;

/// An object of a store.
#[derive(Clone, Debug)]
pub struct Object {
    pub(crate) store: Store,
    pub(crate) meta: ObjectMeta,
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

    /// Begins to fetch it. The version that was listed is the one that is read, or none.
    pub(crate) fn open(&self) -> anyhow::Result<impl Read + Send + use<>> {
        // A permit for each piece: the task, which must not wait for its reader, finds room.
        let (sender, pieces) = sync_channel(AHEAD);
        let room = Arc::new(Semaphore::new(AHEAD));
        let reading = Reading {
            pieces,
            room: Arc::clone(&room),
            rest: Bytes::new(),
            is_over: false,
        };
        let Object { store, meta } = self.clone();
        threads()?.spawn(async move {
            let options = GetOptions {
                if_match: meta.e_tag,
                ..GetOptions::default()
            };
            let mut stream = match store.objects.get_opts(&meta.location, options).await {
                Ok(answer) => answer.into_stream(),
                Err(error) => return drop(sender.send(Err(error))),
            };
            loop {
                let piece = stream.try_next().await;
                let is_last = !matches!(piece, Ok(Some(_)));
                let Ok(permit) = room.acquire().await else {
                    return;
                };
                // The reader gives it back.
                permit.forget();
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
    /// `None` is the end.
    pieces: Receiver<object_store::Result<Option<Bytes>>>,
    room: Arc<Semaphore>,
    rest: Bytes,
    is_over: bool,
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() && !self.is_over {
            let piece = self
                .pieces
                .recv()
                .map_err(|_| io::Error::other("fetching was given up"))?;
            self.room.add_permits(1);
            match piece.map_err(io::Error::other)? {
                Some(piece) => self.rest = piece,
                None => self.is_over = true,
            }
        }
        let count = buffer.len().min(self.rest.len());
        buffer[..count].copy_from_slice(&self.rest.split_to(count));
        Ok(count)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.room.close();
    }
}
