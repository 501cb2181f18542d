//! Every way not to reach a server, and what a person reads about it.

use rustls::CertificateError;
use tailrace_schema::Secret;
use tailrace_testkit::{Collector, TestTls};

use super::*;
use crate::Tls;
use crate::delivery::Doubt;
use crate::http_client::answer::doubted;
use crate::http_client::target::Target;
use crate::http_client::within;

/// The reason contains each part, and names the server.
fn check(reason: &str, url: &str, parts: &[&str]) {
    assert!(reason.starts_with(url), "{reason}");
    for part in parts {
        assert!(reason.contains(part), "`{part}` in: {reason}");
    }
}

const BOTH: [Protocol; 2] = [Protocol::HttpProtobuf, Protocol::Grpc];

#[tokio::test]
async fn where_nothing_listens_the_address_is_named() {
    let port = closed_port().await;
    for protocol in BOTH {
        let url = format!("http://127.0.0.1:{port}");
        let said = reason(attempt(&config(&url, protocol)).await);
        let nothing = format!("nothing listens at 127.0.0.1:{port}");
        check(&said, &url, &[&nothing, "is the server up"]);
    }
}

#[tokio::test]
async fn a_name_that_is_unknown_is_said_to_be() {
    for protocol in BOTH {
        let url = "http://nowhere.invalid:4318";
        let said = reason(attempt(&config(url, protocol)).await);
        check(&said, url, &["nowhere.invalid:4318 cannot be resolved"]);
    }
}

#[tokio::test]
async fn tls_to_a_server_without_it_suggests_http() {
    let tls = TestTls::generate();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let plain = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.read(&mut [0; 2048]).await;
            let _ = socket
                .write_all(response("400 Bad Request", "").as_bytes())
                .await;
        }
    });
    for protocol in BOTH {
        let mut config = config(&format!("https://{plain}"), protocol);
        config.tls.ca_file = Some(tls.ca_file());
        let said = reason(attempt(&config).await);
        check(
            &said,
            "https://127.0.0.1",
            &["does not speak TLS: write http://"],
        );
    }
}

#[tokio::test]
async fn no_tls_to_a_server_with_it_suggests_https() {
    let tls = TestTls::generate();
    let collector = Collector::start_tls(&tls, false);
    for protocol in BOTH {
        let url = format!("http://{}", collector.address());
        let said = reason(attempt(&config(&url, protocol)).await);
        check(&said, &url, &["TLS (https://)"]);
    }
    // Servers in Go and nginx say it themselves.
    for body in [
        "Client sent an HTTP request to an HTTPS server.\n",
        "<html>The plain HTTP request was sent to HTTPS port",
    ] {
        let address = server(move |_| response("400 Bad Request", body)).await;
        let outcome = attempt(&config(
            &format!("http://{address}"),
            Protocol::HttpProtobuf,
        ))
        .await;
        assert!(matches!(outcome, Outcome::Hold { .. }), "{outcome:?}");
        check(
            &reason(outcome),
            "http://",
            &["the server expects TLS: write https://"],
        );
    }
}

#[tokio::test]
async fn faults_of_certificates_say_which_option_is_meant() {
    let (tls, other) = (TestTls::generate(), TestTls::generate());
    let collector = Collector::start_tls(&tls, true);
    for protocol in BOTH {
        let mut config = config(&collector.endpoint(), protocol);
        config.tls.ca_file = Some(other.ca_file());
        let said = reason(attempt(&config).await);
        check(
            &said,
            "https://",
            &[
                "invalid peer certificate",
                "none of the authorities in tls.ca_file",
            ],
        );
        config.tls.ca_file = Some(tls.ca_file());
        let said = reason(attempt(&config).await);
        check(
            &said,
            "https://",
            &["require a client certificate", "tls.cert_file"],
        );
        config.tls.server_name = Some("other.test".to_owned());
        let said = reason(attempt(&config).await);
        check(
            &said,
            "https://",
            &["other.test", "collector.test", "tls.server_name"],
        );
    }
}

#[test]
fn certificates_that_are_old_or_of_an_unknown_authority() {
    let url = reqwest::Url::parse("https://h").unwrap();
    let target = Target::new(&url, false, &Default::default(), &Tls::default(), None);
    let said = |error| target.explain(&rustls::Error::InvalidCertificate(error));
    let cases = [
        (
            CertificateError::UnknownIssuer,
            "name a file with the authority's certificate in tls.ca_file",
        ),
        (CertificateError::Expired, "renew the server's certificate"),
        (CertificateError::NotValidYet, "the clock of this machine"),
        (CertificateError::Revoked, "invalid peer certificate"),
        (
            CertificateError::Other(rustls::OtherError(std::sync::Arc::new(
                std::io::Error::other("CaUsedAsEndEntity"),
            ))),
            "give it one for a server",
        ),
    ];
    for (error, expected) in cases {
        let said = said(error);
        assert!(said.contains(expected), "{said}");
    }
    // As TLS libraries hand it on.
    let wrapped = std::io::Error::other(rustls::Error::NoApplicationProtocol);
    assert!(target.explain(&wrapped).contains("gRPC often 4317"));
    assert_eq!(
        target.explain(&std::fmt::Error),
        std::fmt::Error.to_string()
    );
}

#[tokio::test]
async fn the_wrong_protocol_names_the_other_one() {
    let collector = Collector::start();
    let page = server(|_| response("400 Bad Request", "")).await;
    let said = reason(attempt(&config(&format!("http://{page}"), Protocol::Grpc)).await);
    check(
        &said,
        "http://",
        &["is no HTTP/2", "protocol: http/protobuf"],
    );
    drop(collector);
    // By the port alone: what listens there is not asked.
    for (port, is_grpc, expected) in [
        (4317, false, "set protocol: grpc"),
        (4318, true, "set protocol: http/protobuf"),
    ] {
        let url = reqwest::Url::parse(&format!("http://h:{port}")).unwrap();
        let target = Target::new(&url, is_grpc, &Default::default(), &Tls::default(), None);
        let text = if is_grpc {
            "frame with invalid size"
        } else {
            "invalid HTTP version parsed"
        };
        let said = target.explain(&std::io::Error::other(text));
        assert!(said.contains(expected), "{said}");
    }
}

#[tokio::test]
async fn statuses_say_what_to_look_at() {
    let cases = [
        (
            "401 Unauthorized",
            "",
            "no `authorization` is set in headers",
        ),
        (
            "403 Forbidden",
            "",
            "check the credentials in headers or tls",
        ),
        (
            "404 Not Found",
            "/other",
            "OTLP servers take logs at /v1/logs",
        ),
        (
            "405 Method Not Allowed",
            "/other",
            "check the path of the endpoint",
        ),
        ("413 Payload Too Large", "", "413"),
        (
            "415 Unsupported Media Type",
            "",
            "set compression to gzip or none",
        ),
        (
            "407 Proxy Authentication Required",
            "",
            "USER:PASSWORD@HOST:PORT",
        ),
        ("503 Service Unavailable", "", "the server answered 503"),
    ];
    for (status, path, expected) in cases {
        let address = server(move |_| response(status, "")).await;
        let mut config = config("http://unused", Protocol::HttpProtobuf);
        config.logs_endpoint = Some(format!("http://{address}{path}?key=query-secret"));
        let said = reason(attempt(&config).await);
        check(&said, &format!("http://{address}"), &[expected]);
        assert!(!said.contains("query-secret"), "{said}");
    }
}

/// A server that quotes the request in its answer, as some do to help.
#[tokio::test]
async fn what_a_server_quotes_of_our_credentials_is_masked() {
    for status in [
        "400 Bad Request",
        "401 Unauthorized",
        "503 Service Unavailable",
        "418 Teapot",
    ] {
        // So much before it that the end of the excerpt falls into the token.
        let address =
            server(move |head| response(status, &format!("{}{head}", "x".repeat(150)))).await;
        let mut config = config("http://unused", Protocol::HttpProtobuf);
        config.logs_endpoint = Some(format!("http://{address}/v1/logs?key=query-secret"));
        let token = Secret::new("Bearer abcdefgh0123456789abcdefgh0123456789");
        config.headers.insert("authorization".to_owned(), token);
        let said = reason(attempt(&config).await);
        assert!(said.contains("xxx") && said.contains("***"), "{said}");
        for part in ["query-secret", "abcdefgh"] {
            assert!(!said.contains(part), "{said}");
        }
    }
}

/// A record that is refused costs no connection: a server that refuses one in three would get as many handshakes.
#[tokio::test]
async fn a_connection_is_renewed_after_what_it_may_be_to_blame_for() {
    let url = reqwest::Url::parse("http://h").unwrap();
    let target = Target::new(&url, false, &Default::default(), &Tls::default(), None);
    let refused = || Outcome::Refused {
        reason: String::new(),
    };
    let cases = [
        (doubted(refused(), Doubt::None), false),
        (doubted(refused(), Doubt::Possible), false),
        (doubted(refused(), Doubt::Named), true),
        (Outcome::timeout(Duration::from_secs(1)).into(), true),
    ];
    for (answered, is_renewed) in cases {
        let mut renewed = false;
        let shown = format!("{answered:?}");
        let far = Duration::from_secs(60);
        within(far, &target, async { answered }, || renewed = true).await;
        assert_eq!(renewed, is_renewed, "{shown}");
    }
}
