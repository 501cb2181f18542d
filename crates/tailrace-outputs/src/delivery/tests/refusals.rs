//! What is cut, rejected, held and given up.

use super::*;

/// Refuses what holds one of these, accepts the rest.
pub(super) fn poisoned(poison: &[u32], refusal: fn() -> Answered) -> Arc<Server> {
    let poison = poison.to_vec();
    let is_poison = move |record: &u32| poison.contains(record);
    Server::new(move |seen| {
        if seen.records.iter().any(&is_poison) {
            refusal()
        } else {
            ok()
        }
    })
}

pub(super) fn sorted(mut records: Vec<u32>) -> Vec<u32> {
    records.sort_unstable();
    records
}

pub(super) fn without(count: u32, poison: &[u32]) -> Vec<u32> {
    let good = |record: &u32| !poison.contains(record);
    (0..count).filter(good).collect()
}

/// So many requests, of so many records each.
pub(super) fn requests(count: u32, records: u32) -> impl Iterator<Item = Vec<u32>> {
    (0..count).map(move |n| (n * records..(n + 1) * records).collect())
}

/// Delivers requests that come one by one, so long after each other.
pub(super) async fn check_slowly(
    server: &Arc<Server>,
    config: DriveConfig,
    requests: impl IntoIterator<Item = Vec<u32>>,
    pause: Duration,
    observer: &dyn Observer,
    book: &Arc<Mutex<Book>>,
) -> Book {
    let (sender, receiver) = queue();
    let write = async {
        for records in requests {
            assert!(sender.send(Numbers::new(records, book)).is_ok());
            tokio::time::sleep(pause).await; // tidy: paused time
        }
        drop(sender);
    };
    tokio::join!(drive(server.clone(), receiver, config, observer), write);
    let book = book.lock().unwrap();
    book.clone()
}

/// What the searches for a good record cost at most in an outage that blames the records.
const SEARCHES: usize = 1024;

pub(super) const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn one_poison_record_in_ten_thousand_is_found_wherever_it_is() {
    for poison in [0, 1, 4999, 5000, 9998, 9999] {
        let server = poisoned(&[poison], refused);
        let book = check(&server, FOUR, requests(1, 10_000), &()).await;
        assert_eq!(book.rejected, [poison]);
        assert_eq!(sorted(book.delivered), without(10_000, &[poison]));
        let seen = server.seen();
        assert!(seen.len() <= 3 * 14 + 3, "{} requests", seen.len());
        let took = seen[seen.len() - 1].at - seen[0].at;
        assert!(
            took < Duration::from_secs(1),
            "nothing is waited for: {took:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_poison_record_alone_in_its_request_stops_nothing() {
    for config in [ONE, FOUR] {
        let poison = [0, 20, 40];
        let server = poisoned(&poison, refused);
        let book = check(&server, config, requests(50, 1), &()).await;
        assert_eq!(sorted(book.rejected), poison);
        assert_eq!(sorted(book.delivered), without(50, &poison));
        let seen = server.seen();
        let took = seen[seen.len() - 1].at - seen[0].at;
        assert!(
            took < Duration::from_secs(1),
            "nothing is waited for: {took:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn neighbours_that_are_poison_both_need_one_more() {
    for config in [ONE, FOUR] {
        let poison = [3, 4, 5, 30];
        let server = poisoned(&poison, refused);
        let book = check(&server, config, requests(50, 1), &()).await;
        assert_eq!(sorted(book.rejected), poison);
        assert_eq!(sorted(book.delivered), without(50, &poison));
    }
}

#[tokio::test(start_paused = true)]
async fn without_evidence_a_lonely_record_is_held_until_another_is_accepted() {
    let server = poisoned(&[0], refused);
    let (diary, book) = (Diary::default(), Arc::default());
    let book = check_slowly(&server, ONE, requests(2, 1), HOUR, &diary, &book).await;
    assert_eq!((book.delivered, book.rejected), (vec![1], vec![0]));
    // Probed once a hold for an hour, then the newcomer at once, and the evidence is used at once.
    let seen = server.seen();
    let (probes, end) = seen.split_at(seen.len() - 2);
    assert!((80..=92).contains(&probes.len()), "{}", probes.len());
    assert_eq!(
        (&end[0].records[..], &end[1].records[..]),
        (&[1][..], &[0][..])
    );
    let waited = end[1].at - HOUR;
    assert!(waited < Duration::from_secs(1), "{waited:?}");
    assert!(diary.count("hold bad") >= 80);
    assert_eq!(diary.count("released"), 1);
}

#[tokio::test(start_paused = true)]
async fn two_poison_records_in_one_request_wait_for_other_requests() {
    let server = poisoned(&[1, 6], refused);
    // Which of its parts is probed when they come depends on the moment: there are enough of them.
    let all = std::iter::once((0..8).collect()).chain((8..20).map(|n| vec![n]));
    let book = check_slowly(&server, ONE, all, HOUR, &(), &Arc::default()).await;
    assert_eq!(sorted(book.rejected), [1, 6]);
    assert_eq!(sorted(book.delivered), without(20, &[1, 6]));
}

#[tokio::test(start_paused = true)]
async fn bad_records_of_a_quiet_output_are_dead_lettered_within_seconds() {
    let anywhere: [&[u32]; 7] = [
        &[3, 500, 997],
        &[0, 1, 2],
        &[997, 998, 999],
        &[498, 499, 500],
        &[249, 499, 749],
        &[0, 999],
        &[990, 991, 992, 993, 994, 995, 996, 997, 998, 999],
    ];
    for poison in anywhere {
        for config in [ONE, FOUR] {
            let server = poisoned(poison, refused);
            let all = check(&server, config, requests(1, 1000), &());
            let book = tokio::time::timeout(Duration::from_secs(5), all).await;
            let book = book.unwrap_or_else(|_| {
                panic!(
                    "{poison:?} hold the others: {:?}",
                    server
                        .seen()
                        .iter()
                        .map(|s| (
                            s.at.as_millis(),
                            s.records[0],
                            s.records.len(),
                            s.records.iter().any(|r| poison.contains(r))
                        ))
                        .collect::<Vec<_>>()
                )
            });
            assert_eq!(sorted(book.rejected), poison);
            assert_eq!(sorted(book.delivered), without(1000, poison));
            let sent = server.seen().len();
            assert!(sent < 40 * poison.len(), "{sent} requests for {poison:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn several_requests_that_are_all_bad_are_evidence_for_each_other() {
    let poison = [5, 250, 444, 760];
    for config in [ONE, FOUR] {
        let server = poisoned(&poison, refused);
        let all = check(&server, config, requests(4, 250), &());
        let book = tokio::time::timeout(Duration::from_secs(5), all)
            .await
            .unwrap();
        assert_eq!(sorted(book.rejected), poison);
        assert_eq!(sorted(book.delivered), without(1000, &poison));
    }
}

/// A wrong path, or a credential that was revoked: the search for something that is accepted ends, and
/// nothing is dead-lettered.
#[tokio::test(start_paused = true)]
async fn a_search_in_an_outage_is_short_and_rejects_nothing() {
    let blames_records = (refused as fn() -> Answered, SEARCHES);
    let refusals = [
        blames_records,
        (|| hold(Doubt::None), 128),
        (too_large, SEARCHES),
    ];
    for (refusal, search) in refusals {
        for before in [0, 5] {
            let mut count = 0;
            let server = Server::new(move |seen| {
                count += 1;
                if count > before && seen.at < HOUR {
                    refusal()
                } else {
                    ok()
                }
            });
            let book = Arc::default();
            let book = check_slowly(
                &server,
                FOUR,
                requests(10, 64),
                POLICY.hold * 20,
                &(),
                &book,
            )
            .await;
            assert_eq!((book.rejected, book.given_up), (vec![], vec![]));
            assert_eq!(sorted(book.delivered), (0..640).collect::<Vec<_>>());
            let during = server.seen().iter().filter(|seen| seen.at < HOUR).count();
            assert!(
                during < 110 + search,
                "{during} requests in an hour of refusal"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_hour_of_refusal_for_everything_rejects_nothing() {
    let blames_records = (refused as fn() -> Answered, SEARCHES);
    let refusals = [
        blames_records,
        (|| hold(Doubt::None), 0),
        (|| hold(Doubt::Possible), 0),
    ];
    for (refusal, search) in refusals {
        for config in [ONE, FOUR] {
            let server = Server::with(CompressionSearch::auto(), move |seen| {
                if seen.at > Duration::from_secs(10) && seen.at < HOUR {
                    refusal()
                } else {
                    ok()
                }
            });
            let (all, pause) = (requests(1000, 10), Duration::from_secs(5));
            let book = check_slowly(&server, config, all, pause, &(), &Arc::default()).await;
            assert_eq!((book.rejected, book.given_up), (vec![], vec![]));
            assert_eq!(sorted(book.delivered), (0..10_000).collect::<Vec<_>>());
            // Once a hold, but for the search at its beginning.
            let seen = server.seen();
            let during = seen.iter().filter(|seen| seen.at < HOUR).count();
            assert!(
                during < 150 + search,
                "{during} requests in an hour of refusal"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn while_holding_one_probe_at_a_time_alternates() {
    let server = Server::new(|_| refused());
    let all = check(&server, FOUR, requests(100, 1), &());
    let cut = tokio::time::timeout(HOUR, all).await;
    assert!(cut.is_err());
    let seen = server.seen();
    let probes = &seen[4..];
    assert!(probes.len() > 80);
    for pair in probes.windows(2) {
        assert!(pair[1].at - pair[0].at >= POLICY.hold, "{pair:?}");
        assert_ne!(pair[0].records, pair[1].records, "alternating");
    }
    let again = |at: usize| {
        seen[..at]
            .iter()
            .any(|before| before.records == seen[at].records)
    };
    let again = (4..seen.len()).filter(|at| again(*at)).count();
    assert!(
        again.abs_diff(probes.len() / 2) < 3,
        "half of the probes are refused ones"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_blames_the_server_needs_evidence_many_times() {
    let server = poisoned(&[3], || hold(Doubt::None));
    let pause = Duration::from_secs(1);
    let book = check_slowly(
        &server,
        FOUR,
        requests(1000, 1),
        pause,
        &(),
        &Arc::default(),
    )
    .await;
    assert_eq!(book.rejected, [3]);
    assert_eq!(sorted(book.delivered), without(1000, &[3]));
    let seen = server.seen();
    let tries: Vec<_> = seen.iter().filter(|seen| seen.records == [3]).collect();
    let spent = tries[tries.len() - 1].at - tries[0].at;
    assert!(tries.len() >= 6 && spent >= 4 * POLICY.hold, "{tries:?}");
    let last = seen[seen.len() - 1].at;
    assert!(
        last < Duration::from_secs(1010),
        "the others are not held up: {last:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_is_cut_and_the_size_remembered() {
    const LIMIT: usize = 3;
    for config in [ONE, FOUR] {
        let server = Server::new(|seen| {
            if seen.records.len() > LIMIT {
                too_large()
            } else {
                ok()
            }
        });
        let book = check(&server, config, requests(50, 64), &()).await;
        let all: Vec<u32> = (0..64 * 50).collect();
        if config == ONE {
            assert_eq!(book.delivered, all, "in order");
        }
        assert_eq!(sorted(book.delivered), all);
        let requests = server.requests();
        let too_large = |at: &usize| requests[*at].len() > LIMIT;
        let too_large: Vec<usize> = (0..requests.len()).filter(too_large).collect();
        // 64, 32, 16, 8 and 4, by each that was under transport, and then none.
        assert!(too_large.len() <= 5 * config.concurrency, "{too_large:?}");
        assert!(too_large[too_large.len() - 1] < 20, "{too_large:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_single_record_that_is_too_large_is_rejected_on_evidence_only() {
    let server = poisoned(&[5], too_large);
    let book = check(&server, ONE, requests(1, 64), &()).await;
    assert_eq!(book.rejected, [5]);
    assert_eq!(sorted(book.delivered), without(64, &[5]));

    let server = Server::new(|_| too_large());
    let all = check(&server, ONE, requests(1, 64), &());
    let cut = tokio::time::timeout(HOUR, all).await;
    assert!(
        cut.is_err(),
        "a server that takes nothing at all is out of order"
    );
    assert!(server.seen().len() < 300, "{}", server.seen().len());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_dead_lettered_waits_and_holds_nobody_up() {
    let server = poisoned(&[0], refused);
    let book = Arc::<Mutex<Book>>::default();
    book.lock().unwrap().dead_letter_full = 3;
    let (diary, pause) = (Diary::default(), Duration::from_secs(1));
    let book = check_slowly(&server, FOUR, requests(300, 1), pause, &diary, &book).await;
    assert_eq!(book.rejected, [0]);
    assert_eq!(sorted(book.delivered), without(300, &[0]));
    assert_eq!((diary.count("wait full"), diary.count("released")), (1, 1));
}

/// The queue stays open, and nothing more comes.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_hold_is_reported_before_the_next_request() {
    let server = poisoned(&[0], refused);
    let book = Arc::<Mutex<Book>>::default();
    book.lock().unwrap().dead_letter_full = 3;
    let diary = Diary::default();
    let (sender, receiver) = queue();
    for records in requests(300, 1) {
        assert!(sender.send(Numbers::new(records, &book)).is_ok());
    }
    let all = drive(server.clone(), receiver, FOUR, &diary);
    let timed_out = tokio::time::timeout(HOUR, all).await;
    assert!(timed_out.is_err(), "the queue is open");
    assert_eq!(book.lock().unwrap().rejected, [0]);
    assert_eq!((diary.count("wait full"), diary.count("released")), (1, 1));
    drop(sender);
}

/// The file is full until everything else is long delivered: there is nothing left to compare the records with, which
/// are known to be refused.
#[tokio::test(start_paused = true)]
async fn what_waits_to_be_dead_lettered_needs_no_evidence_again() {
    let poison = [0, 20, 40];
    let server = poisoned(&poison, refused);
    let book = Arc::<Mutex<Book>>::default();
    book.lock().unwrap().dead_letter_full = 500;
    let diary = Diary::default();
    let all = check_with(&server, FOUR, requests(50, 1), &diary, &book);
    tokio::time::timeout(HOUR, all).await.unwrap();
    let book = book.lock().unwrap().clone();
    assert_eq!(sorted(book.rejected), poison);
    assert_eq!(sorted(book.delivered), without(50, &poison));
    let sent_alone = |n: &u32| {
        server
            .seen()
            .iter()
            .filter(|seen| seen.records == [*n])
            .count()
    };
    assert!(
        poison.iter().all(|n| sent_alone(n) < 10),
        "{:?}",
        server.seen().len()
    );
    assert_eq!(diary.count("released"), 1);
}

#[tokio::test(start_paused = true)]
async fn with_drop_nothing_is_waited_for_and_good_records_pass() {
    let config = DriveConfig {
        on_refused: OnRefused::Drop,
        ..ONE
    };
    let server = Server::new(|_| hold(Doubt::None));
    let book = check(&server, config, requests(20, 4), &()).await;
    assert_eq!(sorted(book.given_up), (0..80).collect::<Vec<_>>());
    let seen = server.seen();
    assert!(seen[seen.len() - 1].at < Duration::from_secs(1));

    let server = poisoned(&[5], refused);
    let book = check(&server, config, requests(20, 4), &()).await;
    assert_eq!((book.rejected, book.given_up), (vec![5], vec![]));
    assert_eq!(sorted(book.delivered), without(80, &[5]));
}
