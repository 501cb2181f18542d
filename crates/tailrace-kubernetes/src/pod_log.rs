//! What the path of a container's log says. Parses a path into names. Never looks at the file.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// The names in `LOGS_DIR/NAMESPACE_POD_UID/CONTAINER/N.log[.DATE][.gz]`.
///
/// Taken once, when the file is first seen: a later rename never changes them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodLog {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The pod's directory's own id: the pod's uid, or the hash of its config for a static pod.
    pub uid: String,
    /// The name of the container.
    pub container: String,
    /// Which instance of the container wrote the file. None if the file is named otherwise.
    pub restart_count: Option<u32>,
}

impl PodLog {
    /// Takes a path, below `logs_dir` as it was discovered (links not resolved). Gives None for what is not
    /// the log of a container, such as other directories or names that are not UTF-8, which no pod has.
    pub fn from_path(path: &Path, logs_dir: &Path) -> Option<PodLog> {
        let mut parts = path.strip_prefix(logs_dir).ok()?.components();
        let pod_dir = name(parts.next()?)?.to_str()?;
        let container = name(parts.next()?)?.to_str()?;
        let file = name(parts.next()?)?;
        if parts.next().is_some() {
            return None;
        }
        // Neither a namespace nor a pod's name has a `_`.
        let (namespace, rest) = pod_dir.split_once('_')?;
        let (pod, uid) = rest.split_once('_')?;
        if namespace.is_empty() || pod.is_empty() || uid.is_empty() {
            return None;
        }
        Some(PodLog {
            namespace: namespace.to_owned(),
            pod: pod.to_owned(),
            uid: uid.to_owned(),
            container: container.to_owned(),
            restart_count: restart_count(file.as_bytes()),
        })
    }
}

fn name(part: Component<'_>) -> Option<&OsStr> {
    match part {
        Component::Normal(name) => Some(name),
        _ => None,
    }
}

/// The number before `.log`, whatever rotation wrote after it, UTF-8 or not.
fn restart_count(file: &[u8]) -> Option<u32> {
    let digits = file.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = file.split_at(digits);
    let behind = rest.strip_prefix(b".log")?;
    if !behind.is_empty() && behind[0] != b'.' {
        return None;
    }
    std::str::from_utf8(number).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;

    const LOGS: &str = "/var/log/pods";

    fn parse(below: &str) -> Option<PodLog> {
        PodLog::from_path(&Path::new(LOGS).join(below), Path::new(LOGS))
    }

    fn count(file: &str) -> Option<u32> {
        parse(&format!("ns_pod_uid/c/{file}"))
            .unwrap()
            .restart_count
    }

    #[test]
    fn names_and_number() {
        let log = parse("shop_web-5d9f-abcde_2b1c/app/12.log").unwrap();
        assert_eq!(log.namespace, "shop");
        assert_eq!(log.pod, "web-5d9f-abcde");
        assert_eq!(log.uid, "2b1c");
        assert_eq!(log.container, "app");
        assert_eq!(log.restart_count, Some(12));
    }

    #[test]
    fn rotated_files_keep_their_number() {
        assert_eq!(count("0.log"), Some(0));
        assert_eq!(count("10.log.20261121-101112"), Some(10));
        assert_eq!(count("113.log.20261121-101112.gz"), Some(113));
        assert_eq!(count("4294967295.log"), Some(u32::MAX));
        assert_eq!(count("4294967296.log"), None);
        assert_eq!(count("+1.log"), None);
        assert_eq!(count(".log"), None);
        assert_eq!(count("1.logs"), None);
        assert_eq!(count("current"), None);
        let strange = OsString::from_vec(b"7.log.\xff".to_vec());
        let path = Path::new(LOGS).join("ns_pod_uid/c").join(strange);
        let log = PodLog::from_path(&path, Path::new(LOGS)).unwrap();
        assert_eq!(log.restart_count, Some(7));
    }

    #[test]
    fn what_is_not_the_log_of_a_container() {
        let no_utf8 = PathBuf::from(OsString::from_vec(
            b"/var/log/pods/n_p\xff_u/c/0.log".to_vec(),
        ));
        assert_eq!(PodLog::from_path(&no_utf8, Path::new(LOGS)), None);
        assert_eq!(
            PodLog::from_path(Path::new("/var/log/syslog"), Path::new(LOGS)),
            None
        );
        for below in [
            "ns_pod_uid/0.log",
            "ns_pod_uid/c/sub/0.log",
            "ns_pod/c/0.log",
            "plain/c/0.log",
            "__/c/0.log",
            "ns_pod_uid/../0.log",
            "",
        ] {
            assert_eq!(parse(below), None, "{below}");
        }
    }

    proptest! {
        #[test]
        fn a_path_says_what_it_was_made_of(
            namespace in "[a-z0-9-]{1,63}",
            pod in "[a-z0-9.-]{1,190}",
            uid in "[a-z0-9-]{1,64}",
            container in "[a-z0-9-]{1,63}",
            restart_count in proptest::option::of(any::<u32>()),
            behind in "(|\\.[0-9-]{15}|\\.[0-9-]{15}\\.gz)",
        ) {
            let log = PodLog { namespace, pod, uid, container, restart_count };
            let number = restart_count.map(|n| n.to_string()).unwrap_or_default();
            let below = format!(
                "{}_{}_{}/{}/{number}.log{behind}",
                log.namespace, log.pod, log.uid, log.container
            );
            prop_assert_eq!(parse(&below), Some(log));
        }

        #[test]
        fn any_path_is_safe(below in proptest::collection::vec(any::<u8>(), 0..80)) {
            let path = Path::new(LOGS).join(OsString::from_vec(below));
            let _ = PodLog::from_path(&path, Path::new(LOGS));
        }
    }
}
