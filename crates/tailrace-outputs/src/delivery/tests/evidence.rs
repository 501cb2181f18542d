//! What is reported of a record that waits for evidence against it.

use super::refusals::{HOUR, check_slowly, poisoned, requests, sorted, without};
use super::*;

#[tokio::test(start_paused = true)]
async fn a_record_that_waits_for_more_evidence_is_reported_at_once() {
    let server = poisoned(&[507], || hold(Doubt::None));
    let (diary, book) = (Diary::default(), Arc::<Mutex<Book>>::default());
    let all = check_with(&server, FOUR, requests(1, 1000), &diary, &book);
    let mut all = std::pin::pin!(all);
    let soon = Duration::from_secs(30);
    assert!(tokio::time::timeout(soon, &mut all).await.is_err());
    let delivered = sorted(book.lock().unwrap().delivered.clone());
    assert_eq!(delivered, without(1000, &[507]));
    let reports = || {
        let reports = [
            "refused no first",
            "compare no",
            "kept 1",
            "hold",
            "cleared",
        ];
        reports.map(|report| diary.count(report))
    };
    assert_eq!(reports(), [1, 1, 1, 0, 0]);
    // The end is reported, too.
    let server = poisoned(&[507], refused);
    let diary = Diary::default();
    let book = check(&server, FOUR, requests(1, 1000), &diary).await;
    assert_eq!(book.rejected, [507]);
    assert_eq!(diary.count("refused bad first"), 1);
    assert_eq!(diary.count("cleared"), 1);
}

#[tokio::test(start_paused = true)]
async fn in_an_outage_nothing_is_said_to_wait_for_evidence_alone() {
    let mut answers = 0;
    let server = Server::new(move |seen| {
        answers += 1;
        match seen.records.contains(&3) {
            _ if answers > 40 => retry(None),
            true => hold(Doubt::None),
            false => ok(),
        }
    });
    let (diary, book) = (Diary::default(), Arc::default());
    let many = requests(60, 10);
    let all = check_slowly(&server, ONE, many, Duration::from_secs(1), &diary, &book);
    assert!(tokio::time::timeout(HOUR, all).await.is_err());
    let lines = diary.0.lock().unwrap();
    let kept = lines.iter().filter(|line| line.starts_with("kept"));
    let kept: Vec<&String> = kept.collect();
    assert!(kept.iter().any(|line| **line == "kept 1"), "{kept:?}");
    assert_eq!(kept.last().map(|line| line.as_str()), Some("kept 0"));
}
