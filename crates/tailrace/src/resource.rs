//! Resource attributes: those of the config, completed by the standard environment variables.

use std::collections::BTreeMap;

use tracing::warn;

/// The config's attributes, and below them `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`
/// (OpenTelemetry specification, resource/sdk.md): what the config says wins.
pub(crate) fn with_environment(
    config: &BTreeMap<String, String>,
    env: &dyn Fn(&str) -> Option<String>,
) -> BTreeMap<String, String> {
    let mut attributes = BTreeMap::new();
    if let Some(text) = env("OTEL_RESOURCE_ATTRIBUTES").filter(|text| !text.is_empty()) {
        match tailrace_otlp::parse_resource_attributes(&text) {
            Ok(pairs) => attributes.extend(pairs),
            Err(error) => warn!(%error, "OTEL_RESOURCE_ATTRIBUTES is ignored as a whole"),
        }
    }
    if let Some(name) = env("OTEL_SERVICE_NAME").filter(|name| !name.is_empty()) {
        attributes.insert("service.name".to_owned(), name);
    }
    attributes.extend(
        config
            .iter()
            .map(|(key, value)| (key.clone(), value.clone())),
    );
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_config_wins_over_the_service_name_over_the_list() {
        let env = |name: &str| match name {
            "OTEL_RESOURCE_ATTRIBUTES" => Some("service.name=a,host.name=h,zone=z%201".to_owned()),
            "OTEL_SERVICE_NAME" => Some("b".to_owned()),
            _ => None,
        };
        let config = BTreeMap::from([("host.name".to_owned(), "config".to_owned())]);
        let all = with_environment(&config, &env);
        let expected = [
            ("host.name", "config"),
            ("service.name", "b"),
            ("zone", "z 1"),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(all, BTreeMap::from(expected));
    }

    #[test]
    fn a_list_with_an_error_is_dropped_whole() {
        let env = |name: &str| (name == "OTEL_RESOURCE_ATTRIBUTES").then(|| "a=b,c".to_owned());
        assert_eq!(with_environment(&BTreeMap::new(), &env), BTreeMap::new());
    }
}
