//! The rustls configuration of both transports: the authorities to trust and the client's own certificate. The
//! `ClientConfig` has no ALPN. Nothing is connected.
//!
//! The crypto provider is the process's (`CryptoProvider::install_default`, done by the binary), else
//! ring. Certificate files are read once, here.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use super::options::Tls;
use crate::Error;
use crate::error::Kind;

/// The TLS side of a client. For an unencrypted endpoint nothing is read and nothing is trusted.
pub(crate) fn client_config(tls: &Tls, encrypted: bool) -> Result<ClientConfig, Error> {
    let provider = CryptoProvider::get_default()
        .cloned()
        .unwrap_or_else(|| Arc::new(ring::default_provider()));
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|source| Kind::Tls { source })?;
    if !encrypted {
        if *tls != Tls::default() {
            let message = "is set, but the endpoint is http://: write https:// or remove tls";
            return Err(Error::value("tls", message));
        }
        let builder = builder.with_root_certificates(RootCertStore::empty());
        return Ok(builder.with_no_client_auth());
    }
    check_server_name(tls)?;
    let roots = match &tls.ca_file {
        Some(path) => file_roots(path)?,
        None => machine_roots()?,
    };
    let builder = builder.with_root_certificates(roots);
    match (&tls.cert_file, &tls.key_file) {
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(cert), Some(key)) => {
            let chain = certificates("tls.cert_file", cert)?;
            let key = private_key("tls.key_file", key)?;
            let config = builder.with_client_auth_cert(chain, key);
            Ok(config.map_err(|source| Kind::Tls { source })?)
        }
        (Some(_), None) => Err(Error::value(
            "tls.key_file",
            "is missing beside tls.cert_file",
        )),
        (None, Some(_)) => Err(Error::value(
            "tls.cert_file",
            "is missing beside tls.key_file",
        )),
    }
}

fn check_server_name(tls: &Tls) -> Result<(), Error> {
    let Some(name) = &tls.server_name else {
        return Ok(());
    };
    match ServerName::try_from(name.as_str()) {
        Ok(ServerName::DnsName(_)) => Ok(()),
        _ => Err(Error::value(
            "tls.server_name",
            format!("{name} is not a host name"),
        )),
    }
}

fn file_roots(path: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("tls.ca_file", path)? {
        roots
            .add(certificate)
            .map_err(|source| Kind::Tls { source })?;
    }
    Ok(roots)
}

fn machine_roots() -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    // One odd certificate in the machine's store does not spoil the others.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        Err(Kind::NoRoots.into())
    } else {
        Ok(roots)
    }
}

fn certificates(field: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let text = read(field, path)?;
    let expected = "BEGIN CERTIFICATE";
    let pem = |source| Kind::Pem {
        field,
        path: path.to_owned(),
        expected,
        source,
    };
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let certificates = certificates.map_err(|source| pem(Some(source)))?;
    if certificates.is_empty() {
        Err(pem(None).into())
    } else {
        Ok(certificates)
    }
}

fn private_key(field: &'static str, path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    let text = read(field, path)?;
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|source| Kind::Pem {
        field,
        path: path.to_owned(),
        expected: "BEGIN PRIVATE KEY, not encrypted",
        source: Some(source),
    })?;
    Ok(key)
}

/// A bundle of all authorities of the web has a quarter of it.
const FILE_BYTES_MAX: u64 = 1 << 20;

fn read(field: &'static str, path: &Path) -> Result<Vec<u8>, Error> {
    let text =
        tailrace_files::read_provided(path, FILE_BYTES_MAX).map_err(|source| Kind::File {
            field,
            path: path.to_owned(),
            source,
        })?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use tailrace_testkit::TestTls;

    use super::{Tls, client_config};

    fn fails(tls: &Tls, encrypted: bool) -> String {
        client_config(tls, encrypted).unwrap_err().to_string()
    }

    #[test]
    fn mistakes_name_the_key_and_the_file() {
        let files = TestTls::generate();
        let missing = Tls {
            ca_file: Some("/nowhere/ca.pem".into()),
            ..Tls::default()
        };
        assert_eq!(
            fails(&missing, true),
            "tls.ca_file: cannot read /nowhere/ca.pem"
        );
        assert!(fails(&missing, false).contains("the endpoint is http://"));

        let key_as_ca = Tls {
            ca_file: Some(files.key_file()),
            ..Tls::default()
        };
        assert!(fails(&key_as_ca, true).contains("BEGIN CERTIFICATE"));

        let without_key = Tls {
            ca_file: Some(files.ca_file()),
            cert_file: Some(files.cert_file()),
            ..Tls::default()
        };
        assert_eq!(
            fails(&without_key, true),
            "tls.key_file: is missing beside tls.cert_file"
        );

        let cert_as_key = Tls {
            key_file: Some(files.cert_file()),
            ..without_key.clone()
        };
        assert!(fails(&cert_as_key, true).starts_with("tls.key_file: "));

        let other_key = Tls {
            key_file: Some(TestTls::generate().key_file()),
            ..without_key
        };
        assert!(fails(&other_key, true).starts_with("tls.key_file: cannot read"));

        let address = Tls {
            ca_file: Some(files.ca_file()),
            server_name: Some("127.0.0.1".to_owned()),
            ..Tls::default()
        };
        assert!(fails(&address, true).contains("is not a host name"));
    }
}
