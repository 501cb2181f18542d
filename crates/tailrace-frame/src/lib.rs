//! Bytes to records: lines, CRI, docker, size limits.
