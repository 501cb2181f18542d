//! The order of the requests of outputs that write lines.
//!
//! Workers encode several batches of one input at a time, and finish them in any order. A batch takes a number for
//! each such output when it is framed, which happens in the order in which it was read, and its requests are submitted
//! when all batches with lower numbers have submitted theirs. Batches that wait for that are bounded by the credit
//! that they hold. Never waits: whoever submits last submits for those that waited for it.
//!
//! An output that catches up takes its numbers from the same [`Order`] as in the shared reading of the input, so that
//! its requests are in order across both changes. OTLP outputs have none: records carry their time.

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The order of one input's requests for one output.
#[derive(Debug)]
pub(crate) struct Order<T>(Mutex<State<T>>);

#[derive(Debug)]
struct State<T> {
    /// The number of the next batch that is framed.
    framed: u64,
    /// The number of the next batch whose requests may be submitted.
    next: u64,
    /// The requests of `next` and of batches after it, by number.
    waiting: BTreeMap<u64, Waiting<T>>,
}

/// The requests of a batch that are not submitted yet.
#[derive(Debug)]
struct Waiting<T> {
    requests: Vec<T>,
    /// More of the batch will follow: those behind it wait.
    is_open: bool,
}

/// The orders of one input: one for each output of the pipeline that writes lines.
#[derive(Debug)]
pub(crate) struct Orders<T>(Vec<Option<Order<T>>>);

/// The numbers that a batch has taken. Every one of them has to be submitted, or passed.
#[derive(Debug)]
pub(crate) struct Turns<T> {
    orders: Option<Arc<Orders<T>>>,
    /// By output; empty if no output has an order.
    numbers: Vec<Option<u64>>,
}

impl<T> Order<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&self) -> u64 {
        let mut state = self.lock();
        state.framed += 1;
        state.framed - 1
    }

    /// Submits the requests of a batch and of those that waited for it, as soon as its number is the next one. If
    /// `is_open`, more requests of the batch will follow.
    fn submit(&self, number: u64, requests: Vec<T>, is_open: bool, mut submit: impl FnMut(T)) {
        // Held while submitting: another worker may have the next number.
        let mut state = self.lock();
        let waiting = state.waiting.entry(number).or_insert_with(|| Waiting {
            requests: Vec::new(),
            is_open,
        });
        waiting.requests.extend(requests);
        waiting.is_open = is_open;
        loop {
            let next = state.next;
            let Some(waiting) = state.waiting.get_mut(&next) else {
                break;
            };
            take(&mut waiting.requests)
                .into_iter()
                .for_each(&mut submit);
            if waiting.is_open {
                break;
            }
            state.waiting.remove(&next);
            state.next += 1;
        }
    }
}

impl<T> Default for Order<T> {
    fn default() -> Self {
        Self(Mutex::new(State {
            framed: 0,
            next: 0,
            waiting: BTreeMap::new(),
        }))
    }
}

impl<T> Orders<T> {
    /// For outputs of which these write lines.
    pub(crate) fn new(is_ordered: impl Iterator<Item = bool>) -> Arc<Self> {
        let order = |is_ordered: bool| is_ordered.then(Order::default);
        Arc::new(Self(is_ordered.map(order).collect()))
    }

    /// How many outputs there are.
    pub(crate) fn outputs(&self) -> usize {
        self.0.len()
    }

    /// Takes the next number for each of the outputs that a batch is framed for. Call it under the lock of the framing,
    /// and before the tracker knows how far that is.
    pub(crate) fn take(self: &Arc<Self>, is_framed_for: impl Fn(usize) -> bool) -> Turns<T> {
        if self.0.iter().all(Option::is_none) {
            return Turns::default();
        }
        let orders = self.0.iter().enumerate();
        let number = |(output, order): (usize, &Option<Order<T>>)| {
            let order = order.as_ref().filter(|_| is_framed_for(output))?;
            Some(order.number())
        };
        Turns {
            numbers: orders.map(number).collect(),
            orders: Some(Arc::clone(self)),
        }
    }
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self {
            orders: None,
            numbers: Vec::new(),
        }
    }
}

impl<T> Turns<T> {
    /// Submits the requests of the batch for an output: now, or when it is their turn.
    pub(crate) fn submit(&mut self, output: usize, requests: Vec<T>, submit: impl FnMut(T)) {
        let number = self.numbers.get_mut(output).and_then(Option::take);
        match self.order(output).zip(number) {
            Some((order, number)) => order.submit(number, requests, false, submit),
            None => requests.into_iter().for_each(submit),
        }
    }

    /// Submits some requests of the batch for an output; others will follow.
    pub(crate) fn submit_some(&self, output: usize, requests: Vec<T>, submit: impl FnMut(T)) {
        let number = self.numbers.get(output).copied().flatten();
        match self.order(output).zip(number) {
            Some((order, number)) => order.submit(number, requests, true, submit),
            None => requests.into_iter().for_each(submit),
        }
    }

    fn order(&self, output: usize) -> Option<&Order<T>> {
        let orders = self.orders.as_ref()?;
        orders.0[output].as_ref()
    }

    /// The batch has no requests for the outputs that are left; those behind it go on.
    pub(crate) fn pass(&mut self, mut submit: impl FnMut(usize, T)) {
        let Some(orders) = &self.orders else { return };
        let numbers = take(&mut self.numbers).into_iter().enumerate();
        for (output, number) in numbers {
            if let Some((order, number)) = orders.0[output].as_ref().zip(number) {
                order.submit(number, Vec::new(), false, |request| submit(output, request));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whoever is ready first, and whether or not a batch has requests, they come out as framed.
        #[test]
        fn requests_come_out_in_the_order_of_framing(
            priorities in prop::collection::vec((any::<u16>(), 0..3_usize), 1..40),
        ) {
            let orders = Orders::new([true, false].into_iter());
            let mut batches: Vec<_> = priorities
                .into_iter()
                .enumerate()
                .map(|(n, (priority, requests))| (priority, n, requests, orders.take(|_| true)))
                .collect();
            let expect: Vec<(usize, usize)> = batches
                .iter()
                .flat_map(|&(_, n, requests, _)| (0..requests).map(move |request| (n, request)))
                .collect();
            batches.sort_by_key(|(priority, ..)| *priority);
            let (mut ordered, mut others) = (Vec::new(), 0);
            for (_, n, requests, mut turns) in batches {
                let requests: Vec<_> = (0..requests).map(|request| (n, request)).collect();
                turns.submit(1, requests.clone(), |_| others += 1);
                if !requests.is_empty() {
                    turns.submit(0, requests, |request| ordered.push(request));
                }
                turns.pass(|_, request| ordered.push(request));
            }
            prop_assert_eq!(others, expect.len());
            prop_assert_eq!(ordered, expect);
        }
    }

    #[test]
    fn a_batch_takes_no_number_for_an_output_that_it_is_not_for() {
        let orders = Orders::new([true, true].into_iter());
        let mut of_one = orders.take(|output| output == 0);
        let mut of_both = orders.take(|_| true);
        let mut seen = Vec::new();
        of_both.submit(1, vec!['b'], |request| seen.push(request));
        of_both.submit(0, vec!['c'], |request| seen.push(request));
        assert_eq!(seen, ['b']);
        of_one.submit(0, vec!['a'], |request| seen.push(request));
        assert_eq!(seen, ['b', 'a', 'c']);
    }

    #[test]
    fn what_is_behind_a_batch_in_parts_waits_for_its_last_part() {
        let orders = Orders::new([true].into_iter());
        let mut first = orders.take(|_| true);
        let mut second = orders.take(|_| true);
        let mut seen = Vec::new();
        second.submit_some(0, vec!['c'], |request| seen.push(request));
        first.submit_some(0, vec!['a'], |request| seen.push(request));
        assert_eq!(seen, ['a'], "at once, but for what is behind it");
        second.submit(0, vec!['d'], |request| seen.push(request));
        first.submit_some(0, Vec::new(), |request| seen.push(request));
        first.submit(0, vec!['b'], |request| seen.push(request));
        assert_eq!(seen, ['a', 'b', 'c', 'd']);
    }
}
