//! How words look that `try` and `test` print for people, and how wide a line may be.

use std::fmt::Display;
use std::io::{self, Write};

use crate::printed::Printer;

/// A printer for standard output.
pub(crate) fn printer<W: Write>(out: W) -> Printer<W> {
    Printer::new(out)
}

/// What went as it should.
pub(crate) fn good<T: Display>(text: T) -> T {
    text
}

/// An error.
pub(crate) fn bad<T: Display>(text: T) -> T {
    text
}

/// What may need a look.
pub(crate) fn warn<T: Display>(text: T) -> T {
    text
}

/// What matters less than the rest.
pub(crate) fn dim<T: Display>(text: T) -> T {
    text
}

/// The columns that a line on standard output may have: `COLUMNS`, else those of the terminal. `None` for a file or a pipe.
pub(crate) fn width() -> Option<u16> {
    let columns = std::env::var("COLUMNS").ok();
    let columns = columns.and_then(|columns| columns.parse().ok());
    let terminal = || Some(rustix::termios::tcgetwinsize(io::stdout()).ok()?.ws_col);
    columns.or_else(terminal).filter(|&columns| columns > 0)
}
