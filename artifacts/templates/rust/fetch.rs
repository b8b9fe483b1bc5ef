// SPDX-License-Identifier: Apache-2.0
//! HTTP for a component: what the capsule's manifest lets through (`network.allow`, or a gateway). Sockets lead nowhere.
#![allow(dead_code)]

use crate::wasi::http::outgoing_handler;
use crate::wasi::http::types::{ErrorCode, Fields, IncomingResponse, Method, OutgoingBody, OutgoingRequest, Scheme};
use crate::wasi::io::streams::StreamError;

pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// As much as an output stream takes at once.
const PIECE: usize = 4096;

/// One request and its whole answer, whatever its status. The error says why there is none: refused, no connection, a timeout.
pub fn fetch(method: &str, url: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Response, String> {
    let problem = |why: String| format!("{method} {url}: {why}");
    let (scheme, rest) = url.split_once("://").ok_or_else(|| problem("no address".to_string()))?;
    let start = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(start);
    let fields = Fields::new();
    for (name, value) in headers {
        fields.append(name, value.as_bytes()).map_err(|why| problem(format!("{name}: {why:?}")))?;
    }
    let request = OutgoingRequest::new(fields);
    let path = if path.starts_with('/') { path.to_string() } else { format!("/{path}") };
    let is_set = request.set_method(&method_of(method)).is_ok()
        && request.set_scheme(Some(&if scheme == "http" { Scheme::Http } else { Scheme::Https })).is_ok()
        && request.set_authority(Some(authority)).is_ok()
        && request.set_path_with_query(Some(&path)).is_ok();
    if !is_set {
        return Err(problem("no address".to_string()));
    }
    send(request, body).and_then(read).map_err(problem)
}

fn method_of(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "OPTIONS" => Method::Options,
        "PATCH" => Method::Patch,
        other => Method::Other(other.to_string()),
    }
}

fn send(request: OutgoingRequest, body: &[u8]) -> Result<IncomingResponse, String> {
    let told = |code: ErrorCode| format!("{code:?}");
    let outgoing = request.body().map_err(|_| "the body was taken".to_string())?;
    let coming = outgoing_handler::handle(request, None).map_err(told)?;
    let stream = outgoing.write().map_err(|_| "the body was taken".to_string())?;
    for piece in body.chunks(PIECE) {
        stream.blocking_write_and_flush(piece).map_err(stream_problem)?;
    }
    drop(stream);
    OutgoingBody::finish(outgoing, None).map_err(told)?;
    coming.subscribe().block();
    match coming.get() {
        Some(Ok(answer)) => answer.map_err(told),
        _ => Err("no answer came".to_string()),
    }
}

fn read(response: IncomingResponse) -> Result<Response, String> {
    let mut body = Vec::new();
    let incoming = response.consume().map_err(|_| "the body was taken".to_string())?;
    let stream = incoming.stream().map_err(|_| "the body was taken".to_string())?;
    loop {
        match stream.blocking_read(65536) {
            Ok(piece) => body.extend(piece),
            Err(StreamError::Closed) => break,
            Err(problem) => return Err(stream_problem(problem)),
        }
    }
    Ok(Response { status: response.status(), headers: response.headers().entries(), body })
}

fn stream_problem(problem: StreamError) -> String {
    match problem {
        StreamError::LastOperationFailed(error) => error.to_debug_string(),
        StreamError::Closed => "the connection ended".to_string(),
    }
}
