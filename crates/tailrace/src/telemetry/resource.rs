//! The resource of the agent's own logs and metrics: which agent it is, and where it runs. Attributes that the config gives to
//! all records are those of this one too, unless they name the service: that is the users' own.

use std::path::Path;

use tailrace_otlp::Value;

use crate::environment;
use crate::printed::redacted;

/// Variables that say where a pod runs, and the attributes that they stand for.
const VARIABLES: [(&str, &str); 4] = [
    ("K8S_NODE_NAME", "k8s.node.name"),
    ("K8S_NAMESPACE_NAME", "k8s.namespace.name"),
    ("K8S_POD_NAME", "k8s.pod.name"),
    ("K8S_POD_UID", "k8s.pod.uid"),
];

/// The attributes, the first of a name being the one that counts.
pub(super) fn attributes<'c>(
    config: impl IntoIterator<Item = (&'c String, &'c String)>,
    data_dir: &Path,
    host: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Vec<(String, Value)> {
    let data_dir = environment::absolute(data_dir);
    // No two agents of a machine have one data directory, and it stays the same from start to start.
    let instance = format!("{host}:{}", redacted(&data_dir.to_string_lossy()));
    let own = [
        ("service.name", "tailrace".to_owned()),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id", instance),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    let config = config
        .into_iter()
        .filter(|(name, _)| !name.starts_with("service."))
        .map(|(name, value)| (name.clone(), value.clone()));
    let host = [("host.name".to_owned(), host.to_owned())];
    let place = VARIABLES.iter().filter_map(|(variable, name)| {
        let value = env(variable).filter(|value| !value.is_empty())?;
        Some(((*name).to_owned(), value))
    });
    own.into_iter()
        .chain(config)
        .chain(host)
        .chain(place)
        .map(|(name, value)| (name, Value::Str(value)))
        .collect()
}

/// The name of this machine, in a container that of the container.
pub(super) fn host() -> String {
    let names = rustix::system::uname();
    names.nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_agent_names_itself_and_the_config_the_place() {
        let config = [
            ("k8s.cluster.name", "prod"),
            ("service.name", "shop"),
            ("host.name", "node-7"),
        ];
        let config = config.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let config = BTreeMap::from(config);
        let env = |name: &str| match name {
            "K8S_NODE_NAME" => Some("node-7".to_owned()),
            "K8S_POD_NAME" => Some(String::new()),
            _ => None,
        };
        let all = attributes(&config, Path::new("/var/lib/tailrace"), "pod-x", &env);
        let first = |name: &str| {
            let found = all.iter().find(|(key, _)| key == name);
            found.map(|(_, value)| match value {
                Value::Str(text) => text.as_str(),
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(first("service.name"), Some("tailrace"));
        assert_eq!(first("service.version"), Some(env!("CARGO_PKG_VERSION")));
        assert_eq!(
            first("service.instance.id"),
            Some("pod-x:/var/lib/tailrace")
        );
        assert_eq!(first("k8s.cluster.name"), Some("prod"));
        assert_eq!(first("host.name"), Some("node-7"));
        assert_eq!(first("k8s.node.name"), Some("node-7"));
        assert_eq!(first("k8s.pod.name"), None);
        assert!(!host().is_empty());
    }
}
