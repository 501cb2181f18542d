//! The regular shapes: every line has the same keys in the same order. Each
//! function writes the members of one line and leaves the object open.

use super::clock::Clock;
use super::fields::Fields;
use super::fields::write_integer;
use super::level::Level;
use super::random::Random;

/// 3 fields: `ts`, `level`, `msg`.
pub(super) fn narrow(fields: &mut Fields<'_>, level: Level, random: &mut Random, clock: &Clock) {
    fields.time("ts", clock);
    fields.text("level", level.name());
    fields.text("msg", random.pick(&WORDS));
}

/// 6 fields: `timestamp`, `level`, `message`, `status`, `duration_ms`,
/// `request_id`.
pub(super) fn simple(fields: &mut Fields<'_>, level: Level, random: &mut Random, clock: &Clock) {
    fields.time("timestamp", clock);
    fields.text("level", level.name());
    let parts = [random.pick(&VERBS), " ", random.pick(&PATHS)];
    fields.text_number("message", &parts, random.below(10_000_000));
    fields.integer("status", level.status(random));
    fields.thousandths("duration_ms", duration_us(level, random));
    fields.hex("request_id", 16, random);
}

/// As much as [`simple`] says, and no JSON.
pub(super) fn text(out: &mut Vec<u8>, level: Level, random: &mut Random, clock: &Clock) {
    clock.write_ms(out);
    for part in [
        " ",
        level.name(),
        " ",
        random.pick(&VERBS),
        " ",
        random.pick(&PATHS),
    ] {
        out.extend_from_slice(part.as_bytes());
    }
    write_integer(random.below(10_000_000), out);
    out.extend_from_slice(b" status=");
    write_integer(level.status(random), out);
}

/// 20 fields of an HTTP service in a cluster.
pub(super) fn wide(fields: &mut Fields<'_>, level: Level, random: &mut Random, clock: &Clock) {
    wide_in("production", fields, level, random, clock);
}

/// As [`wide`], with the text of a level where no level is: a search for it finds too much.
pub(super) fn wide_decoy(
    fields: &mut Fields<'_>,
    level: Level,
    random: &mut Random,
    clock: &Clock,
) {
    wide_in(Level::Error.name(), fields, level, random, clock);
}

fn wide_in(
    environment: &str,
    fields: &mut Fields<'_>,
    level: Level,
    random: &mut Random,
    clock: &Clock,
) {
    let service = random.pick(&SERVICES);
    let verb = random.pick(&VERBS);
    let path = random.pick(&PATHS);
    let id = random.below(10_000_000);
    fields.time("timestamp", clock);
    fields.text("level", level.name());
    fields.text_number("message", &["handled the request ", verb, " ", path], id);
    fields.text("service", service);
    fields.text(
        "version",
        random.pick(&["2.14.0+9f3c2d1a", "2.14.1+07be4c52", "2.15.0+c81d6e0f"]),
    );
    fields.text("environment", environment);
    fields.text(
        "region",
        random.pick(&["eu-west-1", "eu-north-1", "us-east-1"]),
    );
    fields.text_number("host", &["node-", service, "-"], random.below(64));
    fields.text("namespace", random.pick(&["shop", "billing", "platform"]));
    fields.text_number(
        "pod",
        &[service, "-7d4b9c6f5-"],
        10_000 + random.below(90_000),
    );
    fields.hex("trace_id", 32, random);
    fields.hex("span_id", 16, random);
    fields.text("method", verb);
    fields.text_number("path", &[path], id);
    fields.integer("status", level.status(random));
    fields.thousandths("duration_ms", duration_us(level, random));
    fields.integer("bytes_in", random.below(5_000));
    fields.integer("bytes_out", random.below(500_000));
    fields.text_number("user_id", &["u-"], random.below(1_000_000));
    fields.text_number(
        "client_ip",
        &["10.20.", random.pick(&OCTETS), "."],
        random.below(256),
    );
}

/// 8 fields, and always `stream` and `seq` after them.
pub(super) fn demo(fields: &mut Fields<'_>, level: Level, random: &mut Random, clock: &Clock) {
    fields.time("ts", clock);
    fields.text("level", level.name());
    fields.text("msg", random.pick(&WORDS));
    fields.integer("status", level.status(random));
    fields.thousandths("duration_ms", duration_us(level, random));
    fields.text("service", random.pick(&SERVICES));
    fields.text_number("path", &[random.pick(&PATHS)], random.below(100_000));
    fields.hex("request_id", 16, random);
}

/// Microseconds: mostly short, longer when it went wrong.
pub(super) fn duration_us(level: Level, random: &mut Random) -> u64 {
    match level {
        Level::Error => random.below(5_000_000),
        _ => random.below(80_000),
    }
}

pub(super) const WORDS: [&str; 8] = [
    "cache hit",
    "ping ok",
    "retry",
    "job done",
    "user seen",
    "sync",
    "tick",
    "read page",
];

pub(super) const VERBS: [&str; 5] = ["GET", "GET", "POST", "PUT", "DELETE"];

pub(super) const PATHS: [&str; 6] = [
    "/api/v1/orders/",
    "/api/v1/customers/",
    "/api/v2/search/results/",
    "/api/v1/baskets/",
    "/static/images/",
    "/api/v1/payments/",
];

pub(super) const SERVICES: [&str; 6] = [
    "checkout",
    "catalogue",
    "payments",
    "search",
    "shipping",
    "accounts",
];

const OCTETS: [&str; 6] = ["0", "7", "31", "64", "112", "200"];
