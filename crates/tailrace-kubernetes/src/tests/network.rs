//! Over a real socket, with TLS, from a kubeconfig: who is asked, with which credentials.

use std::fs;
use std::path::PathBuf;

use tailrace_testkit::TestTls;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;

/// Answers every request with `body` over TLS and closes the connection. Gives its port and the heads of the
/// requests.
async fn serve(tls: &TestTls, body: String) -> (u16, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = tls.acceptor(false);
    let (send, heads) = mpsc::channel(16);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            // A client that does not trust us goes away.
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = stream.read_u8().await else {
                    break;
                };
                head.push(byte);
            }
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
            if send.send(String::from_utf8(head).unwrap()).await.is_err() {
                return;
            }
        }
    });
    (port, heads)
}

fn kubeconfig(folder: &TempDir, port: u16, ca: Option<PathBuf>) -> PathBuf {
    let token = folder.path().join("token");
    fs::write(&token, "secret-7").unwrap();
    let mut cluster = json!({"server": format!("https://localhost:{port}")});
    if let Some(ca) = ca {
        cluster["certificate-authority"] = json!(ca);
    }
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"tokenFile": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    });
    let path = folder.path().join("kubeconfig");
    fs::write(&path, config.to_string()).unwrap();
    path
}

fn start(config: Config) -> (Pods, Arc<Notify>) {
    let changed = Arc::new(Notify::new());
    let notify = Arc::clone(&changed);
    let on_change = Arc::new(move || notify.notify_one());
    let pods = Pods::start(config, &Handle::current(), on_change).unwrap();
    (pods, changed)
}

async fn labels(pods: &Pods, changed: &Notify) {
    let container = loop {
        if let Lookup::Known(container) = pods.look_up(&log("web", "app", 0)) {
            break container;
        }
        let minute = Duration::from_secs(60);
        if tokio::time::timeout(minute, changed.notified())
            .await
            .is_err()
        {
            panic!("{:?}", pods.status());
        }
    };
    assert_eq!(text(&container, "k8s.pod.label.app"), Some("web"));
}

#[tokio::test]
async fn the_api_server_is_asked_with_the_token() {
    let (tls, folder) = (TestTls::generate(), TempDir::new().unwrap());
    let (port, mut heads) = serve(&tls, list(100, &[pod("web", 90)]).to_string()).await;
    let kubeconfig = Some(kubeconfig(&folder, port, Some(tls.ca_file())));
    let (pods, changed) = start(Config {
        source: MetadataSource::Api { kubeconfig },
        metadata_wait: Duration::from_secs(600),
        ..api_config()
    });
    labels(&pods, &changed).await;
    let head = heads.recv().await.unwrap();
    assert!(head.starts_with("GET /api/v1/pods?"), "{head}");
    assert!(
        head.contains("fieldSelector=spec.nodeName%3Dnode-1"),
        "{head}"
    );
    assert!(head.contains("Bearer secret-7"), "{head}");
}

#[tokio::test]
async fn the_kubelet_is_asked_with_the_token() {
    let (tls, folder) = (TestTls::generate(), TempDir::new().unwrap());
    let (port, mut heads) = serve(&tls, list(100, &[pod("web", 90)]).to_string()).await;
    // The API server's address is not used, and its CA is not the kubelet's.
    let other = TestTls::generate();
    let kubeconfig = kubeconfig(&folder, 1, Some(other.ca_file()));
    let config = |skip_verify| Config {
        source: MetadataSource::Kubelet {
            url: format!("https://127.0.0.1:{port}"),
            kubeconfig: Some(kubeconfig.clone()),
            skip_verify,
        },
        metadata_wait: Duration::from_secs(600),
        ..api_config()
    };
    let (pods, changed) = start(config(true));
    labels(&pods, &changed).await;
    let head = heads.recv().await.unwrap();
    assert!(head.starts_with("GET /pods HTTP/1.1"), "{head}");
    assert!(head.contains("Bearer secret-7"), "{head}");

    // Without it the token is shown to nobody, and the reason is told.
    let (pods, _changed) = start(config(false));
    let refused = async {
        loop {
            match pods.status().last_error {
                Some(error) => break error,
                None => tokio::task::yield_now().await,
            }
        }
    };
    let error = tokio::time::timeout(Duration::from_secs(60), refused)
        .await
        .unwrap();
    assert!(error.contains("certificate"), "{error}");
    assert!(heads.is_empty());
}

#[tokio::test]
async fn credentials_that_are_not_there_are_refused_at_start() {
    let folder = TempDir::new().unwrap();
    let start = |source: MetadataSource| {
        let config = Config {
            source,
            ..api_config()
        };
        let started = Pods::start(config, &Handle::current(), Arc::new(|| ()));
        started.err().unwrap()
    };
    let error = start(MetadataSource::Api {
        kubeconfig: Some(folder.path().join("none")),
    });
    assert_eq!(error.field(), "kubeconfig");
    for url in ["10.0.0.1:10250", "https://a/pods", "ftp://a", ""] {
        let error = start(MetadataSource::Kubelet {
            url: url.to_owned(),
            kubeconfig: None,
            skip_verify: false,
        });
        assert_eq!(error.field(), "url", "{url}");
    }
}

#[tokio::test]
async fn paths_need_nobody() {
    let config = Config::new(MetadataSource::Path);
    let pods = Pods::start(config, &Handle::current(), Arc::new(|| ())).unwrap();
    let Lookup::Known(container) = pods.look_up(&log("web", "app", 3)) else {
        panic!("at once");
    };
    let count = attribute(&container, "k8s.container.restart_count");
    assert_eq!(count, Some(&Attribute::Int(3)));
    assert_eq!(container.revision, 0);
    assert!(pods.status().synced);
}
