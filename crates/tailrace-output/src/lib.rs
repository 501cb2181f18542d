//! One request over pooled clients until it is delivered.
