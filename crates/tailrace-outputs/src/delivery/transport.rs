//! The trait of what sends a request.

use std::future::Future;
use std::pin::Pin;

use super::compression::CompressionSearch;
use super::outcome::Answered;
use super::payload::Payload;
use super::policy::RetryPolicy;

/// The future of one attempt.
pub type Attempt<'a> = Pin<Box<dyn Future<Output = Answered> + Send + 'a>>;

/// How an output sends one payload once, and the state that all its attempts share.
pub trait Transport: Send + Sync {
    /// Sends the payload once, as it is.
    fn attempt<'a>(&'a self, payload: &'a Payload) -> Attempt<'a>;

    /// The search for a compression that the other side accepts.
    fn compression(&self) -> &CompressionSearch;

    /// When to try again.
    fn retry_policy(&self) -> &RetryPolicy;
}
