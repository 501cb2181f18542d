//! `google.rpc.Status` and its details as prost messages, for answers and as an oracle for code that reads them.

/// `google.rpc.Status` (google/rpc/status.proto).
#[derive(Clone, PartialEq, prost::Message)]
pub struct Status {
    /// A gRPC code, 0 to 16.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// For people.
    #[prost(string, tag = "2")]
    pub message: String,
    /// Typed details such as [`RetryInfo`].
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Any {
    /// `type.googleapis.com/` and the full name of the message.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// The encoded message.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// `google.rpc.RetryInfo` (google/rpc/error_details.proto).
#[derive(Clone, PartialEq, prost::Message)]
pub struct RetryInfo {
    /// How long the client should wait.
    #[prost(message, optional, tag = "1")]
    pub retry_delay: Option<ProtoDuration>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ProtoDuration {
    /// Whole seconds.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds of the second.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// A detail that asks the client to wait `delay` before it retries.
pub fn retry_info(delay: std::time::Duration) -> Any {
    use prost::Message;

    let info = RetryInfo {
        retry_delay: Some(ProtoDuration {
            seconds: i64::try_from(delay.as_secs()).unwrap_or(i64::MAX),
            nanos: i32::try_from(delay.subsec_nanos()).unwrap_or(0),
        }),
    };
    Any {
        type_url: "type.googleapis.com/google.rpc.RetryInfo".to_owned(),
        value: info.encode_to_vec(),
    }
}
