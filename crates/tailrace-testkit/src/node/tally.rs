//! The count of a [`super::Node`]: log records by the pod that their resource names. Takes messages, decodes their
//! resources and walks over their records; never looks into one.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

/// A pod, and what an agent should make of it.
pub struct Expected {
    /// As the API server reports it.
    pub pod: serde_json::Value,
    /// The resource attributes of each of its records, among others.
    pub attributes: BTreeMap<String, String>,
}

/// What has arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Log records, of known pods or not.
    pub records: u64,
    /// Those of them whose resource says all that is expected of their pod.
    pub labelled: u64,
    /// Pods with exactly as many records as they should have, all labelled.
    pub complete_pods: u64,
    /// Bytes of the requests' bodies, as sent.
    pub wire_bytes: u64,
    /// Requests that were no OTLP.
    pub refused: u64,
    /// What was wrong with the first resource that was not as expected.
    pub fault: Option<String>,
}

pub(super) struct Tally {
    /// By uid.
    pods: HashMap<String, Pod>,
    totals: Totals,
}

struct Pod {
    attributes: BTreeMap<String, String>,
    records: u64,
    labelled: u64,
}

/// `ExportLogsServiceRequest` as far as it is looked at: a record stays the bytes it is.
#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(message, repeated, tag = "1")]
    groups: Vec<Group>,
}

#[derive(Clone, PartialEq, Message)]
struct Group {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scopes: Vec<Scope>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(bytes = "bytes", repeated, tag = "2")]
    records: Vec<Bytes>,
}

const UID: &str = "k8s.pod.uid";

impl Tally {
    /// Pods without the attribute of their uid are never labelled.
    pub(super) fn new(pods: Vec<Expected>) -> Tally {
        let pod = |Expected { attributes, .. }: Expected| {
            let uid = attributes.get(UID).cloned().unwrap_or_default();
            let pod = Pod {
                attributes,
                records: 0,
                labelled: 0,
            };
            (uid, pod)
        };
        Tally {
            pods: pods.into_iter().map(pod).collect(),
            totals: Totals::default(),
        }
    }

    /// Counts the records of one message; nothing of a message that does not decode.
    pub(super) fn take(&mut self, message: Bytes, wire_bytes: usize) -> Result<(), String> {
        let request = Request::decode(message).map_err(|error| error.to_string())?;
        self.totals.wire_bytes += wire_bytes as u64;
        for group in request.groups {
            let records: usize = group.scopes.iter().map(|scope| scope.records.len()).sum();
            let resource = group.resource.unwrap_or_default();
            self.count(&resource, records as u64);
        }
        Ok(())
    }

    pub(super) fn refuse(&mut self) {
        self.totals.refused += 1;
    }

    pub(super) fn records(&self) -> u64 {
        self.totals.records
    }

    /// A pod is complete with exactly `records` records.
    pub(super) fn totals(&self, records: u64) -> Totals {
        let complete = |pod: &&Pod| pod.records == records && pod.labelled == records;
        Totals {
            complete_pods: self.pods.values().filter(complete).count() as u64,
            ..self.totals.clone()
        }
    }

    fn count(&mut self, resource: &Resource, records: u64) {
        self.totals.records += records;
        let Some(pod) = text(resource, UID).and_then(|uid| self.pods.get_mut(uid)) else {
            self.fault(format!("of no known pod: {resource:?}"));
            return;
        };
        pod.records += records;
        let wrong = pod
            .attributes
            .iter()
            .find(|(key, value)| text(resource, key) != Some(value));
        if let Some((key, value)) = wrong {
            let fault = format!("{key} should be {value}: {resource:?}");
            self.fault(fault);
            return;
        }
        pod.labelled += records;
        self.totals.labelled += records;
    }

    fn fault(&mut self, fault: String) {
        self.totals.fault.get_or_insert(fault);
    }
}

/// An attribute that is a text.
fn text<'a>(resource: &'a Resource, key: &str) -> Option<&'a str> {
    let pair = resource.attributes.iter().find(|pair| pair.key == key)?;
    match pair.value.as_ref()? {
        AnyValue {
            value: Some(Value::StringValue(text)),
            ..
        } => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
    use opentelemetry_proto::tonic::common::v1::KeyValue;
    use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
    use serde_json::json;

    use super::*;

    fn expected(uid: &str) -> Expected {
        let attributes = [(UID, uid), ("k8s.pod.label.app", "web")];
        Expected {
            pod: json!({}),
            attributes: attributes.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        }
    }

    fn group(attributes: &[(&str, &str)], scopes: &[usize]) -> ResourceLogs {
        let pair = |&(key, value): &(&str, &str)| KeyValue {
            key: key.to_owned(),
            value: Some(AnyValue {
                value: Some(Value::StringValue(value.to_owned())),
            }),
            ..KeyValue::default()
        };
        let record = LogRecord {
            severity_text: "INFO".to_owned(),
            ..LogRecord::default()
        };
        let scope = |&records: &usize| ScopeLogs {
            log_records: vec![record.clone(); records],
            ..ScopeLogs::default()
        };
        ResourceLogs {
            resource: Some(Resource {
                attributes: attributes.iter().map(pair).collect(),
                ..Resource::default()
            }),
            scope_logs: scopes.iter().map(scope).collect(),
            ..ResourceLogs::default()
        }
    }

    fn take(tally: &mut Tally, groups: Vec<ResourceLogs>) {
        let request = ExportLogsServiceRequest {
            resource_logs: groups,
        };
        tally.take(request.encode_to_vec().into(), 10).unwrap();
    }

    const WEB: (&str, &str) = ("k8s.pod.label.app", "web");

    #[test]
    fn a_pod_is_complete_when_all_its_records_are_there_and_labelled() {
        let mut tally = Tally::new(vec![expected("a"), expected("b")]);
        take(&mut tally, vec![group(&[WEB, (UID, "a")], &[2, 1])]);
        take(
            &mut tally,
            vec![group(&[("x", "y"), WEB, (UID, "b")], &[2])],
        );
        let totals = Totals {
            records: 5,
            labelled: 5,
            complete_pods: 1,
            wire_bytes: 20,
            ..Totals::default()
        };
        assert_eq!(tally.totals(3), totals);
        take(&mut tally, vec![group(&[WEB, (UID, "a")], &[1])]);
        assert_eq!(tally.totals(3).complete_pods, 0, "one too many");
    }

    #[test]
    fn a_record_without_its_label_is_told() {
        let mut tally = Tally::new(vec![expected("a")]);
        let wrong = group(&[(UID, "a"), ("k8s.pod.label.app", "db")], &[1]);
        take(&mut tally, vec![wrong, group(&[(UID, "a")], &[1])]);
        let totals = tally.totals(2);
        let counts = (totals.records, totals.labelled, totals.complete_pods);
        assert_eq!(counts, (2, 0, 0));
        let fault = totals.fault.unwrap();
        assert!(fault.starts_with("k8s.pod.label.app should be web"));
        assert!(fault.contains("db"), "{fault}");
    }

    #[test]
    fn a_record_of_no_known_pod_is_counted_and_told() {
        let mut tally = Tally::new(vec![expected("a")]);
        take(
            &mut tally,
            vec![group(&[(UID, "z"), WEB], &[3]), group(&[], &[1])],
        );
        let totals = tally.totals(0);
        assert_eq!((totals.records, totals.labelled), (4, 0));
        assert!(totals.fault.unwrap().starts_with("of no known pod"));
    }

    #[test]
    fn what_is_no_otlp_counts_nothing() {
        let mut tally = Tally::new(vec![expected("a")]);
        assert!(tally.take(Bytes::from_static(b"\x0a\x7f"), 2).is_err());
        assert_eq!(tally.totals(1), Totals::default());
    }
}
