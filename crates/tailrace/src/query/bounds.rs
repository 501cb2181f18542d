//! The options that bound what a query reads: a span of time and a least severity.

use tailrace_query::{Bounds, severity_of, time_of};

use crate::cli::Failure;

/// Bounds of the records of every log table.
#[derive(Debug, Clone, Copy, clap::Args)]
#[group(skip)]
pub(super) struct Args {
    /// Only records of this time or later: RFC 3339, a date (its first moment in UTC), seconds since 1970, or a time back from
    /// now, such as 30m, 1h or 7d. Files that were last modified more than ten minutes before it are not read
    #[arg(long, value_name = "WHEN", value_parser = time_of, allow_hyphen_values = true)]
    since: Option<i64>,
    /// Only records before this time, given as for `--since`
    #[arg(long, value_name = "WHEN", value_parser = time_of, allow_hyphen_values = true)]
    until: Option<i64>,
    /// Only records of at least this severity: trace, debug, info, warn, error, fatal, or OpenTelemetry's number, 1 to 24
    #[arg(long, value_name = "LEVEL", value_parser = severity_of)]
    level: Option<u8>,
}

impl Args {
    /// The bounds of a query.
    ///
    /// # Errors
    ///
    /// The span ends before it begins.
    pub(super) fn bounds(self) -> Result<Bounds, Failure> {
        if let (Some(since), Some(until)) = (self.since, self.until)
            && since >= until
        {
            let text = "`--until` is not after `--since`: no record can be between them";
            return Err(Failure::Usage(text.to_owned()));
        }
        Ok(Bounds {
            since_ns: self.since,
            until_ns: self.until,
            severity_min: self.level,
        })
    }
}
