//! What requests mean: GET, HEAD and PUT of objects by the paths of [`Kind::path`], and the page for people.

use super::shelf::Refused;
use super::{PATIENCE, State, page};
use crate::counts::Wrong;
use crate::object::Kind;
use bytes::Bytes;
use firn_host::Digest;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT_RANGES, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, RANGE, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};

type Answer = Response<Full<Bytes>>;

/// Answers a request.
pub(super) async fn answer(state: &State, request: Request<Incoming>) -> Answer {
    let path = request.uri().path().to_owned();
    match (request.method().clone(), path.as_str()) {
        (Method::GET | Method::HEAD, "/") => html(state),
        (Method::GET | Method::HEAD, "/status.json") => {
            let (now, counted) = state.tally.read();
            typed(page::json(&state.config, now, &counted), "application/json")
        }
        (_, "/" | "/status.json") => not_allowed("GET, HEAD"),
        (method, path) => match Kind::of_path(path.trim_start_matches('/')) {
            None => said(StatusCode::NOT_FOUND, "there is nothing of that name\n"),
            Some((kind, digest)) => match method {
                Method::GET | Method::HEAD => get(state, kind, &digest, request.headers().get(RANGE)).await,
                Method::PUT => put(state, kind, &digest, request).await,
                _ => not_allowed("GET, HEAD, PUT"),
            },
        },
    }
}

fn said(status: StatusCode, text: &str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(text.to_owned())));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

fn not_allowed(methods: &'static str) -> Answer {
    let mut answer = said(StatusCode::METHOD_NOT_ALLOWED, "that cannot be done here\n");
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    answer
}

fn typed(text: String, kind: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

fn html(state: &State) -> Answer {
    let (now, counted) = state.tally.read();
    let mut answer = typed(page::html(&state.config, now, &counted), "text/html; charset=utf-8");
    // The page has everything in itself; whatever a name in it might try is not run.
    let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'";
    answer.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    answer
}

async fn get(state: &State, kind: Kind, digest: &Digest, range: Option<&HeaderValue>) -> Answer {
    let object = match state.shelf.get(kind, digest).await {
        Ok(object) => object,
        Err(trouble) => return said(StatusCode::INTERNAL_SERVER_ERROR, &format!("{trouble}\n")),
    };
    let range = range.and_then(|range| range.to_str().ok()).and_then(parse_range);
    // Who looks at a byte wants to know whether it is there.
    if range.is_none() {
        state.tally.asked(kind, object.as_ref().map(Vec::len));
    }
    let Some(bytes) = object else { return said(StatusCode::NOT_FOUND, "it is not here\n") };
    let whole = bytes.len();
    let mut answer = match range {
        Some((from, to)) if from < whole => {
            let to = to.min(whole - 1);
            let mut answer = Response::new(Full::new(Bytes::from(bytes).slice(from..=to)));
            *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
            if let Ok(text) = HeaderValue::from_str(&format!("bytes {from}-{to}/{whole}")) {
                answer.headers_mut().insert(CONTENT_RANGE, text);
            }
            answer
        }
        Some(_) => return said(StatusCode::RANGE_NOT_SATISFIABLE, "it is shorter\n"),
        None => Response::new(Full::new(Bytes::from(bytes))),
    };
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    answer.headers_mut().insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let keeps = if kind == Kind::Index { "no-cache" } else { "public, max-age=31536000, immutable" };
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(keeps));
    answer
}

/// `bytes=FROM-TO`, nothing else; what cannot be read is not looked at, as HTTP says.
fn parse_range(text: &str) -> Option<(usize, usize)> {
    let (from, to) = text.strip_prefix("bytes=")?.split_once('-')?;
    let (from, to) = (from.parse().ok()?, if to.is_empty() { usize::MAX } else { to.parse().ok()? });
    (from <= to).then_some((from, to))
}

async fn put(state: &State, kind: Kind, digest: &Digest, request: Request<Incoming>) -> Answer {
    if state.config.read_only {
        state.tally.refused();
        return said(StatusCode::FORBIDDEN, "this server takes nothing\n");
    }
    if !is_allowed(state, &request) {
        state.tally.refused();
        let mut answer = said(StatusCode::UNAUTHORIZED, "a token is needed\n");
        answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return answer;
    }
    let body = Limited::new(request.into_body(), kind.most_packed()).collect();
    let body = match tokio::time::timeout(PATIENCE, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => {
            state.tally.refused();
            return said(StatusCode::PAYLOAD_TOO_LARGE, "it is too large, or did not come whole\n");
        }
        Err(_) => return said(StatusCode::REQUEST_TIMEOUT, "it did not come in time\n"),
    };
    let kept = if kind == Kind::Index {
        let merged = state.shelf.merge(digest, &body, &state.config.keys).await;
        merged.map(|merged| {
            let first = merged.first;
            state.tally.merged(digest.to_string(), body.len(), merged);
            first
        })
    } else {
        let taken = state.shelf.put(kind, digest, body.to_vec()).await;
        taken.inspect(|new| {
            if *new {
                state.tally.took(kind, body.len());
            }
        })
    };
    match kept {
        Ok(true) => said(StatusCode::CREATED, ""),
        Ok(false) => Response::builder().status(StatusCode::NO_CONTENT).body(Full::default()).unwrap_or_default(),
        Err(Refused::Wrong(wrong)) => {
            state.tally.refused();
            let status = match wrong {
                Wrong::UnknownKey | Wrong::BadSignature => StatusCode::FORBIDDEN,
                Wrong::Incomplete => StatusCode::CONFLICT,
                _ => StatusCode::BAD_REQUEST,
            };
            said(status, &format!("it {wrong}\n"))
        }
        Err(Refused::Trouble(trouble)) => said(StatusCode::INSUFFICIENT_STORAGE, &format!("{trouble}\n")),
    }
}

/// Whether the request shows the token. All bytes are compared, however early they differ.
fn is_allowed(state: &State, request: &Request<Incoming>) -> bool {
    let Some(token) = &state.config.token else { return true };
    let shown = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let shown = shown.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    blake3::hash(shown.as_bytes()) == blake3::hash(token.as_bytes())
}
