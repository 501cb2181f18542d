//! What a client costs: a share of a core, with what was saved up. It is charged on the thread of the client. A client that
//! owes much because of its condition is ended, since it would wait for long; without a condition it is slowed.

use std::time::{Duration, Instant};

use crate::admin::budget::Budget;
use crate::admin::cpu::ThreadClock;

/// The share of one core for a client, and what may be saved up of it.
const CPU_PART: u32 = 20;
const CPU_BURST: Duration = Duration::from_secs(1);
/// A client with a condition that would have to wait longer is ended.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Characters of a condition in a message.
const CONDITION_CHARS_MAX: usize = 200;

pub(super) struct Cost {
    clock: ThreadClock,
    begin: Instant,
    budget: Budget,
    /// The time of the thread that was charged.
    counted: Duration,
}

impl Default for Cost {
    /// Of the calling thread, which serves one client only.
    fn default() -> Self {
        Self {
            clock: ThreadClock::new(),
            begin: Instant::now(),
            budget: Budget::new(CPU_PART, CPU_BURST),
            counted: Duration::ZERO,
        }
    }
}

impl Cost {
    /// Charges what the thread used since the last call, for so many records, and waits until it may work again.
    ///
    /// # Errors
    ///
    /// The condition costs too much, in words.
    pub(super) async fn pay(
        &mut self,
        records: usize,
        condition: Option<&str>,
    ) -> Result<(), String> {
        let now = self.clock.now();
        let taken = now.saturating_sub(self.counted);
        self.counted = now;
        self.budget.take(taken, self.begin.elapsed());
        let wait = self.budget.wait();
        if let Some(condition) = condition
            && wait > WAIT_MAX
        {
            return Err(too_expensive(condition, records, taken));
        }
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        Ok(())
    }
}

fn too_expensive(condition: &str, records: usize, taken: Duration) -> String {
    let mut chars = condition.chars();
    let mut shown: String = chars.by_ref().take(CONDITION_CHARS_MAX).collect();
    if chars.next().is_some() {
        shown.push_str("...");
    }
    let percent = 100 / CPU_PART;
    format!(
        "this tap is ended, because its condition costs too much: the last {records} records took {:.1} s of a core, and a tap \
         may use {percent} % of one; use a simpler condition than `{shown}`",
        taken.as_secs_f64()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owing(seconds: u64) -> Cost {
        let mut cost = Cost::default();
        cost.budget
            .take(Duration::from_secs(seconds), Duration::ZERO);
        cost
    }

    #[tokio::test(start_paused = true)]
    async fn who_owes_much_is_ended_if_a_condition_is_why() {
        let text = owing(3).pay(7, Some("a = 1")).await.unwrap_err();
        assert!(
            text.contains("`a = 1`") && text.contains("7 records") && text.contains("5 %"),
            "{text}"
        );
        assert_eq!(owing(3).pay(7, None).await, Ok(()));
        assert_eq!(Cost::default().pay(7, Some("a = 1")).await, Ok(()));
        let long = too_expensive(&"x".repeat(1000), 1, Duration::ZERO);
        assert!(long.contains("x...`"), "{long}");
    }
}
