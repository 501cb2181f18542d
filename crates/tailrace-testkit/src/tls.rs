//! Certificates for one test: an authority, a server on loopback and a client, as PEM files in a
//! folder that goes away with the value. It never touches the machine's own trust store.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// A private authority with a certificate for `localhost`, `127.0.0.1` and `collector.test`, and one
/// for a client.
pub struct TestTls {
    folder: TempDir,
    authority: CertificateDer<'static>,
    server: (CertificateDer<'static>, Vec<u8>),
    provider: Arc<CryptoProvider>,
}

impl TestTls {
    /// Makes the keys and writes the files.
    pub fn generate() -> TestTls {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "Tailrace test authority");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();

        let folder = TempDir::new().unwrap();
        let names = ["localhost", "127.0.0.1", "collector.test"].map(str::to_owned);
        let server_key = KeyPair::generate().unwrap();
        let server = CertificateParams::new(names)
            .unwrap()
            .signed_by(&server_key, &authority)
            .unwrap();
        let client_key = KeyPair::generate().unwrap();
        let client = CertificateParams::new(["agent.test".to_owned()])
            .unwrap()
            .signed_by(&client_key, &authority)
            .unwrap();

        let write = |name: &str, text: String| {
            std::fs::write(folder.path().join(name), text).unwrap();
        };
        write("ca.pem", authority.pem());
        write("client.pem", client.pem());
        write("client-key.pem", client_key.serialize_pem());
        TestTls {
            authority: authority.der().clone(),
            server: (server.der().clone(), server_key.serialize_der()),
            provider: Arc::new(ring::default_provider()),
            folder,
        }
    }

    /// The authority's certificate.
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// The client's certificate.
    pub fn cert_file(&self) -> PathBuf {
        self.folder.path().join("client.pem")
    }

    /// The client's key.
    pub fn key_file(&self) -> PathBuf {
        self.folder.path().join("client-key.pem")
    }

    /// What accepts connections for the server's certificate; with `client_required` only from
    /// clients whose certificate is the authority's.
    pub fn acceptor(&self, client_required: bool) -> TlsAcceptor {
        let builder = ServerConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = if client_required {
            let mut roots = RootCertStore::empty();
            roots.add(self.authority.clone()).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(roots.into(), self.provider.clone())
                    .build()
                    .unwrap();
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        let (cert, key) = self.server.clone();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key));
        let mut config = builder.with_single_cert(vec![cert], key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}
