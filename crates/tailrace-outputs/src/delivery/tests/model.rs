//! Random servers: some records are poison, and there are outages in which everything is refused or
//! nobody answers. Whatever happens, the poison is dead-lettered, and the rest is delivered once.

use std::future::Future;

use proptest::prelude::*;

use super::*;

/// Runs with paused time.
pub(super) fn paused<T>(run: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(run)
}

/// What everybody is answered for some time.
#[derive(Clone, Copy, Debug)]
enum Outage {
    Refused,
    Hold,
    Down,
}

#[derive(Clone, Debug)]
pub(super) struct World {
    requests: Vec<Vec<u32>>,
    poison: Vec<u32>,
    /// How many attempts it is well, how many not, and how it is not well.
    outages: Vec<(usize, usize, Outage)>,
    /// Records in a request that the server takes at most.
    limit: usize,
    concurrency: usize,
    /// The pause between two requests, in milliseconds.
    pause: u64,
}

impl World {
    /// One without outages, that refuses these.
    pub(super) fn well(poison: Vec<u32>) -> World {
        World {
            requests: Vec::new(),
            poison,
            outages: Vec::new(),
            limit: usize::MAX,
            concurrency: 1,
            pause: 0,
        }
    }
}

fn world() -> impl Strategy<Value = World> {
    let outage = prop_oneof![
        Just(Outage::Refused),
        Just(Outage::Hold),
        Just(Outage::Down)
    ];
    // An outage is longer than an attempt, and so is what lies between two: one that comes and goes
    // with the attempts cannot be distinguished from a fault of the records.
    let outages = prop::collection::vec((2usize..60, 2usize..40, outage), 0..4);
    (
        prop::collection::vec(1u32..40, 1..25),
        prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        outages,
        prop_oneof![Just(usize::MAX), 1usize..20],
        1usize..5,
        prop_oneof![Just(0), 1u64..100, 10_000u64..60_000],
    )
        .prop_map(|(sizes, poison, outages, limit, concurrency, pause)| {
            let mut next = 0;
            let mut requests = Vec::new();
            for size in sizes {
                requests.push((next..next + size).collect());
                next += size;
            }
            let poison = poison.iter().map(|index| index.index(next as usize));
            let mut poison: Vec<u32> = poison.map(|n| u32::try_from(n).unwrap()).collect();
            poison.sort_unstable();
            poison.dedup();
            World {
                requests,
                poison,
                outages,
                limit,
                concurrency,
                pause,
            }
        })
}

pub(super) fn server(world: &World) -> Arc<Server> {
    let World {
        poison,
        outages,
        limit,
        ..
    } = world.clone();
    let mut attempt = 0;
    Server::new(move |seen| {
        attempt += 1;
        let mut end = 0;
        for (well, ill, outage) in &outages {
            end += well + ill;
            if (end - ill + 1..=end).contains(&attempt) {
                return match outage {
                    Outage::Refused => refused(),
                    Outage::Hold => hold(Doubt::None),
                    Outage::Down => retry(None),
                };
            }
        }
        if seen.records.len() > limit {
            return too_large();
        }
        if seen
            .records
            .iter()
            .any(|record| poison.binary_search(record).is_ok())
        {
            refused()
        } else {
            ok()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn the_poison_is_dead_lettered_and_nothing_else(world in world()) {
        paused(async {
            let server = server(&world);
            let book = Arc::<Mutex<Book>>::default();
            let (sender, receiver) = queue();
            let write = async {
                for records in world.requests.clone() {
                    assert!(sender.send(Numbers::new(records, &book)).is_ok());
                    tokio::time::sleep(Duration::from_millis(world.pause)).await; // tidy: paused time
                }
                // Good ones, so that there is evidence to the end.
                for n in 0..200 {
                    assert!(sender.send(Numbers::new(vec![1_000_000 + n], &book)).is_ok());
                    tokio::time::sleep(Duration::from_secs(30)).await; // tidy: paused time
                }
                drop(sender);
            };
            let config = DriveConfig { concurrency: world.concurrency, ..ONE };
            let done = async { tokio::join!(drive(server.clone(), receiver, config, &()), write) };
            let done = tokio::time::timeout(Duration::from_secs(1_000_000), done).await;
            prop_assert!(done.is_ok(), "it goes on for ever");
            let mut book = book.lock().unwrap().clone();
            book.rejected.sort_unstable();
            book.delivered.sort_unstable();
            prop_assert_eq!(&book.rejected, &world.poison);
            let all = world.requests.iter().flatten().copied().chain(1_000_000..1_000_200);
            let good: Vec<u32> = all.filter(|n| !world.poison.contains(n)).collect();
            prop_assert_eq!(book.delivered, good);
            prop_assert!(server.on_wire.lock().unwrap().1 <= world.concurrency);
            Ok(())
        })?;
    }

    /// Nothing else to send, and no outage: what is good is not held by what is bad.
    #[test]
    fn a_quiet_output_is_not_held_by_its_poison(
        sizes in prop::collection::vec(64u32..1000, 1..4),
        poison in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        concurrency in 1usize..5,
    ) {
        paused(async {
            let mut world = World { concurrency, ..World::well(Vec::new()) };
            let mut next = 0;
            for size in sizes {
                world.requests.push((next..next + size).collect());
                next += size;
            }
            let poison = poison.iter().map(|index| u32::try_from(index.index(next as usize)).unwrap());
            world.poison = poison.collect();
            world.poison.sort_unstable();
            world.poison.dedup();
            let server = server(&world);
            let config = DriveConfig { concurrency, ..ONE };
            let book = Arc::<Mutex<Book>>::default();
            let all = check_with(&server, config, world.requests.clone(), &(), &book);
            let _ = tokio::time::timeout(Duration::from_secs(5), all).await;
            let mut book = book.lock().unwrap().clone();
            book.delivered.sort_unstable();
            let good: Vec<u32> = (0..next).filter(|n| !world.poison.contains(n)).collect();
            prop_assert_eq!(book.delivered, good, "held");
            prop_assert!(book.rejected.iter().all(|n| world.poison.contains(n)));
            // The last one, or two that are neighbours, may have nothing left to be compared with.
            prop_assert!(book.rejected.len() + 2 >= world.poison.len(), "{:?}", book.rejected);
            Ok(())
        })?;
    }

    /// Nothing else to send, outages, and any share of poison: the good records all arrive, and none of them
    /// is rejected. Poison that nothing is left to compare with waits.
    #[test]
    fn a_quiet_output_in_an_outage_rejects_only_poison(mut world in world(), share in 0u32..100) {
        paused(async {
            let total = world.requests.iter().flatten().count();
            let total = u32::try_from(total).unwrap();
            let hashed = |n: u32| (n.wrapping_mul(2_654_435_761) ^ 0x5bd1_e995).wrapping_mul(n | 1) % 100;
            world.poison = (0..total).filter(|n| hashed(*n) < share).collect();
            let server = server(&world);
            let book = Arc::<Mutex<Book>>::default();
            let config = DriveConfig { concurrency: world.concurrency, ..ONE };
            let all = check_with(&server, config, world.requests.clone(), &(), &book);
            let good: Vec<u32> = (0..total).filter(|n| !world.poison.contains(n)).collect();
            let arrived = async {
                for _ in 0..10_000 {
                    tokio::time::sleep(Duration::from_secs(60)).await; // tidy: paused time
                    if book.lock().unwrap().delivered.len() == good.len() {
                        break;
                    }
                }
            };
            tokio::select! {
                () = all => {}
                () = arrived => {}
            }
            let mut book = book.lock().unwrap().clone();
            book.delivered.sort_unstable();
            let is_poison = |n: &u32| world.poison.contains(n);
            prop_assert!(book.rejected.iter().all(is_poison), "rejected {:?}", book.rejected);
            prop_assert_eq!(book.delivered, good);
            let rejected = book.rejected.len();
            book.rejected.sort_unstable();
            book.rejected.dedup();
            prop_assert_eq!(book.rejected.len(), rejected, "twice");
            Ok(())
        })?;
    }

    /// With `drop` and outages: every record is resolved once, soon, and none but poison is rejected.
    #[test]
    fn with_drop_everything_is_resolved_once_and_only_poison_rejected(mut world in world(), share in 0u32..1001) {
        paused(async {
            let total = world.requests.iter().flatten().count();
            let total = u32::try_from(total).unwrap();
            world.poison = (0..total).filter(|n| super::shares::is_bad(*n, share)).collect();
            let server = server(&world);
            let config = DriveConfig { concurrency: world.concurrency, on_refused: OnRefused::Drop };
            let all = check(&server, config, world.requests.clone(), &());
            let book = tokio::time::timeout(Duration::from_secs(3600), all).await;
            prop_assert!(book.is_ok(), "it waits");
            let book = book.unwrap();
            let is_poison = |n: &u32| world.poison.binary_search(n).is_ok();
            prop_assert!(book.rejected.iter().all(is_poison), "rejected {:?}", book.rejected);
            prop_assert!(!book.delivered.iter().any(is_poison));
            if world.outages.is_empty() {
                prop_assert!(book.given_up.iter().all(is_poison), "dropped {:?}", book.given_up);
            }
            let mut resolved = [book.delivered, book.rejected, book.given_up].concat();
            resolved.sort_unstable();
            prop_assert_eq!(resolved, (0..total).collect::<Vec<_>>());
            Ok(())
        })?;
    }
}
