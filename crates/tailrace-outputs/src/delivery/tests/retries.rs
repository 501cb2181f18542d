//! Backoff, Retry-After, and the search for an compression.

use proptest::prelude::*;

use super::*;

async fn one(server: &Arc<Server>, observer: &dyn Observer) -> Delivered {
    let mut book = check(server, ONE, [vec![7]], observer).await;
    assert_eq!(book.deliveries.len(), 1);
    book.deliveries.remove(0)
}

#[tokio::test(start_paused = true)]
async fn it_backs_off_and_starts_anew_after_a_hold() {
    let mut answers = vec![retry(None); 7];
    answers.push(hold(Doubt::None));
    answers.extend([retry(None), ok()]);
    let server = Server::script(CompressionSearch::auto(), answers);
    assert_eq!(one(&server, &()).await.attempts, 10);
    let bounds = [
        (1, 2),
        (2, 4),
        (4, 8),
        (8, 16),
        (15, 30),
        (15, 30),
        (15, 30),
        (40, 44),
        (1, 2),
    ];
    for (pause, (low, high)) in server.pauses().into_iter().zip(bounds) {
        // Paused time moves in whole milliseconds, upwards, and an attempt takes one.
        let within = pause >= f64::from(low) && pause <= f64::from(high) + 0.01;
        assert!(within, "{pause} is not in {low}..={high}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_is_waited_for_as_long_as_it_says_but_not_for_ever() {
    let after = [Some(0), Some(100), Some(1_000_000_000)];
    let server = Server::script(CompressionSearch::auto(), after.map(retry));
    one(&server, &()).await;
    let pauses = server.pauses();
    assert!(pauses[0] >= 1.0 && pauses[0] < 2.01, "{pauses:?}");
    assert!(pauses[1] >= 100.0 && pauses[1] < 110.01, "{pauses:?}");
    assert!(pauses[2] >= 300.0 && pauses[2] < 300.01, "{pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn while_requests_are_repeated_no_others_begin_and_the_order_stays() {
    let mut attempts = 0;
    let server = Server::new(move |_| {
        attempts += 1;
        if attempts % 3 == 0 { ok() } else { retry(None) }
    });
    let requests: Vec<Vec<u32>> = (0..20).map(|n| vec![n]).collect();
    let book = check(&server, ONE, requests.clone(), &()).await;
    assert_eq!(book.delivered, (0..20).collect::<Vec<_>>());
    let mut order = server.requests();
    order.dedup();
    assert_eq!(order, requests, "one after the other");

    let server = Server::new(|_| retry(None));
    let all = check(&server, FOUR, requests, &());
    let limit = Duration::from_secs(600);
    assert!(tokio::time::timeout(limit, all).await.is_err());
    assert!(server.requests().iter().all(|records| records[0] < 4));
    assert_eq!(server.on_wire.lock().unwrap().1, 4);
}

#[tokio::test(start_paused = true)]
async fn a_refused_compression_is_replaced_at_once_and_remembered() {
    let answers = [hold(Doubt::Possible), retry(None), ok(), ok()];
    let server = Server::script(CompressionSearch::auto(), answers);
    let diary = Diary::default();
    assert_eq!(one(&server, &diary).await.compression, Compression::Gzip);
    assert_eq!(server.search.preferred(), Compression::Gzip);
    assert!(server.pauses()[0] < 0.01, "{:?}", server.pauses());
    one(&server, &diary).await;
    let expected = [
        Compression::Zstd,
        Compression::Gzip,
        Compression::Gzip,
        Compression::Gzip,
    ];
    assert_eq!(server.compressions(), expected);
    let expected = [
        "send 4 zstd",
        "recode zstd gzip no",
        "send 4 gzip",
        "retry unavailable busy",
        "send 4 gzip",
        "delivered 3",
        "send 4 gzip",
        "delivered 1",
    ];
    assert_eq!(*diary.0.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn if_every_compression_is_refused_it_holds_and_searches_again() {
    let answers = [const { Doubt::Possible }; 6].map(hold);
    let server = Server::script(CompressionSearch::auto(), answers);
    let diary = Diary::default();
    let delivered = one(&server, &diary).await;
    assert_eq!(
        (delivered.attempts, delivered.compression),
        (7, Compression::Zstd)
    );
    assert_eq!((diary.count("hold no"), diary.count("released")), (2, 1));
    let pauses = server.pauses();
    for (index, pause) in pauses.iter().enumerate() {
        let waited = *pause >= 40.0;
        assert_eq!(waited, index % 3 == 2, "{pauses:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_configured_compression_is_applied_and_never_left() {
    let search = CompressionSearch::fixed(Compression::None);
    let server = Server::script(search, [hold(Doubt::Named), ok()]);
    assert_eq!(one(&server, &()).await.attempts, 2);
    assert_eq!(server.compressions(), [Compression::None; 2]);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_resolves_nothing() {
    let server = Server::new(|_| retry(None));
    let book = Arc::<Mutex<Book>>::default();
    let all = check_with(&server, FOUR, [vec![1], vec![2]], &(), &book);
    let cut = tokio::time::timeout(Duration::from_millis(500), all).await;
    assert!(cut.is_err());
    assert_eq!(server.seen().len(), 2);
    assert_eq!(*book.lock().unwrap(), Book::default());
}

/// Anything that an endpoint may answer before it accepts.
fn failure() -> impl Strategy<Value = Answered> {
    prop_oneof![
        Just(hold(Doubt::None)),
        Just(hold(Doubt::Possible)),
        Just(hold(Doubt::Named)),
        Just(refused()),
        prop::option::of(0u64..400).prop_map(retry),
    ]
}

proptest! {
    /// Whatever the endpoint answers: every answer is followed by exactly one attempt until one is
    /// accepted, no wait is longer than the longest, and between two waits no compression comes twice.
    #[test]
    fn nothing_is_skipped_and_no_loop_is_hot(answers in prop::collection::vec(failure(), 0..40)) {
        super::model::paused(async {
            let count = answers.len();
            let server = Server::script(CompressionSearch::auto(), answers);
            let delivered = one(&server, &()).await;
            prop_assert_eq!(delivered.attempts, count as u64 + 1);
            let (compressions, pauses, mut tried) = (server.compressions(), server.pauses(), Vec::new());
            for (index, compression) in compressions.iter().enumerate() {
                let pause = index.checked_sub(1).map_or(f64::MAX, |before| pauses[before]);
                if pause > 0.5 {
                    tried.clear();
                }
                prop_assert!(index == 0 || pause < 331.0, "{}", pause);
                prop_assert!(!tried.contains(compression), "{:?}", compressions);
                tried.push(*compression);
            }
            Ok(())
        })?;
    }
}
