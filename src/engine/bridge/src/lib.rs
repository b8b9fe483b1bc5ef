// SPDX-License-Identifier: Apache-2.0
//
// The Rust half of src/engine: Wasmtime's own C API (engine, components, values), and what that API cannot do: guests whose
// calls can be abandoned at any moment, limits that remember what they refused, preopens by descriptor, and outbound HTTP
// handed to C.
//
// Nothing is decided here: every grant arrives from engine/engine.c through the structures of src/engine/bridge.h, which the
// `repr(C)` types of these modules mirror. Panics abort the process, so none may be reachable from a guest.

pub use wasmtime_c_api::*;

mod drive;
mod engine;
mod guest;
mod http;
mod link;
mod open;
mod readdir;
mod senses;
mod stdio;
mod wasi;

use std::ffi::{CStr, CString, c_char};

/// Hands a message to C, which frees it with bridge_text_free.
pub(crate) fn text_out(out: *mut *mut c_char, text: &str) {
    if !out.is_null() {
        let clean = text.replace('\0', "\u{fffd}");
        unsafe { *out = CString::new(clean).unwrap_or_default().into_raw() };
    }
}

/// Text C vouches for as UTF-8; anything else becomes U+FFFD.
pub(crate) unsafe fn text_in(text: *const c_char) -> String {
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

pub(crate) unsafe fn slice_in<'a, T>(data: *const T, len: usize) -> &'a [T] {
    if len == 0 {
        &[]
    } else {
        unsafe { std::slice::from_raw_parts(data, len) }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn bridge_text_free(text: *mut c_char) {
    if !text.is_null() {
        drop(unsafe { CString::from_raw(text) });
    }
}
