//! The mixed shape: what one file of a busy node may hold when programs of many
//! languages write to it. Every line is valid JSON without duplicate keys and
//! without lone surrogates, so that any parser may serve as an oracle.

use super::clock::Clock;
use super::fields::Fields;
use super::level::Level;
use super::plain::{PATHS, SERVICES, VERBS, duration_us};
use super::random::Random;

/// Writes the members of one line and leaves the object open.
pub(super) fn mixed(fields: &mut Fields<'_>, level: Level, random: &mut Random, clock: &Clock) {
    // The last two key sets do not name the level as `"level":"..."`, and so
    // are not for errors.
    let sets = if level == Level::Error { 6 } else { 8 };
    match random.below(sets) {
        0 => nested_access(fields, level, random, clock),
        1 => stack_trace(fields, level, random, clock),
        2 => unicode(fields, level, random, clock),
        3 => arrays(fields, level, random, clock),
        4 => escapes(fields, level, random, clock),
        5 => numbers(fields, level, random, clock),
        6 => numeric_level(fields, level, random, clock),
        _ => spaced(fields, level, random, clock),
    }
}

/// The key sets with escapes.
pub(super) fn escaped(fields: &mut Fields<'_>, level: Level, random: &mut Random, clock: &Clock) {
    match random.below(3) {
        0 => stack_trace(fields, level, random, clock),
        1 => unicode(fields, level, random, clock),
        _ => escapes(fields, level, random, clock),
    }
}

/// The key sets with nesting.
pub(super) fn nested(fields: &mut Fields<'_>, level: Level, random: &mut Random, clock: &Clock) {
    match random.below(2) {
        0 => nested_access(fields, level, random, clock),
        _ => arrays(fields, level, random, clock),
    }
}

fn nested_access(fields: &mut Fields<'_>, level: Level, random: &mut Random, clock: &Clock) {
    fields.time("timestamp", clock);
    fields.text("level", level.name());
    fields.text("message", "request handled");
    let mut http = fields.object("http");
    http.text("method", random.pick(&VERBS));
    http.text_number("path", &[random.pick(&PATHS)], random.below(10_000));
    http.integer("status", level.status(random));
    let mut headers = http.object("headers");
    headers.text("user-agent", random.pick(&AGENTS));
    headers.text("accept", "*/*");
    headers.close();
    http.close();
    fields.thousandths("duration_ms", duration_us(level, random));
    match random.below(3) {
        0 => fields.raw("user", b"null"),
        1 => fields.text_number("user", &["u-"], random.below(10_000)),
        _ => {
            let mut user = fields.object("user");
            user.integer("id", random.below(10_000));
            user.raw("groups", br#"["staff","on call"]"#);
            user.close();
        }
    }
}

fn stack_trace(fields: &mut Fields<'_>, level: Level, random: &mut Random, clock: &Clock) {
    fields.time("@timestamp", clock);
    fields.text("level", level.name());
    fields.text_of(
        "logger",
        &["com.example.", random.pick(&SERVICES), ".OrderService"],
    );
    fields.text_number("thread", &["http-nio-8080-exec-"], random.below(32));
    fields.text("message", "could not store the order");
    let mut exception = fields.object("exception");
    exception.text("type", "java.lang.IllegalStateException");
    exception.text("message", r#"state \"NEW\" expected, was \"PAID\""#);
    let out = exception.key("stacktrace");
    out.extend_from_slice(br#""java.lang.IllegalStateException: state \"NEW\" expected"#);
    for _ in 0..2 + random.below(7) {
        out.extend_from_slice(random.pick(&FRAMES).as_bytes());
    }
    out.push(b'"');
    exception.close();
}

fn unicode(fields: &mut Fields<'_>, level: Level, random: &mut Random, clock: &Clock) {
    fields.time("ts", clock);
    fields.text("level", level.name());
    fields.text("msg", random.pick(&UNICODE));
    fields.text(
        "città",
        random.pick(&["Forlì", "Łódź", "東京", "S\\u00e3o Paulo"]),
    );
    fields.text("service.name", random.pick(&SERVICES));
    fields.raw(
        "ok",
        if level == Level::Error {
            b"false"
        } else {
            b"true"
        },
    );
}

fn arrays(fields: &mut Fields<'_>, level: Level, random: &mut Random, clock: &Clock) {
    fields.time("time", clock);
    fields.text("level", level.name());
    fields.text("msg", "items changed");
    fields.raw(
        "tags",
        random.pick(&[&b"[]"[..], br#"["a"]"#, br#"["eu","beta","x,y]"]"#]),
    );
    let out = fields.key("items");
    out.push(b'[');
    for item in 0..1 + random.below(3) {
        if item > 0 {
            out.push(b',');
        }
        let mut item = Fields::open(out);
        item.text_number("sku", &["SKU-"], random.below(100_000));
        item.integer("count", 1 + random.below(9));
        item.raw("sizes", br#"[[1,2],[],[{"w":1.5}]]"#);
        item.close();
    }
    out.push(b']');
    fields.raw(
        "meta",
        random.pick(&[&b"{}"[..], br#"{"a":{"b":{"c":null}}}"#, b"null"]),
    );
}

fn escapes(fields: &mut Fields<'_>, level: Level, random: &mut Random, clock: &Clock) {
    fields.time("ts", clock);
    fields.text("level", level.name());
    fields.text("msg", random.pick(&ESCAPED));
    fields.text("file", r"C:\\Program Files\\Shop\\bin\\shop.exe");
    fields.text(
        "sql",
        r#"SELECT \"id\" FROM \"orders\"\n\tWHERE note LIKE '%\\\\%'"#,
    );
    fields.text("the \\\"quoted\\\" key", "value");
    fields.integer("pid", random.below(65_536));
}

fn numbers(fields: &mut Fields<'_>, level: Level, random: &mut Random, clock: &Clock) {
    fields.raw("time", &epoch_ms(clock));
    fields.text("level", level.name());
    fields.text("msg", "balance");
    fields.raw("total", random.pick(&NUMBERS).as_bytes());
    fields.raw("ratio", random.pick(&FRACTIONS).as_bytes());
    fields.raw(
        "code",
        if random.chance(50) {
            b"\"0042\""
        } else {
            b"42"
        },
    );
    fields.raw("paid", if random.chance(50) { b"true" } else { b"false" });
    fields.raw("note", b"null");
}

fn numeric_level(fields: &mut Fields<'_>, level: Level, random: &mut Random, clock: &Clock) {
    let number = match level {
        Level::Debug => 20,
        Level::Info => 30,
        Level::Warn => 40,
        Level::Error => 50,
    };
    fields.integer("level", number);
    fields.raw("time", &epoch_ms(clock));
    fields.integer("pid", random.below(65_536));
    fields.text_number("hostname", &["web-"], random.below(16));
    fields.hex("reqId", 16, random);
    fields.text("msg", "request completed");
}

fn spaced(fields: &mut Fields<'_>, level: Level, random: &mut Random, clock: &Clock) {
    fields.spaced();
    fields.text("levelname", level.name());
    fields.time("timestamp", clock);
    fields.text("name", random.pick(&SERVICES));
    fields.text("message", "task finished");
    let mut extra = fields.object("extra");
    extra.integer("attempt", 1 + random.below(3));
    extra.raw("queue", br#"[ "low" , "high" ]"#);
    extra.close();
}

/// Milliseconds since the Unix epoch, as JSON text.
fn epoch_ms(clock: &Clock) -> [u8; 13] {
    let mut text = [b'0'; 13];
    let mut rest = clock.now_ns / 1_000_000;
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text
}

const AGENTS: [&str; 3] = [
    "curl/8.5.0",
    "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0",
    "kube-probe/1.33",
];

const FRAMES: [&str; 4] = [
    r"\n\tat com.example.shop.OrderService.store(OrderService.java:214)",
    r"\n\tat com.example.shop.OrderController.post(OrderController.java:87)",
    r"\n\tat java.base/java.lang.Thread.run(Thread.java:1583)",
    r"\n\tat org.springframework.web.servlet.FrameworkServlet.service(FrameworkServlet.java:885)",
];

const UNICODE: [&str; 5] = [
    "naïve café, 12 €",
    r"caf\u00e9 \u2603 \ud83d\ude00 done",
    "日本語のログ",
    "emoji 🚀 raw and \\ud83d\\ude80 escaped",
    r"tab\there, nul\u0000there",
];

const ESCAPED: [&str; 4] = [
    r#"body: {\"a\":[1,2],\"b\":\"\\\"x\\\"\"}"#,
    r"\/path\/to\/thing \b\f\r\n\t",
    r"\\\\server\\share\\",
    r#"ends in a quote \""#,
];

const NUMBERS: [&str; 8] = [
    "0",
    "-17",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "-9223372036854775808",
    "123456789012345678901234567890",
];

const FRACTIONS: [&str; 6] = [
    "0.1",
    "-0.0",
    "1e3",
    "6.02214076e23",
    "1.5E-7",
    "0.30000000000000004",
];
