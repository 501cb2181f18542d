#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
fn cpu() -> f64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse::<f64>()
        .unwrap()
        / 1e9
}
use tailrace_model::json::Step;
use tailrace_scan::*;
fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap();
    let mode = args.next().unwrap();
    let isa = match std::env::var("ISA").as_deref() {
        Ok("avx2") => Isa::Avx2,
        Ok("scalar") => Isa::Scalar,
        _ => Isa::Auto,
    };
    let text = std::fs::read(path).unwrap();
    let mut batches = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let end = (at + (1 << 20)).min(text.len());
        let end = memchr::memrchr(b'\n', &text[at..end]).map_or(end, |p| at + p + 1);
        let chunk = bytes::Bytes::copy_from_slice(&text[at..end]);
        let mut records = Vec::new();
        let mut start = 0;
        for nl in memchr::memchr_iter(b'\n', &chunk) {
            records.push(Record {
                buffer: 0,
                start,
                end: nl as u32,
                flags: 0,
            });
            start = nl as u32 + 1;
        }
        batches.push((vec![chunk], records));
        at = end;
    }
    let col = |k: &str, ty| Column {
        name: format!("{k}{ty:?}"),
        source: Source::Key(vec![Step::Key(k.into())]),
        ty,
    };
    let mut config = Config {
        isa,
        ..Config::default()
    };
    if mode == "star" {
        config.star = Some(Star::default());
    } else {
        for k in mode.split(',') {
            config.columns.push(col(k, Type::Open));
        }
    }
    let mut scanner = Scanner::new(config);
    let (mut best, mut utf) = (0.0, 0.0);
    let rounds =
        std::env::var("ROUNDS").map_or((1_000_000_000 / text.len()).max(3), |r| r.parse().unwrap());
    let t = cpu();
    for _ in 0..rounds {
        for (buffers, records) in &batches {
            let s = scanner.scan(&Records {
                buffers,
                records,
                times: &[],
                streams: &[],
                observed_ns: 1,
            });
            assert_eq!(s.stats.malformed, 0);
        }
    }
    std::thread::sleep(std::time::Duration::from_millis(1));
    best += cpu() - t;
    let t = cpu();
    for _ in 0..rounds * 4 {
        for (buffers, _) in &batches {
            assert!(simdutf8::basic::from_utf8(&buffers[0]).is_ok());
        }
    }
    std::thread::sleep(std::time::Duration::from_millis(1));
    utf += (cpu() - t) / 4.0;
    let gb = text.len() as f64 / 1e9 * rounds as f64;
    println!(
        "{mode}: {:.2} GB/s, simdutf8 {:.1}, ratio {:.3}",
        gb / best,
        gb / utf,
        utf / best
    );
}
