//! Who sends a signal of the agent's own: its resource and its scope, encoded once. ResourceLogs and ResourceMetrics have
//! the same shape, down to the numbers of their fields, so one origin wraps both. It never sees what it wraps.

use crate::otlp::SCOPE_NAME;
use crate::value::{SCHEMA_URL, SCHEMA_URL_FIELD, SourceFacts, Value};
use crate::wire::push_bytes;

/// `resource_logs` and `resource_metrics` of a request.
const GROUPS: u8 = 1;
/// `scope_logs` of ResourceLogs, `scope_metrics` of ResourceMetrics.
const SCOPES: u8 = 2;
/// `scope` of ScopeLogs and ScopeMetrics.
const SCOPE: u8 = 1;
/// `log_records` of ScopeLogs, `metrics` of ScopeMetrics.
pub(crate) const ITEMS: u8 = 2;
/// What the tags and lengths around the items can take.
const WRAPPING_MAX: usize = 24;

/// The resource and the scope of the agent's own logs and metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The fields of a ResourceLogs or ResourceMetrics but for the items.
    resource: Vec<u8>,
    /// The fields of a ScopeLogs or ScopeMetrics but for the items.
    scope: Vec<u8>,
}

impl Origin {
    /// Encodes the attributes of a resource, and the scope `tailrace` in this version. Of attributes with one name the
    /// first stays.
    pub fn new(resource: &[(String, Value)], version: &str) -> Origin {
        let mut scope = Vec::new();
        push_bytes(&mut scope, 1, SCOPE_NAME.as_bytes());
        push_bytes(&mut scope, 2, version.as_bytes());
        let mut fields = Vec::new();
        push_bytes(&mut fields, SCOPE, &scope);
        push_bytes(&mut fields, SCHEMA_URL_FIELD, SCHEMA_URL.as_bytes());
        Origin {
            resource: SourceFacts::new(resource, &[]).resource,
            scope: fields,
        }
    }

    /// The size of a request with so many bytes of items, or a little more.
    pub(crate) fn request_len(&self, items: usize) -> usize {
        self.resource.len() + self.scope.len() + WRAPPING_MAX + items
    }

    /// The request with these items, each of which is a field [`ITEMS`].
    pub(crate) fn request(&self, items: &[u8]) -> Vec<u8> {
        let mut scope = Vec::with_capacity(self.scope.len() + items.len());
        scope.extend_from_slice(&self.scope);
        scope.extend_from_slice(items);
        let mut group = Vec::with_capacity(self.request_len(items.len()));
        group.extend_from_slice(&self.resource);
        push_bytes(&mut group, SCOPES, &scope);
        let mut request = Vec::with_capacity(self.request_len(items.len()));
        push_bytes(&mut request, GROUPS, &group);
        request
    }
}
