//! Finds, identifies and follows log files.
