//! References to images. Splits what a pod's spec or status says into its parts. Never asks a registry.

/// `NAME[:TAG][@DIGEST]`, cut as the reference library of the OCI distribution does.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Image<'a> {
    /// As written: neither the default registry nor `library/` is added.
    pub(crate) name: &'a str,
    pub(crate) tag: Option<&'a str>,
    pub(crate) digest: Option<&'a str>,
}

impl<'a> Image<'a> {
    pub(crate) fn parse(reference: &'a str) -> Image<'a> {
        let (named, digest) = match reference.split_once('@') {
            Some((named, digest)) => (named, Some(digest)),
            None => (reference, None),
        };
        // A colon before a slash is the port of a registry.
        let (name, tag) = match named.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (named, None),
        };
        Image { name, tag, digest }
    }

    /// The version of a service that has no better one.
    pub(crate) fn version(&self) -> Option<String> {
        match (self.tag, self.digest) {
            (Some(tag), Some(digest)) => Some(format!("{tag}@{digest}")),
            (None, Some(digest)) => Some(digest.to_owned()),
            (Some(tag), None) => Some(tag.to_owned()),
            (None, None) => None,
        }
    }
}

/// The digest in the registry, from the `imageID` of a container's status. None for what names only the
/// image's id on this node.
pub(crate) fn repo_digest(image_id: &str) -> Option<&str> {
    let digest = image_id
        .split_once("://")
        .map_or(image_id, |(_, rest)| rest);
    digest.contains('@').then_some(digest)
}

/// The id without the name of the runtime before it.
pub(crate) fn container_id(id: &str) -> &str {
    id.split_once("://").map_or(id, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        let digest = "sha256:0af1";
        for (reference, name, tag, digest, version) in [
            ("nginx", "nginx", None, None, None),
            ("nginx:1.27", "nginx", Some("1.27"), None, Some("1.27")),
            ("r.io:5000/a/b", "r.io:5000/a/b", None, None, None),
            (
                "r.io:5000/a/b:v1",
                "r.io:5000/a/b",
                Some("v1"),
                None,
                Some("v1"),
            ),
            (
                "a/b@sha256:0af1",
                "a/b",
                None,
                Some(digest),
                Some("sha256:0af1"),
            ),
            (
                "r.io:5000/b:v1@sha256:0af1",
                "r.io:5000/b",
                Some("v1"),
                Some(digest),
                Some("v1@sha256:0af1"),
            ),
            ("", "", None, None, None),
        ] {
            let image = Image::parse(reference);
            assert_eq!(image, Image { name, tag, digest }, "{reference}");
            assert_eq!(image.version().as_deref(), version, "{reference}");
        }
    }

    #[test]
    fn ids_of_the_runtime() {
        assert_eq!(container_id("containerd://ab12"), "ab12");
        assert_eq!(container_id("cri-o://ab12"), "ab12");
        assert_eq!(container_id("ab12"), "ab12");
        assert_eq!(
            repo_digest("docker.io/library/nginx@sha256:0a"),
            Some("docker.io/library/nginx@sha256:0a")
        );
        assert_eq!(
            repo_digest("docker-pullable://nginx@sha256:0a"),
            Some("nginx@sha256:0a")
        );
        assert_eq!(repo_digest("sha256:0a"), None);
        assert_eq!(repo_digest(""), None);
    }
}
