//! The agent's page: `/` and the files that it consists of, embedded in the binary. They hold no data. What they show they
//! ask for at `/api/v1/`, with the token if the agent wants one.

use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::Shared;

/// The path of the page.
const ROOT: &str = "/";
/// What the paths of its files begin with.
const FILES_ROOT: &str = "/page/";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

const INDEX: &str = include_str!("page/index.html");

/// The other files: name, type, content.
const FILES: [(&str, &str, &str); 11] = [
    ("style.css", CSS, include_str!("page/style.css")),
    ("theme.js", SCRIPT, include_str!("page/theme.js")),
    ("main.js", SCRIPT, include_str!("page/main.js")),
    ("api.js", SCRIPT, include_str!("page/api.js")),
    ("format.js", SCRIPT, include_str!("page/format.js")),
    ("rates.js", SCRIPT, include_str!("page/rates.js")),
    ("plot.js", SCRIPT, include_str!("page/plot.js")),
    ("flow.js", SCRIPT, include_str!("page/flow.js")),
    ("panels.js", SCRIPT, include_str!("page/panels.js")),
    ("tabs.js", SCRIPT, include_str!("page/tabs.js")),
    ("tail.js", SCRIPT, include_str!("page/tail.js")),
];

/// The page loads from the agent, asks the agent, and is shown in no other page. Text never becomes HTML or a script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// The paths and what answers them.
pub(super) fn routes() -> axum::Router<Shared> {
    axum::Router::new()
        .route(ROOT, get(async || answer(HTML, INDEX)))
        .route("/page/{name}", get(file))
}

/// Whether the path is one of the page or its files, which hold no data.
pub(super) fn has(path: &str) -> bool {
    path == ROOT || path.strip_prefix(FILES_ROOT).is_some_and(is_file)
}

/// Whether the path is the page itself, which a person opens.
pub(super) fn is_root(path: &str) -> bool {
    path == ROOT
}

fn is_file(wanted: &str) -> bool {
    FILES.iter().any(|(name, _, _)| *name == wanted)
}

async fn file(Path(wanted): Path<String>) -> Response {
    match FILES.iter().find(|(name, _, _)| *name == wanted) {
        Some((_, kind, content)) => answer(kind, content),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn answer(kind: &'static str, content: &'static str) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        // After an upgrade the page is that of the new agent.
        (CACHE_CONTROL, "no-store"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    (headers, content).into_response()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// What the page may have altogether.
    const BYTES_MAX: usize = 100 * 1024;

    fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
        let files = FILES.into_iter().map(|(name, _, content)| (name, content));
        files.chain([("index.html", INDEX)])
    }

    #[test]
    fn it_is_small() {
        let bytes: usize = all().map(|(_, content)| content.len()).sum();
        assert!(bytes < BYTES_MAX, "{bytes}");
    }

    #[test]
    fn it_needs_nothing_from_elsewhere() {
        // The names of two formats, which nobody asks for.
        let names = ["http://www.w3.org/2000/svg"];
        for (file, content) in all() {
            let content = names
                .iter()
                .fold(content.to_owned(), |text, name| text.replace(name, ""));
            for part in ["http://", "https://", "//cdn", "url(//", "@import"] {
                assert!(!content.contains(part), "{file} has {part}");
            }
        }
    }

    #[test]
    fn every_file_it_names_is_there() {
        let mut named = 0;
        for (file, content) in all() {
            let marks = [
                ("from './", '\''),
                ("href=\"page/", '"'),
                ("src=\"page/", '"'),
            ];
            for (before, end) in marks {
                for rest in content.split(before).skip(1) {
                    let name = rest.split(end).next().unwrap();
                    assert!(is_file(name), "{file} names {name}");
                    named += 1;
                }
            }
        }
        assert!(named > FILES.len(), "{named}");
        let unused = |name: &str| all().all(|(_, content)| !content.contains(name));
        assert!(!FILES.iter().any(|(name, _, _)| unused(name)));
    }

    #[test]
    fn text_never_becomes_code() {
        for (file, content) in all() {
            for part in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                " style=\"",
                " onclick",
                " onload",
            ] {
                assert!(!content.contains(part), "{file} has {part}");
            }
        }
    }

    #[test]
    fn only_its_files_are_the_page() {
        for path in ["/", "/page/main.js", "/page/style.css"] {
            assert!(has(path), "{path}");
        }
        for path in [
            "",
            "//",
            "/page",
            "/page/",
            "/page/x.js",
            "/page//main.js",
            "/page/../metrics",
        ] {
            assert!(!has(path), "{path}");
        }
    }
}
