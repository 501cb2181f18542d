//! Catches panics in what a worker makes of a batch, and says what they said.
//!
//! The text of a panic goes to the caller instead of the standard error: while a batch is cut down to the record at
//! fault it panics again and again. Panics anywhere else are reported as ever. Decides nothing about records.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// The last panic, while one would be caught here; `None` outside of [`catch`].
    static SAID: RefCell<Option<Panic>> = const { RefCell::new(None) };
}

/// A panic that was caught.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Panic {
    /// What it said: that may quote the record.
    pub(crate) text: String,
    /// The line of the source where it happened.
    pub(crate) at: String,
}

/// The longest text that is kept: a panic may quote the record.
const TEXT_BYTES_MAX: usize = 1024;

/// Runs something. If it panics, gives what the panic said and where; whatever `run` changed may be half done then.
pub(crate) fn catch<T>(run: impl FnOnce() -> T) -> Result<T, Panic> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |panic| {
            if !keep(panic) {
                report(panic);
            }
        }));
    });
    SAID.set(Some(Panic::default()));
    let result = catch_unwind(AssertUnwindSafe(run));
    let said = SAID.take().unwrap_or_default();
    result.map_err(|_| said)
}

/// Keeps what a panic says if it is to be caught on this thread.
fn keep(panic: &PanicHookInfo<'_>) -> bool {
    SAID.with(|said| {
        let Ok(mut said) = said.try_borrow_mut() else {
            return false;
        };
        let Some(said) = &mut *said else {
            return false;
        };
        let text = panic.payload_as_str().unwrap_or("a panic without a text");
        *said = Panic {
            text: shortened(text).to_owned(),
            at: panic
                .location()
                .map(ToString::to_string)
                .unwrap_or_default(),
        };
        true
    })
}

fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_says_what_and_where() {
        assert_eq!(catch(|| 3), Ok(3));
        let panic = catch(|| panic!("no {}", 7)).unwrap_err();
        assert_eq!(panic.text, "no 7");
        assert!(panic.at.contains("contain.rs:"), "{panic:?}");
        let long = catch(|| panic!("{}", "\u{e9}".repeat(4000))).unwrap_err();
        assert_eq!(long.text.len(), TEXT_BYTES_MAX);
        let odd = catch(|| std::panic::panic_any(7)).unwrap_err();
        assert_eq!(odd.text, "a panic without a text");
        assert!(SAID.take().is_none(), "no panic is kept outside");
    }
}
