//! RecordBatch to OTLP bytes; reading OTLP answers.
