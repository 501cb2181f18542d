//! What the collector shall answer to one request, and the gate that holds an answer back until the
//! test says so. Plain data; it never touches a socket.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;

use crate::status::{Any, retry_info};

/// The answer to one request, over HTTP or gRPC as the request came.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) details: Vec<Any>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Bytes>,
    pub(crate) trailers_only: bool,
    pub(crate) partial: Option<(i64, String)>,
    pub(crate) gate: Option<Gate>,
    pub(crate) body_gate: Option<Gate>,
    pub(crate) delay: Duration,
    pub(crate) end: End,
}

/// The code an answer carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// An HTTP status; to a gRPC request, except 200, the answer of a proxy: no `grpc-status`.
    Http(u16),
    /// A gRPC code; to an HTTP request status 500.
    Grpc(i32),
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// As it should.
    Whole,
    /// The connection closes before anything was answered.
    Close,
    /// The same by a TCP reset.
    Reset,
    /// The connection breaks after the headers and a part of the body.
    Cut,
}

impl Answer {
    /// Everything is accepted.
    pub fn ok() -> Answer {
        Answer::status(200)
    }

    /// An HTTP status. 2xx accepts. To a gRPC request anything else is what a proxy answers: that
    /// status and no `grpc-status`.
    pub fn status(status: u16) -> Answer {
        Answer {
            code: Code::Http(status),
            message: String::new(),
            details: Vec::new(),
            headers: Vec::new(),
            body: None,
            trailers_only: false,
            partial: None,
            gate: None,
            body_gate: None,
            delay: Duration::ZERO,
            end: End::Whole,
        }
    }

    /// A gRPC code with its message, in trailers after an empty body.
    pub fn grpc(code: i32, message: &str) -> Answer {
        Answer {
            code: Code::Grpc(code),
            ..Answer::ok().message(message)
        }
    }

    /// Accepts the request but for `rejected` records, its last ones.
    pub fn partial(rejected: i64, message: &str) -> Answer {
        Answer {
            partial: Some((rejected, message.to_owned())),
            ..Answer::ok()
        }
    }

    /// 200 with a web page, as captive portals and wrong ports answer.
    pub fn html() -> Answer {
        Answer::ok()
            .header("content-type", "text/html; charset=utf-8")
            .body("<!DOCTYPE html><html><body>Welcome</body></html>")
    }

    /// Closes the connection in place of an answer; the request is not accepted.
    pub fn close() -> Answer {
        Answer {
            end: End::Close,
            ..Answer::ok()
        }
    }

    /// Resets the connection in place of an answer; the request is not accepted.
    pub fn reset() -> Answer {
        Answer {
            end: End::Reset,
            ..Answer::ok()
        }
    }

    /// Accepts the request, but the answer breaks off in its body.
    pub fn cut() -> Answer {
        Answer {
            end: End::Cut,
            ..Answer::ok()
        }
    }

    /// The message of `google.rpc.Status`: in the body over HTTP, as `grpc-message` over gRPC.
    pub fn message(mut self, message: &str) -> Answer {
        self.message = message.to_owned();
        self
    }

    /// Adds a response header, such as `retry-after`.
    pub fn header(mut self, name: &str, value: &str) -> Answer {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends this body in place of the right one; over gRPC without the five bytes of a frame.
    pub fn body(mut self, body: impl Into<Bytes>) -> Answer {
        self.body = Some(body.into());
        self
    }

    /// Over gRPC, the code goes in the headers and no body follows.
    pub fn trailers_only(mut self) -> Answer {
        self.trailers_only = true;
        self
    }

    /// Adds `RetryInfo` to the details of the status.
    pub fn retry_info(mut self, delay: Duration) -> Answer {
        self.details.push(retry_info(delay));
        self
    }

    /// Answers once `gate` is open. The request counts as seen before.
    pub fn after(mut self, gate: &Gate) -> Answer {
        self.gate = Some(gate.clone());
        self
    }

    /// Sends the headers at once and the body when `gate` is open.
    pub fn body_after(mut self, gate: &Gate) -> Answer {
        self.body_gate = Some(gate.clone());
        self
    }

    /// Answers this long after the request was read, and after the gate.
    pub fn delayed(mut self, delay: Duration) -> Answer {
        self.delay = delay;
        self
    }

    /// Whether the records of the request are taken.
    pub(crate) fn accepts(&self) -> bool {
        let accepted = matches!(self.code, Code::Http(200..=299) | Code::Grpc(0));
        accepted && matches!(self.end, End::Whole | End::Cut)
    }
}

/// Holds answers back until the test opens it; it stays open.
#[derive(Clone, Debug)]
pub struct Gate {
    open: watch::Sender<bool>,
}

impl Gate {
    /// A shut gate.
    pub fn new() -> Gate {
        Gate {
            open: watch::Sender::new(false),
        }
    }

    /// Lets everything through, now and later.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    pub(crate) async fn passed(&self) {
        let mut open = self.open.subscribe();
        open.wait_for(|open| *open)
            .await
            .expect("the sender is in self");
    }
}

impl Default for Gate {
    fn default() -> Gate {
        Gate::new()
    }
}
