//! Detects changes of the files of a config: configuration files, those of `${file:...}`, certificates and keys. It keeps
//! a hash of the content of each, never the content itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use tailrace_config::{Config, Diagnostic};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::cli::{ConfigArgs, Failure};
use crate::printed;

/// The files of a config and what was in them, no later than the config was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Files {
    /// What the command line says.
    args: ConfigArgs,
    config: Vec<PathBuf>,
    /// None where it cannot be read.
    contents: BTreeMap<PathBuf, Option<u64>>,
}

/// Rounds after which a set of files that changes each time is taken as it is.
const ROUNDS_MAX: usize = 8;

impl Files {
    /// Reads a config, and what it is made of. `before` is what an earlier one was made of: of a config that
    /// cannot be read it is not known which certificates it names.
    pub(crate) fn load(
        args: &ConfigArgs,
        before: &Self,
    ) -> Result<(Self, Result<Config, Vec<Diagnostic>>), Failure> {
        let env = |name: &str| std::env::var(name).ok();
        let mut wanted: BTreeSet<PathBuf> = before.contents.keys().cloned().collect();
        for round in 1.. {
            // Looked at before it is read: a change in between is seen as one later.
            let hashed = |file: &PathBuf| (file.clone(), hash_of(args, file));
            let contents: BTreeMap<_, _> = wanted.iter().map(hashed).collect();
            let loaded = args.load(&env)?;
            printed::hide(&loaded.redactor);
            let is_sound = loaded.config.is_ok();
            let mut asked = loaded.others;
            asked.extend(loaded.files.iter().cloned());
            let is_known = asked.is_subset(&wanted);
            if !is_sound {
                asked.append(&mut wanted);
            }
            if is_known || round == ROUNDS_MAX {
                let contents = contents
                    .into_iter()
                    .filter(|(file, _)| asked.contains(file));
                let files = Self {
                    args: args.clone(),
                    config: loaded.files,
                    contents: contents.collect(),
                };
                return Ok((files, loaded.config));
            }
            wanted = asked;
        }
        unreachable!("the last round returns")
    }

    /// Whether a file has other bytes than when the config was read, or there is another file.
    pub(crate) fn have_changed(&self) -> bool {
        let env = |name: &str| std::env::var(name).ok();
        let now = self.args.load(&env).map(|loaded| loaded.files);
        now.is_ok_and(|files| files != self.config)
            || self
                .contents
                .iter()
                .any(|(file, hash)| hash_of(&self.args, file) != *hash)
    }

    /// The directories in which something happens when one of them changes: where it is, and where it
    /// leads to.
    pub(crate) fn dirs(&self) -> BTreeSet<PathBuf> {
        let named = self.args.paths();
        let mut dirs: BTreeSet<PathBuf> = named.iter().filter(|p| p.is_dir()).cloned().collect();
        for file in self.contents.keys().chain(named) {
            if self.args.read_once(file).is_some() {
                continue;
            }
            let real = fs::canonicalize(file).ok();
            for path in [Some(file), real.as_ref()].into_iter().flatten() {
                match path.parent() {
                    Some(dir) if dir == Path::new("") => dirs.insert(PathBuf::from(".")),
                    Some(dir) => dirs.insert(dir.to_owned()),
                    None => false,
                };
            }
        }
        dirs
    }

    /// Of the configuration files' content, not of secrets: the same for the same config on every machine.
    /// 48 bits, which a metric shows exactly.
    pub(crate) fn hash(&self) -> u64 {
        let mut hash = Xxh3::new();
        for file in &self.config {
            let content = self.contents.get(file).copied().flatten();
            hash.update(&content.unwrap_or(0).to_le_bytes());
        }
        hash.digest() >> 16
    }
}

fn hash_of(args: &ConfigArgs, path: &Path) -> Option<u64> {
    if let Some(text) = args.read_once(path) {
        return Some(xxh3_64(text));
    }
    // No file of a config may be larger, or anything else than a file.
    let content = tailrace_files::read_provided(path, 4 << 20).ok()?;
    Some(xxh3_64(&content))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn args(config: &Path) -> ConfigArgs {
        ConfigArgs {
            config: vec![config.to_owned()],
            ..ConfigArgs::default()
        }
    }

    fn yaml(secret: &Path) -> String {
        format!(
            "pipelines: {{app: {{input: {{type: stdin}}, output: {{type: otlp, headers: {{x-token: \
             '${{file:{}}}'}}}}}}}}",
            secret.display()
        )
    }

    #[test]
    fn a_change_is_of_bytes_and_of_files() {
        let dir = tempfile::tempdir().unwrap();
        let (main, secret) = (dir.path().join("conf/a.yaml"), dir.path().join("token"));
        fs::create_dir(dir.path().join("conf")).unwrap();
        fs::write(&main, yaml(&secret)).unwrap();
        fs::write(&secret, "one").unwrap();
        let args = args(&dir.path().join("conf"));
        let (files, config) = Files::load(&args, &Files::default()).unwrap();
        assert!(config.is_ok() && !files.have_changed());
        assert_eq!(files.contents.len(), 2);
        let hash = files.hash();
        // The same bytes in another file.
        fs::write(dir.path().join("new"), "one").unwrap();
        fs::rename(dir.path().join("new"), &secret).unwrap();
        assert!(!files.have_changed());
        fs::write(&secret, "two").unwrap();
        assert!(files.have_changed());
        let (files, _) = Files::load(&args, &files).unwrap();
        assert_eq!((files.have_changed(), files.hash()), (false, hash));
        fs::write(dir.path().join("conf/b.yaml"), "workers: 1").unwrap();
        assert!(files.have_changed());
        let (files, _) = Files::load(&args, &files).unwrap();
        assert!(!files.have_changed() && files.hash() != hash);
    }

    #[test]
    fn of_a_config_that_is_wrong_all_is_watched_that_may_mend_it() {
        let dir = tempfile::tempdir().unwrap();
        let (main, secret) = (dir.path().join("a.yaml"), dir.path().join("deep/token"));
        fs::write(&main, yaml(&secret)).unwrap();
        let args = args(&main);
        let (files, config) = Files::load(&args, &Files::default()).unwrap();
        assert!(config.is_err());
        assert!(files.dirs().contains(&dir.path().join("deep")));
        fs::create_dir(dir.path().join("deep")).unwrap();
        fs::write(&secret, "one").unwrap();
        assert!(files.have_changed());
        let (files, config) = Files::load(&args, &files).unwrap();
        assert!(config.is_ok());
        // Not even YAML: what it was made of is still known.
        fs::write(&main, "{").unwrap();
        let (files, config) = Files::load(&args, &files).unwrap();
        assert!(config.is_err() && !files.have_changed());
        fs::write(&secret, "two").unwrap();
        assert!(files.have_changed());
    }
}
