//! Many bad records: from a tenth of them to all. The server refuses each request that holds one.

use super::model::{World, server};
use super::refusals::{requests, sorted};
use super::*;

const RECORDS: u32 = 250;
const REQUESTS: u32 = 8;
const TOTAL: u32 = RECORDS * REQUESTS;

/// Whether a record is bad, if so many in a thousand are: scattered, and the same ones in each run.
pub(super) fn is_bad(record: u32, share: u32) -> bool {
    let mixed = (record ^ 0x5bd1_e995).wrapping_mul(0x9e37_79b1);
    let mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x85eb_ca6b);
    (mixed >> 8) % 1000 < share
}

/// A server that refuses these records, and the world it was made of.
fn bad_share(share: u32) -> (Arc<Server>, Vec<u32>, Vec<u32>) {
    let (bad, good): (Vec<u32>, Vec<u32>) = (0..TOTAL).partition(|n| is_bad(*n, share));
    let world = World::well(bad.clone());
    (server(&world), good, bad)
}

/// The most requests that finding so many bad records may take.
fn bound(bad: &[u32]) -> usize {
    2 * bad.len() * TOTAL.ilog2() as usize + 64
}

/// Everything is there from the start, and nothing comes after it.
#[tokio::test(start_paused = true)]
async fn the_good_records_between_many_bad_ones_are_delivered_at_once() {
    for share in [100, 500, 900, 990] {
        for config in [ONE, FOUR] {
            let (server, good, bad) = bad_share(share);
            let (book, diary) = (Arc::default(), Diary::default());
            let all = check_with(&server, config, requests(REQUESTS, RECORDS), &diary, &book);
            let _ = tokio::time::timeout(POLICY.hold * 4, all).await;
            let book = book.lock().unwrap().clone();
            assert_eq!(sorted(book.delivered), good, "{share}");
            assert!(book.rejected.iter().all(|n| bad.contains(n)));
            assert!(book.given_up.is_empty());
            // The last ones have nothing left to be compared with: it takes a few good ones.
            let left = bad.len() - book.rejected.len();
            let expected = 16 * (bad.len() / good.len() + 1);
            assert!(left <= expected, "{left} of {} at {share}", bad.len());
            let sent = server.seen().len();
            assert!(sent <= bound(&bad), "{sent} requests at {share}");
            let holds = diary.count("hold");
            assert!(holds <= 2, "{holds} at {share}");
        }
    }
}

/// One request of many records, most of them bad: scattered, or in one part.
#[tokio::test(start_paused = true)]
async fn the_good_records_of_a_large_request_are_found() {
    const LARGE: u32 = 5000;
    let worlds: [fn(u32) -> bool; 3] = [
        |n| is_bad(n, 900),
        |n| n < LARGE * 9 / 10,
        |n| is_bad(n, 990),
    ];
    for is_bad in worlds {
        let (bad, good): (Vec<u32>, Vec<u32>) = (0..LARGE).partition(|n| is_bad(*n));
        let server = server(&World::well(bad.clone()));
        let (book, diary) = (Arc::default(), Diary::default());
        let all = check_with(&server, ONE, requests(1, LARGE), &diary, &book);
        let _ = tokio::time::timeout(POLICY.hold * 4, all).await;
        let book = book.lock().unwrap().clone();
        // A last one among more than a thousand bad ones is found in a later search.
        let missing = good.len() - book.delivered.len();
        assert!(missing <= good.len() / 20, "{missing} of {}", good.len());
        assert!(book.rejected.iter().all(|n| bad.binary_search(n).is_ok()));
        assert!(server.seen().len() <= bound(&bad));
    }
}

/// Good ones come later: each of them is sent at once, and after a few of them nothing is left.
#[tokio::test(start_paused = true)]
async fn a_few_good_records_are_enough_for_any_number_of_bad_ones() {
    for share in [500, 990, 1000] {
        for config in [ONE, FOUR] {
            let (server, good, bad) = bad_share(share);
            let (book, diary) = (Arc::<Mutex<Book>>::default(), Diary::default());
            let (sender, receiver) = queue();
            for records in requests(REQUESTS, RECORDS) {
                assert!(sender.send(Numbers::new(records, &book)).is_ok());
            }
            let mut later = 0..12;
            let come = async {
                for n in later.by_ref() {
                    tokio::time::sleep(POLICY.hold * 5).await; // tidy: paused time
                    let record = vec![1_000_000 + n];
                    assert!(sender.send(Numbers::new(record, &book)).is_ok());
                }
                drop(sender);
            };
            tokio::join!(drive(server.clone(), receiver, config, &diary), come);
            let book = book.lock().unwrap().clone();
            assert_eq!(sorted(book.rejected), bad, "{share}");
            assert_eq!(book.delivered.len(), good.len() + 12, "{share}");
            let sent = server.seen().len();
            assert!(sent <= bound(&bad), "{sent} requests at {share}");
        }
    }
}

/// With `drop` nothing is waited for, and nothing good is dropped.
#[tokio::test(start_paused = true)]
async fn with_drop_only_bad_records_are_dropped() {
    for share in [100, 500, 900, 990, 1000] {
        for config in [ONE, FOUR] {
            let config = DriveConfig {
                on_refused: OnRefused::Drop,
                ..config
            };
            let (server, good, bad) = bad_share(share);
            let (book, diary) = (Arc::default(), Diary::default());
            let all = check_with(&server, config, requests(REQUESTS, RECORDS), &diary, &book);
            let minute = Duration::from_secs(60);
            tokio::time::timeout(minute, all).await.expect("it waits");
            let book = book.lock().unwrap().clone();
            assert_eq!(sorted(book.delivered), good, "{share}");
            let gone = [book.rejected, book.given_up].concat();
            assert_eq!(sorted(gone), bad, "{share}");
            assert_eq!(diary.count("hold"), 0);
            let sent = server.seen().len();
            assert!(sent <= bound(&bad), "{sent} requests at {share}");
        }
    }
}

/// Records that are refused while others are accepted wait, but the server does not refuse the output.
#[tokio::test(start_paused = true)]
async fn what_waits_to_be_compared_is_not_reported_as_a_hold() {
    let (server, good, _) = bad_share(500);
    let (book, diary) = (Arc::default(), Diary::default());
    let all = check_with(&server, FOUR, requests(REQUESTS, RECORDS), &diary, &book);
    assert!(tokio::time::timeout(POLICY.hold * 9, all).await.is_err());
    assert_eq!(book.lock().unwrap().delivered.len(), good.len());
    assert_eq!(diary.count("hold"), 0);
    assert!(diary.count("compare bad") >= 8);
}

/// With `drop`, an outage costs what is in flight and one attempt or two for each request that comes.
#[tokio::test(start_paused = true)]
async fn with_drop_an_outage_costs_few_attempts() {
    let server = Server::new(|_| refused());
    let config = DriveConfig {
        on_refused: OnRefused::Drop,
        ..FOUR
    };
    let book = check(&server, config, requests(100, RECORDS), &()).await;
    assert_eq!(book.given_up.len(), 100 * RECORDS as usize);
    let sent = server.seen().len();
    assert!(sent < 100 * 40 + 1100, "{sent}");
}
/// A quota that is answered with 400: one request is accepted in each window, whatever it holds. Every record is good.
#[tokio::test(start_paused = true)]
async fn a_quota_that_is_answered_as_a_refusal_costs_few_records() {
    for window in [20, 50, 1000, 60_000].map(Duration::from_millis) {
        for config in [ONE, FOUR] {
            for (count, records) in [(200, 1), (8, 25)] {
                let mut open_at = Duration::ZERO;
                let server = Server::new(move |seen| {
                    if seen.at < open_at {
                        return refused();
                    }
                    open_at = seen.at + window;
                    ok()
                });
                let book = Arc::<Mutex<Book>>::default();
                let all = check_with(&server, config, requests(count, records), &(), &book);
                let _ = tokio::time::timeout(Duration::from_secs(100_000), all).await;
                let book = book.lock().unwrap().clone();
                let rejected = book.rejected.len();
                assert!(rejected <= 4, "{rejected} rejected, {window:?}");
                assert!(book.delivered.len() + rejected == 200, "{window:?}");
            }
        }
    }
}
