//! The messages of `google/rpc/status.proto` and `error_details.proto` with which OTLP servers refuse requests, for whoever
//! reads or writes them.

/// `google.rpc.Status`: why a request was refused.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Status {
    /// A code of gRPC, 0 to 16.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// The reason, for people.
    #[prost(string, tag = "2")]
    pub message: String,
    /// Further messages, such as [`RetryInfo`].
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

/// `google.protobuf.Any`: a message of any type.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Any {
    /// Ends with `/` and the full name of the message.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// The encoded message.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// `google.rpc.RetryInfo`: when the request may be sent again.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RetryInfo {
    /// How long the client waits.
    #[prost(message, optional, tag = "1")]
    pub retry_delay: Option<Duration>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Duration {
    /// Whole seconds.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds of the second.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}
