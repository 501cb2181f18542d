//! The config of an agent that is started without one: from `--input`, or from the environment that OpenTelemetry defines.
//! It is the text of a YAML file, so that everything else treats it like one. Pure.

/// What it is called in messages.
pub(crate) const NAME: &str = "<command line>";
/// Where Kubernetes keeps the logs of a node.
pub(crate) const PODS_DIR: &str = "/var/log/pods";

/// The variables that name a server.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];

/// Makes a config: the files of `inputs`, or on a Kubernetes node, where `has_pods` says that its logs are here, these logs.
/// All records go to the server that `OTEL_EXPORTER_OTLP_*` name.
///
/// # Errors
///
/// What the command line lacks.
pub(crate) fn config(
    inputs: &[String],
    has_pods: bool,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let is_set = |name: &&str| env(name).is_some_and(|value| !value.trim().is_empty());
    let has_server = ENDPOINTS.iter().any(is_set);
    let is_node = has_pods && is_set(&"KUBERNETES_SERVICE_HOST");
    let input = match inputs {
        [_, ..] if !has_server => {
            let hint = "set OTEL_EXPORTER_OTLP_ENDPOINT, such as http://localhost:4318";
            return Err(format!("--input needs a server to send to: {hint}"));
        }
        [_, ..] => {
            let globs: Vec<String> = inputs.iter().map(|glob| quoted(glob)).collect();
            format!("{{type: file, include: [{}]}}", globs.join(", "))
        }
        [] if has_server && is_node => "{type: kubernetes}".to_owned(),
        [] if has_server => {
            return Err(
                "no logs are named: give a config with -c, or files with --input".to_owned(),
            );
        }
        [] => {
            let hint = "give one with -c, or log files with --input and a server with OTEL_EXPORTER_OTLP_ENDPOINT; \
                        `tailrace init` writes a config to begin with";
            return Err(format!("no config is given: {hint}"));
        }
    };
    Ok(format!(
        "pipelines:\n  logs:\n    input: {input}\n    output: {{type: otlp}}\n"
    ))
}

/// A text of the command line as YAML, in which nothing is expanded.
fn quoted(text: &str) -> String {
    serde_json::Value::String(text.replace('$', "$$")).to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn made(inputs: &[&str], has_pods: bool, variables: &[&str]) -> Result<String, String> {
        let inputs: Vec<String> = inputs.iter().map(|&glob| glob.to_owned()).collect();
        let env = |name: &str| {
            variables
                .contains(&name)
                .then(|| "http://h:4318".to_owned())
        };
        config(&inputs, has_pods, &env)
    }

    #[test]
    fn files_or_the_pods_of_a_node_and_a_server() {
        let server = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let node = "KUBERNETES_SERVICE_HOST";
        let text = made(&["/a/*.log", "/b"], true, &[server, node]).unwrap();
        assert!(text.contains(r#"include: ["/a/*.log", "/b"]"#), "{text}");
        let text = made(&[], true, &[server, node]).unwrap();
        assert!(text.contains("type: kubernetes"), "{text}");
        for (inputs, has_pods, variables, lacks) in [
            (&[][..], true, &[node][..], "-c"),
            (&[], false, &[server, node], "--input"),
            (&[], true, &[server], "--input"),
            (&["/a"], true, &[node], "OTEL_EXPORTER_OTLP_ENDPOINT"),
        ] {
            let error = made(inputs, has_pods, variables).unwrap_err();
            assert!(error.contains(lacks), "{error}");
        }
    }

    #[test]
    fn what_is_made_loads_whatever_the_glob_is() {
        let globs = [
            "/a b/\"x\"/{c,d}.log",
            "/$HOME/${HOME}/$$",
            "/ä\u{1b}\\n: #",
        ];
        let text = made(&globs, false, &["OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"]).unwrap();
        let once = tailrace_config::ReadOnce::default().with(NAME, text);
        let loaded = tailrace_config::load_once(&[NAME.into()], &once, &|_| None);
        let config = loaded.config.unwrap();
        let options = format!("{:?}", config.pipelines["logs"].inputs[0].kind);
        assert!(options.contains("/$HOME/${HOME}/$$"), "{options}");
    }
}
