//! Access control of the admin endpoint. [`check`] decides from the client's address and the head of a request. It is pure,
//! except for the token, which a reload may change.
//!
//! Probes and metrics are open to everybody who reaches the listener. Everything else requires a client on this machine, or
//! the token. The files of the agent's page hold no data: if there is a token, everybody gets them, so that the page can ask
//! for it. A browser on this machine does not count as local: requests of web pages have `Origin` or `Sec-Fetch-Site`,
//! and requests by DNS rebinding have a foreign name in `Host`.

use std::hint::black_box;
use std::net::IpAddr;

use axum::http::header::{AUTHORIZATION, FORWARDED, HOST, ORIGIN, VIA};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri};
use tailrace_config::Secret;

use super::listen::Peer;
use super::page;
use crate::token::Token;

/// Paths that are open to everybody.
const PUBLIC: [&str; 4] = ["/metrics", "/livez", "/readyz", "/healthz"];

/// Why a request is refused: the status, and a text.
pub(super) type Refusal = (StatusCode, &'static str);

/// Checks whether a request may be answered.
///
/// # Errors
///
/// The refusal.
pub(super) fn check(
    peer: Peer,
    uri: &Uri,
    headers: &HeaderMap,
    token: &Token,
) -> Result<(), Refusal> {
    if headers.contains_key(AUTHORIZATION) {
        let is_right = token.get().is_some_and(|token| bears(headers, &token));
        return if is_right {
            Ok(())
        } else {
            Err((
                StatusCode::UNAUTHORIZED,
                "that is not the token of `admin.token`",
            ))
        };
    }
    // A link in another page may lead to this one, which shows that page nothing.
    let is_link = page::is_root(uri.path()) && is_navigation(headers);
    // Browsers send `Origin` when a page loads its own modules.
    let is_own = page::has(uri.path()) && is_same_origin(headers);
    if comes_from_a_page(headers) && !is_link && !is_own {
        let text = "a page in a browser may not ask: leave out `Origin`, or send the token of `admin.token`";
        return Err((StatusCode::FORBIDDEN, text));
    }
    let is_local = is_local(peer);
    if is_local && !has_plain_host(uri, headers) {
        let text = "from this machine, ask for an IP address or `localhost`, or send the token of `admin.token`";
        return Err((StatusCode::MISDIRECTED_REQUEST, text));
    }
    if PUBLIC.contains(&uri.path()) || (is_local && !is_forwarded(headers)) {
        return Ok(());
    }
    if page::has(uri.path()) && token.get().is_some() {
        return Ok(());
    }
    let text =
        "only for this machine, or with the token of `admin.token` in `Authorization: Bearer`";
    Err((StatusCode::FORBIDDEN, text))
}

fn is_local(peer: Peer) -> bool {
    match peer {
        Peer::Tcp(peer) => peer.ip().to_canonical().is_loopback(),
        Peer::Unix => true,
    }
}

/// Browsers send these, and a page cannot leave them out.
fn comes_from_a_page(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    headers.contains_key(ORIGIN) || sites.any(|site| site != "none" && site != "same-origin")
}

/// Whether a page asks that came from here: its `Origin` is what `Host` names, and its site is none other.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    let mut origins = headers.get_all(ORIGIN).iter();
    let (Some(origin), None) = (origins.next(), origins.next()) else {
        return false;
    };
    let (Ok(origin), Some(Ok(host))) =
        (origin.to_str(), headers.get(HOST).map(|host| host.to_str()))
    else {
        return false;
    };
    let names_host = origin
        .split_once("://")
        .is_some_and(|(_, name)| name == host);
    names_host && sites.all(|site| site == "same-origin")
}

/// A person opens it in a tab of its own: no page can do that in the background, or read the answer.
fn is_navigation(headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|sent| sent == value);
    let has_origin = headers.contains_key(ORIGIN);
    !has_origin && is("sec-fetch-mode", "navigate") && is("sec-fetch-dest", "document")
}

/// Whether a proxy passed it on, of which only the proxy is on this machine.
fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key(FORWARDED)
        || headers.contains_key(VIA)
        || headers.contains_key("x-forwarded-for")
}

/// Whether every host that the request names is an address or `localhost`. One that names none comes from no browser.
fn has_plain_host(uri: &Uri, headers: &HeaderMap) -> bool {
    let named = headers
        .get_all(HOST)
        .iter()
        .map(|host| host.to_str().unwrap_or(""));
    named
        .chain(uri.authority().map(Authority::as_str))
        .all(|host| {
            let Ok(authority) = host.parse::<Authority>() else {
                return false;
            };
            let host = authority.host();
            let bare = host.trim_start_matches('[').trim_end_matches(']');
            host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
        })
}

/// Compares in a time that does not depend on how much of the text is right.
fn bears(headers: &HeaderMap, token: &Secret) -> bool {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let Some((scheme, sent)) = value.to_str().ok().and_then(|value| value.split_once(' ')) else {
        return false;
    };
    let (sent, token) = (sent.trim().as_bytes(), token.expose().as_bytes());
    let pairs = sent.iter().zip(token);
    let differs = pairs.fold(0, |differs, (a, b)| black_box(differs | (a ^ b)));
    scheme.eq_ignore_ascii_case("bearer") && sent.len() == token.len() && differs == 0
}

#[cfg(test)]
mod tests;
