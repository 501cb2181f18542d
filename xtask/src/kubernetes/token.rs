//! What a token may do, as `kubectl auth can-i --list` tells it.

use anyhow::{Result, bail, ensure};

/// What everyone with an account may do: ask about itself. Anything else has to be pods.
const ABOUT_ITSELF: [&str; 3] = [
    "selfsubjectaccessreviews",
    "selfsubjectreviews",
    "selfsubjectrulesreviews",
];

/// Takes the table of `kubectl auth can-i --list`: resources, non-resource URLs, names, verbs.
pub(crate) fn check(table: &str) -> Result<()> {
    let mut may_read_pods = false;
    for line in table.lines().filter(|line| !line.trim().is_empty()) {
        let resource = line.split_whitespace().next().unwrap_or_default();
        let verbs = line
            .rsplit_once('[')
            .map_or("", |(_, verbs)| verbs.trim_end_matches([']', ' ']));
        let kind = resource.split('.').next().unwrap_or_default();
        // A line that begins with a list is about URLs of the server, such as its version.
        if resource.starts_with('[') || (ABOUT_ITSELF.contains(&kind) && verbs == "create") {
            continue;
        }
        let mut verbs: Vec<&str> = verbs.split_whitespace().collect();
        verbs.sort_unstable();
        if resource != "pods" || verbs != ["get", "list", "watch"] {
            bail!(
                "the agent's token may do more than read pods: {}",
                line.trim()
            );
        }
        may_read_pods = true;
    }
    ensure!(
        may_read_pods,
        "the agent's token may not read pods:\n{table}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const URLS: &str =
        "selfsubjectreviews.authentication.k8s.io   []   []   [create]\n   [/api/*]   []   [get]\n";

    #[test]
    fn a_token_that_may_do_more_or_less_is_noticed() {
        let pods = "pods   []   []   [get list watch]\n";
        assert!(check(&format!("{pods}{URLS}")).is_ok());
        assert!(check(URLS).is_err());
        for more in [
            "secrets  []  []  [get]",
            "pods  []  []  [get list watch delete]",
            "pods/exec  []  []  [create]",
            "*.*  []  []  [*]",
            "selfsubjectreviews.authentication.k8s.io  []  []  [create delete]",
        ] {
            let error = check(&format!("{pods}{URLS}{more}\n")).expect_err(more);
            assert!(error.to_string().contains(more), "{error}");
        }
    }
}
