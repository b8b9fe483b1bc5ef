// SPDX-License-Identifier: Apache-2.0
//
// Outbound HTTP of guests, handed to C: the handler of engine.h decides and performs every exchange; here bodies are carried
// between it and the guest's streams.
//
// Always true: the handler's functions are called on the guest's thread; its `cancel` is called exactly once per started
// exchange, and nothing of the exchange is touched afterwards; at most BUFFER_LIMIT response bytes wait for a guest.

use crate::slice_in;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

const BUFFER_LIMIT: usize = 256 * 1024;

/// Mirrors struct guest_http_header.
#[repr(C)]
pub struct CHeader {
    name: *const c_char,
    value: *const c_char,
    value_len: usize,
}

/// Mirrors struct guest_http_request.
#[repr(C)]
pub struct CRequest {
    method: *const c_char,
    scheme: *const c_char,
    authority: *const c_char,
    path_with_query: *const c_char,
    headers: *const CHeader,
    header_count: usize,
    connect_timeout_ms: u64,
    first_byte_timeout_ms: u64,
    between_bytes_timeout_ms: u64,
}

/// Mirrors struct guest_http_handler.
#[repr(C)]
pub struct Handler {
    start:
        unsafe extern "C" fn(*mut c_void, *const CRequest, *const Reply, *mut c_int) -> *mut c_void,
    body: unsafe extern "C" fn(*mut c_void, *const u8, usize) -> bool,
    body_end: unsafe extern "C" fn(*mut c_void, bool),
    resume: unsafe extern "C" fn(*mut c_void),
    cancel: unsafe extern "C" fn(*mut c_void),
}

/// Mirrors enum guest_http_error; None for GUEST_HTTP_OK.
fn wasi_error(code: c_int) -> Option<Error> {
    Some(match code {
        0 => return None,
        1 => Error::HttpRequestDenied,
        2 => Error::DnsError {
            rcode: None,
            info_code: None,
        },
        3 => Error::ConnectionRefused,
        4 => Error::ConnectionTerminated,
        5 => Error::ConnectionTimeout,
        6 => Error::TlsProtocolError,
        7 => Error::HttpResponseIncomplete,
        8 => Error::HttpResponseTimeout,
        _ => Error::InternalError(None),
    })
}

#[derive(Default)]
struct ReplyState {
    head: Option<(StatusCode, HeaderMap)>,
    has_head: bool,
    chunks: VecDeque<Bytes>,
    buffered: usize,
    is_paused: bool,
    end: Option<Option<Error>>,
    is_upload_ready: bool,
    head_waker: Option<Waker>,
    body_waker: Option<Waker>,
    upload_waker: Option<Waker>,
}

/// The engine's end of one exchange; C knows it as struct guest_http_reply.
#[derive(Default)]
pub struct Reply {
    state: Mutex<ReplyState>,
}

impl Reply {
    fn lock(&self) -> MutexGuard<'_, ReplyState> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn poll_head(&self, cx: &mut Context<'_>) -> Poll<Result<(StatusCode, HeaderMap), Error>> {
        let mut s = self.lock();
        if let Some(head) = s.head.take() {
            return Poll::Ready(Ok(head));
        }
        if let Some(end) = &mut s.end {
            let error = end.take().unwrap_or(Error::HttpResponseIncomplete);
            return Poll::Ready(Err(error));
        }
        s.head_waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn poll_upload_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut s = self.lock();
        if s.is_upload_ready || s.end.is_some() {
            return Poll::Ready(());
        }
        s.upload_waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn guest_http_reply_head(
    reply: &Reply,
    status: c_int,
    headers: *const CHeader,
    header_count: usize,
) {
    let mut map = HeaderMap::with_capacity(header_count);
    for h in unsafe { slice_in(headers, header_count) } {
        let name = HeaderName::from_bytes(unsafe { CStr::from_ptr(h.name) }.to_bytes());
        let value = HeaderValue::from_bytes(unsafe { slice_in(h.value.cast(), h.value_len) });
        if let (Ok(name), Ok(value)) = (name, value) {
            let _ = map.try_append(name, value);
        }
    }
    let status = u16::try_from(status)
        .ok()
        .and_then(|s| StatusCode::from_u16(s).ok());
    let mut s = reply.lock();
    if s.has_head {
        return;
    }
    s.has_head = true;
    match status {
        Some(status) => s.head = Some((status, map)),
        None => s.end = Some(Some(Error::HttpProtocolError)),
    }
    let waker = s.head_waker.take();
    drop(s);
    wake(waker);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn guest_http_reply_body(reply: &Reply, data: *const u8, len: usize) -> bool {
    let mut s = reply.lock();
    if s.buffered > 0 && s.buffered + len > BUFFER_LIMIT {
        s.is_paused = true;
        return false;
    }
    if len > 0 && s.end.is_none() {
        s.chunks
            .push_back(Bytes::copy_from_slice(unsafe { slice_in(data, len) }));
        s.buffered += len;
    }
    let waker = s.body_waker.take();
    drop(s);
    wake(waker);
    true
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn guest_http_reply_end(reply: &Reply, error: c_int) {
    let mut s = reply.lock();
    if s.end.is_none() {
        s.end = Some(wasi_error(error));
    }
    let wakers = [
        s.head_waker.take(),
        s.body_waker.take(),
        s.upload_waker.take(),
    ];
    drop(s);
    wakers.into_iter().for_each(wake);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn guest_http_reply_ready(reply: &Reply) {
    let mut s = reply.lock();
    s.is_upload_ready = true;
    let waker = s.upload_waker.take();
    drop(s);
    wake(waker);
}

/// A started exchange. Shared by the upload and the response body; whoever lets go last (or first drops the body) cancels.
struct Exchange {
    handler: *const Handler,
    started: AtomicPtr<c_void>,
    reply: Arc<Reply>,
}

// The handler's functions are only called while the guest's thread polls or drops.
unsafe impl Send for Exchange {}
unsafe impl Sync for Exchange {}

impl Exchange {
    /// Calls into the handler unless the exchange was cancelled.
    fn with<R>(&self, call: impl FnOnce(&Handler, *mut c_void) -> R) -> Option<R> {
        let started = self.started.load(Ordering::Acquire);
        (!started.is_null()).then(|| call(unsafe { &*self.handler }, started))
    }

    fn cancel(&self) {
        let started = self.started.swap(ptr::null_mut(), Ordering::AcqRel);
        if !started.is_null() {
            unsafe { ((*self.handler).cancel)(started) };
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Offers the request body piece by piece, each again and again until the handler takes it.
async fn upload(exchange: Arc<Exchange>, mut body: WasiBody) {
    let is_complete = loop {
        let data = match body.frame().await {
            None => break true,
            Some(Err(_)) => break false,
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if !data.is_empty() => data,
                _ => continue,
            },
        };
        loop {
            exchange.reply.lock().is_upload_ready = false;
            match exchange.with(|h, e| unsafe { (h.body)(e, data.as_ptr(), data.len()) }) {
                None => return,
                Some(true) => break,
                Some(false) => poll_fn(|cx| exchange.reply.poll_upload_ready(cx)).await,
            }
            if exchange.reply.lock().end.is_some() {
                return;
            }
        }
    };
    exchange.with(|h, e| unsafe { (h.body_end)(e, is_complete) });
}

struct ResponseBody {
    exchange: Arc<Exchange>,
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.exchange.cancel();
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let mut s = self.exchange.reply.lock();
        if let Some(chunk) = s.chunks.pop_front() {
            s.buffered -= chunk.len();
            let resumes = s.is_paused && s.buffered <= BUFFER_LIMIT / 2;
            if resumes {
                s.is_paused = false;
            }
            drop(s);
            if resumes {
                self.exchange.with(|h, e| unsafe { (h.resume)(e) });
            }
            return Poll::Ready(Some(Ok(Frame::data(chunk))));
        }
        if let Some(end) = &mut s.end {
            return Poll::Ready(end.take().map(Err));
        }
        s.body_waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

pub struct Hooks {
    handler: *const Handler,
    ctx: *mut c_void,
}

unsafe impl Send for Hooks {}

impl Hooks {
    pub fn new(handler: *const Handler, ctx: *mut c_void) -> Hooks {
        Hooks { handler, ctx }
    }

    fn start(
        &self,
        request: &Request<WasiBody>,
        options: Option<RequestOptions>,
        reply: &Reply,
    ) -> Result<*mut c_void, Error> {
        if self.handler.is_null() {
            return Err(Error::HttpRequestDenied);
        }
        let uri = request.uri();
        let path = uri.path_and_query().map_or("/", |p| p.as_str());
        let method = c_text(request.method().as_str())?;
        let scheme = c_text(uri.scheme_str().unwrap_or("https"))?;
        let path = c_text(if path.is_empty() { "/" } else { path })?;
        let authority = match uri.authority() {
            Some(a) if !a.as_str().is_empty() => Some(c_text(a.as_str())?),
            _ => None,
        };
        let mut texts = Vec::with_capacity(request.headers().len());
        for (name, value) in request.headers() {
            let mut bytes = value.as_bytes().to_vec();
            bytes.push(0);
            texts.push((c_text(name.as_str())?, bytes));
        }
        let headers: Vec<CHeader> = texts
            .iter()
            .map(|(name, value)| CHeader {
                name: name.as_ptr(),
                value: value.as_ptr().cast(),
                value_len: value.len() - 1,
            })
            .collect();
        let options = options.unwrap_or_default();
        let c_request = CRequest {
            method: method.as_ptr(),
            scheme: scheme.as_ptr(),
            authority: authority.as_ref().map_or(ptr::null(), |a| a.as_ptr()),
            path_with_query: path.as_ptr(),
            headers: headers.as_ptr(),
            header_count: headers.len(),
            connect_timeout_ms: millis(options.connect_timeout),
            first_byte_timeout_ms: millis(options.first_byte_timeout),
            between_bytes_timeout_ms: millis(options.between_bytes_timeout),
        };
        let mut refused: c_int = 0;
        let started = unsafe { ((*self.handler).start)(self.ctx, &c_request, reply, &mut refused) };
        if started.is_null() {
            return Err(wasi_error(refused).unwrap_or(Error::HttpRequestDenied));
        }
        Ok(started)
    }
}

fn c_text(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::HttpRequestUriInvalid)
}

/// 0 = the guest set none.
fn millis(d: Option<Duration>) -> u64 {
    d.map_or(0, |d| {
        u64::try_from(d.as_millis()).unwrap_or(u64::MAX).max(1)
    })
}

type Finish = Box<dyn Future<Output = Result<(), Error>> + Send>;
type Sent = Result<(Response<WasiBody>, Finish), Error>;

impl WasiHttpHooks for Hooks {
    // The handler names the host it really talks to.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _processed: Finish,
    ) -> Box<dyn Future<Output = Sent> + Send> {
        let reply = Arc::new(Reply::default());
        let started = match self.start(&request, options, &reply) {
            Ok(started) => started,
            Err(e) => return Box::new(async move { Err(e) }),
        };
        let exchange = Arc::new(Exchange {
            handler: self.handler,
            started: AtomicPtr::new(started),
            reply,
        });
        Box::new(respond(exchange, request.into_body()))
    }
}

/// Uploads while waiting for the response head; what is left of the upload goes on beside the response.
async fn respond(exchange: Arc<Exchange>, body: WasiBody) -> Sent {
    let mut uploading = Some(Box::pin(upload(exchange.clone(), body)));
    let (status, headers) = poll_fn(|cx| {
        if let Some(u) = uploading.as_mut() {
            if u.as_mut().poll(cx).is_ready() {
                uploading = None;
            }
        }
        exchange.reply.poll_head(cx)
    })
    .await?;
    let mut response = Response::new(ResponseBody { exchange }.boxed_unsync());
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    let rest: Finish = Box::new(async move {
        if let Some(u) = uploading {
            u.await;
        }
        Ok(())
    });
    Ok((response, rest))
}
