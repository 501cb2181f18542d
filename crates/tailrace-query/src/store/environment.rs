//! The environment that the clients of object stores are made from, looked at before: they panic at an address or a key that no
//! request can carry.

use anyhow::ensure;
use http::Uri;

const ADDRESSES: [&str; 7] = [
    "AWS_ENDPOINT",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL_STS",
    "AWS_METADATA_ENDPOINT",
    "AZURE_ENDPOINT",
    "AZURE_STORAGE_ENDPOINT",
];
/// They become parts of addresses and headers.
const PLAIN: [&str; 13] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_DEFAULT_REGION",
    "AWS_REGION",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_TOKEN",
    "AZURE_STORAGE_ACCESS_KEY",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_ACCOUNT_NAME",
    "AZURE_STORAGE_MASTER_KEY",
    "AZURE_STORAGE_SAS_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_TOKEN",
];

/// Checks what the environment says of stores with this scheme; `of` gives the value of a name.
///
/// # Errors
///
/// An address is not one of HTTP, or a key has a space or a character that cannot be printed. Values are not quoted, for they
/// may be secrets.
pub(super) fn check(scheme: &str, of: impl Fn(&str) -> Option<String>) -> anyhow::Result<()> {
    let prefix = match scheme {
        "s3" | "s3a" => "AWS_",
        "az" | "azure" | "abfs" | "abfss" => "AZURE_",
        _ => return Ok(()),
    };
    let of_scheme = |name: &&&str| name.starts_with(prefix);
    for name in ADDRESSES.iter().filter(of_scheme) {
        let address = of(name).map(|text| text.parse::<Uri>());
        let is_usable = |uri: &Uri| {
            let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
            is_http && uri.host().is_some_and(|host| !host.is_empty())
        };
        ensure!(
            address.is_none_or(|uri| uri.is_ok_and(|uri| is_usable(&uri))),
            "the environment variable {name} is no address: it begins with http:// or https://, as http://localhost:9000 does"
        );
    }
    for name in PLAIN.iter().filter(of_scheme) {
        let is_plain = |text: String| text.chars().all(|it| it.is_ascii_graphic());
        ensure!(
            of(name).is_none_or(is_plain),
            "the environment variable {name} has a space, a line end or another character that cannot be sent: \
             a value from a file may end in a line end"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;

    fn refused(scheme: &str, name: &str, value: &str) -> Option<String> {
        let of = |asked: &str| (asked == name).then(|| value.to_owned());
        check(scheme, of).err().map(|error| error.to_string())
    }

    #[test]
    fn addresses_are_those_of_http() {
        for good in [
            "http://localhost:9000",
            "https://s3.example.com/base",
            "http://[::1]:1",
        ] {
            assert_eq!(refused("s3", "AWS_ENDPOINT_URL", good), None);
        }
        for bad in [
            "localhost:9000",
            "nonsense",
            "http://",
            "/x",
            "http://a b/",
            "",
            "ftp://a",
        ] {
            let said = refused("s3", "AWS_ENDPOINT_URL", bad).unwrap_or_default();
            assert!(
                said.contains("AWS_ENDPOINT_URL is no address"),
                "{bad}: {said}"
            );
            assert_eq!(refused("gs", "AWS_ENDPOINT_URL", bad), None);
        }
    }

    #[test]
    fn keys_are_printed_and_never_quoted() {
        assert_eq!(refused("s3", "AWS_SECRET_ACCESS_KEY", "a/b+c="), None);
        for bad in ["secret\n", "us east", "\u{e9}"] {
            let said = refused("s3a", "AWS_REGION", bad).unwrap_or_default();
            assert!(said.contains("AWS_REGION has a space"), "{said}");
            assert!(!said.contains(bad.trim()), "{said}");
        }
    }
}
