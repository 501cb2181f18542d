//! Requests through a proxy on loopback. The names of the servers exist for the proxy alone.

use tailrace_schema::Secret;
use tailrace_testkit::{Collector, TestTls};

use super::*;

fn through(address: SocketAddr, endpoint: &str, protocol: Protocol) -> OtlpOutput {
    OtlpOutput {
        proxy: Some(Secret::new(format!("http://us%40er:hunter22@{address}"))),
        ..config(endpoint, protocol)
    }
}

const AUTHORIZATION: &str = "proxy-authorization: basic dXNAZXI6aHVudGVyMjI=";

#[tokio::test]
async fn requests_go_through_the_proxy_with_its_credentials() {
    let tls = TestTls::generate();
    let (plain, secure) = (Collector::start(), Collector::start_tls(&tls, false));
    let cases = [
        (
            &plain,
            "http://collector.invalid:4318",
            Protocol::HttpProtobuf,
            "POST http://collector.invalid:4318/v1/logs ",
        ),
        (
            &plain,
            "http://collector.invalid",
            Protocol::Grpc,
            "CONNECT collector.invalid:80 ",
        ),
        (
            &secure,
            "https://collector.test",
            Protocol::HttpProtobuf,
            "CONNECT collector.test:443 ",
        ),
        (
            &secure,
            "https://collector.test:4317",
            Protocol::Grpc,
            "CONNECT collector.test:4317 ",
        ),
    ];
    for (collector, endpoint, protocol, line) in cases {
        let (address, heads) = proxy(Some(collector.address()), "").await;
        let mut config = through(address, endpoint, protocol);
        if endpoint.starts_with("https") {
            config.tls.ca_file = Some(tls.ca_file());
        }
        let outcome = attempt(&config).await;
        assert!(
            matches!(outcome, Outcome::Delivered { rejected: 0, .. }),
            "{outcome:?}"
        );
        assert_eq!(collector.take_records().len(), 1, "{endpoint}");
        let heads = heads.lock().unwrap().clone();
        assert!(heads[0].starts_with(line), "{}", heads[0]);
        let is_authorized = |head: &String| {
            head.to_ascii_lowercase()
                .contains(&AUTHORIZATION.to_ascii_lowercase())
        };
        assert!(heads.iter().all(is_authorized), "{heads:?}");
    }
}

#[tokio::test]
async fn a_proxy_that_refuses_or_is_not_there_is_named_without_its_password() {
    let tls = TestTls::generate();
    for protocol in [Protocol::HttpProtobuf, Protocol::Grpc] {
        let cases = [
            (
                "407 Proxy Authentication Required",
                "requires credentials (407)",
            ),
            ("403 Forbidden", "does it allow CONNECT"),
        ];
        for (refusal, expected) in cases {
            let (address, _) = proxy(None, refusal).await;
            let mut config = through(address, "https://collector.test:4317", protocol);
            config.tls.ca_file = Some(tls.ca_file());
            let said = reason(attempt(&config).await);
            assert!(
                said.contains(expected) && said.contains(&address.to_string()),
                "{said}"
            );
            assert!(!said.contains("hunter22"), "{said}");
        }
        let nowhere = SocketAddr::from(([127, 0, 0, 1], closed_port().await));
        let mut config = through(nowhere, "https://collector.test:4317", protocol);
        config.tls.ca_file = Some(tls.ca_file());
        let said = reason(attempt(&config).await);
        assert!(
            said.contains(&format!("nothing listens at the proxy {nowhere}")),
            "{said}"
        );
    }
}

#[test]
fn a_proxy_and_another_name_for_the_server_do_not_go_together() {
    let tls = TestTls::generate();
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    for protocol in [Protocol::HttpProtobuf, Protocol::Grpc] {
        let mut config = through(address, "https://h", protocol);
        config.tls.ca_file = Some(tls.ca_file());
        config.tls.server_name = Some("collector.test".to_owned());
        let error = OtlpTransport::new(&config).err().unwrap();
        assert_eq!(error.field(), "tls.server_name");
        config.proxy = Some(Secret::new("none"));
        assert!(OtlpTransport::new(&config).is_ok());
        config.proxy = Some(Secret::new("socks5://h"));
        assert_eq!(OtlpTransport::new(&config).err().unwrap().field(), "proxy");
    }
}
