//! Requests of this machine, of others, of pages in a browser and of holders of the token.
#![allow(clippy::unwrap_used)]

use axum::http::{HeaderName, HeaderValue};

use super::*;

const TOKEN: &str = "a-token-of-24-characters";
const LOCAL: &str = "127.0.0.1:40000";
const REMOTE: &str = "10.0.0.7:40000";
const UNIX: &str = "unix";

/// The status of the refusal; 0 where there is none.
fn asked(peer: &str, path: &str, headers: &[(&str, &str)]) -> u16 {
    asked_with(&Token::new(Some(Secret::new(TOKEN))), peer, path, headers)
}

fn asked_with(token: &Token, peer: &str, path: &str, headers: &[(&str, &str)]) -> u16 {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name: HeaderName = name.parse().unwrap();
        map.append(name, HeaderValue::from_str(value).unwrap());
    }
    let peer = match peer {
        UNIX => Peer::Unix,
        address => Peer::Tcp(address.parse().unwrap()),
    };
    let refused = check(peer, &path.parse().unwrap(), &map, token);
    refused.err().map_or(0, |(status, _)| status.as_u16())
}

const ORDERS: [&str; 11] = [
    "/api/v1/ledger",
    "/api/v1/status",
    "/api/v1/overview",
    "/api/v1/history",
    "/api/v1/reasons",
    "/api/v1/log",
    "/api/v1/sources",
    "/api/v1/explain",
    "/-/reload",
    "/page/other.js",
    "//metrics",
];
/// What the agent's page consists of.
const PAGE: [&str; 2] = ["/", "/page/main.js"];

#[test]
fn others_get_probes_and_metrics_alone() {
    for path in PUBLIC {
        assert_eq!(
            asked(REMOTE, path, &[("host", "node-7.example:9464")]),
            0,
            "{path}"
        );
    }
    for path in ORDERS {
        assert_eq!(
            asked(REMOTE, path, &[("host", "10.0.0.1:9464")]),
            403,
            "{path}"
        );
    }
    for peer in [
        "[::ffff:10.0.0.1]:1",
        "[fe80::1]:1",
        "0.0.0.0:1",
        "169.254.0.1:1",
    ] {
        assert_eq!(asked(peer, "/-/reload", &[]), 403, "{peer}");
    }
}

#[test]
fn this_machine_gets_all_without_a_token() {
    for path in ORDERS.into_iter().chain(PUBLIC).chain(PAGE) {
        for host in [
            "127.0.0.1:9464",
            "localhost",
            "LOCALHOST:1",
            "[::1]:9464",
            "10.0.0.1",
            "0.0.0.0:9464",
        ] {
            assert_eq!(asked(LOCAL, path, &[("host", host)]), 0, "{path} {host}");
        }
        assert_eq!(asked("[::1]:1", path, &[]), 0);
        assert_eq!(asked("[::ffff:127.8.8.8]:1", path, &[]), 0);
    }
}

#[test]
fn a_name_of_somebodys_dns_is_not_this_machine() {
    for host in [
        "evil.example:9464",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "",
        "a b",
    ] {
        for path in ["/-/reload", "/metrics"] {
            assert_eq!(asked(LOCAL, path, &[("host", host)]), 421, "{host}");
        }
    }
    let two = [("host", "127.0.0.1"), ("host", "evil.example")];
    assert_eq!(asked(LOCAL, "/-/reload", &two), 421);
    let absolute = "http://evil.example/-/reload";
    assert_eq!(asked(LOCAL, absolute, &[("host", "127.0.0.1")]), 421);
}

#[test]
fn a_page_in_a_browser_gets_nothing() {
    for peer in [LOCAL, REMOTE] {
        for path in ["/-/reload", "/api/v1/status", "/metrics"] {
            for (name, value) in [
                ("origin", "http://evil.example"),
                ("origin", "null"),
                ("origin", "http://127.0.0.1:9464"),
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-site", "same-site"),
            ] {
                let headers = [("host", "127.0.0.1:9464"), (name, value)];
                assert_eq!(asked(peer, path, &headers), 403, "{name}: {value}");
            }
        }
    }
    // Typed into the address bar.
    assert_eq!(asked(LOCAL, "/metrics", &[("sec-fetch-site", "none")]), 0);
}

#[test]
fn the_token_opens_everything_and_a_wrong_one_nothing() {
    let bearer = |token: &str| format!("Bearer {token}");
    for path in ORDERS {
        let headers = [
            ("host", "node-7.example"),
            ("authorization", &bearer(TOKEN)),
        ];
        assert_eq!(asked(REMOTE, path, &headers), 0, "{path}");
    }
    assert_eq!(
        asked(
            REMOTE,
            "/-/reload",
            &[("authorization", "bearer a-token-of-24-characters")]
        ),
        0
    );
    let longer = format!("{TOKEN}x");
    for wrong in [
        "",
        "a",
        &TOKEN[1..],
        &TOKEN[..TOKEN.len() - 1],
        &longer,
        "A-token-of-24-characters",
    ] {
        for peer in [LOCAL, REMOTE] {
            assert_eq!(
                asked(peer, "/metrics", &[("authorization", &bearer(wrong))]),
                401,
                "{wrong}"
            );
        }
    }
    assert_eq!(asked(REMOTE, "/-/reload", &[("authorization", TOKEN)]), 401);
    let basic = format!("Basic {TOKEN}");
    assert_eq!(
        asked(REMOTE, "/-/reload", &[("authorization", &basic)]),
        401
    );
    let two = [
        ("authorization", &*bearer("x")),
        ("authorization", &*bearer(TOKEN)),
    ];
    assert_eq!(asked(REMOTE, "/-/reload", &two), 401);
}

#[test]
fn without_a_token_none_is_right_and_a_reload_changes_it() {
    let token = Token::default();
    let headers = [("authorization", "Bearer ")];
    assert_eq!(asked_with(&token, REMOTE, "/-/reload", &headers), 401);
    token.set(Some(Secret::new(TOKEN)));
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("authorization", bearer.as_str())];
    assert_eq!(asked_with(&token, REMOTE, "/-/reload", &headers), 0);
    token.set(None);
    assert_eq!(asked_with(&token, REMOTE, "/-/reload", &headers), 401);
}

#[test]
fn what_a_proxy_passes_on_is_not_from_this_machine() {
    for name in ["forwarded", "via", "x-forwarded-for"] {
        assert_eq!(
            asked(LOCAL, "/-/reload", &[(name, "10.0.0.7")]),
            403,
            "{name}"
        );
        assert_eq!(asked(LOCAL, "/metrics", &[(name, "10.0.0.7")]), 0, "{name}");
    }
}

#[test]
fn the_page_is_for_everybody_who_may_have_the_token() {
    let no_token = Token::default();
    for path in PAGE {
        let host = [("host", "node-7.example:9464")];
        assert_eq!(asked(REMOTE, path, &host), 0, "{path}");
        assert_eq!(asked_with(&no_token, REMOTE, path, &host), 403, "{path}");
        let forwarded = [("host", "127.0.0.1"), ("x-forwarded-for", "10.0.0.7")];
        assert_eq!(asked(LOCAL, path, &forwarded), 0, "{path}");
        assert_eq!(asked_with(&no_token, LOCAL, path, &forwarded), 403);
        // On this machine, a name of somebody's DNS gets not even the page.
        assert_eq!(asked(LOCAL, path, &host), 421, "{path}");
    }
}

#[test]
fn a_link_leads_to_the_page_and_to_nothing_else() {
    let link = [
        ("host", "127.0.0.1:9464"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ];
    assert_eq!(asked(LOCAL, "/", &link), 0);
    assert_eq!(asked_with(&Token::default(), REMOTE, "/", &link), 403);
    for path in ["/page/main.js", "/metrics", "/api/v1/status", "/-/reload"] {
        assert_eq!(asked(LOCAL, path, &link), 403, "{path}");
    }
    // Neither a form, nor a frame, nor a script.
    let posted = [&link[..], &[("origin", "http://evil.example")]].concat();
    assert_eq!(asked(LOCAL, "/", &posted), 403);
    for (at, value) in [(2, "cors"), (3, "iframe")] {
        let mut other = link;
        other[at].1 = value;
        assert_eq!(asked(LOCAL, "/", &other), 403, "{value}");
    }
}

#[test]
fn the_page_loads_its_own_files_and_no_other_page_does() {
    let path = "/page/main.js";
    let from = |origin, site| {
        let host = ("host", "127.0.0.1:9464");
        [host, ("origin", origin), ("sec-fetch-site", site)]
    };
    let own = "http://127.0.0.1:9464";
    assert_eq!(asked(LOCAL, path, &from(own, "same-origin")), 0);
    assert_eq!(asked(REMOTE, path, &from(own, "same-origin")), 0);
    let no_token = Token::default();
    assert_eq!(
        asked_with(&no_token, REMOTE, path, &from(own, "same-origin")),
        403
    );
    // Browsers leave the site out where the connection is not secure.
    assert_eq!(asked(REMOTE, path, &from(own, "same-origin")[..2]), 0);
    for (origin, site) in [
        ("http://127.0.0.1:8080", "same-site"),
        ("http://127.0.0.1:8080", "same-origin"),
        (own, "cross-site"),
        ("null", "cross-site"),
        ("127.0.0.1:9464", "same-origin"),
    ] {
        assert_eq!(asked(LOCAL, path, &from(origin, site)), 403, "{origin}");
    }
    // By DNS rebinding it is not this machine that is named, and data nobody gets so.
    let rebound = [("host", "evil.example"), ("origin", "http://evil.example")];
    assert_eq!(asked(LOCAL, path, &rebound), 421);
    let data = from(own, "same-origin");
    assert_eq!(asked(LOCAL, "/api/v1/overview", &data), 403);
}

#[test]
fn who_may_open_the_socket_is_this_machine_unless_a_proxy_or_a_page_asks() {
    let host = ("host", "localhost");
    for path in ORDERS.into_iter().chain(PUBLIC) {
        assert_eq!(asked(UNIX, path, &[host]), 0, "{path}");
        assert_eq!(asked(UNIX, path, &[]), 0, "{path}");
    }
    let forwarded = ("x-forwarded-for", "10.0.0.7");
    assert_eq!(asked(UNIX, "/api/v1/overview", &[host, forwarded]), 403);
    assert_eq!(asked(UNIX, "/metrics", &[host, forwarded]), 0);
    // A port may be forwarded to the socket: names of somebody's DNS are refused here, too.
    assert_eq!(asked(UNIX, "/livez", &[("host", "evil.example")]), 421);
    assert_eq!(asked(UNIX, "/", &[host, ("origin", "null")]), 403);
    let wrong = ("authorization", "Bearer wrong");
    assert_eq!(asked(UNIX, "/", &[host, wrong]), 401);
}
