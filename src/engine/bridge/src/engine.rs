// SPDX-License-Identifier: Apache-2.0
//
// The engine's configuration, and components: compiled or loaded with an error text of their own, and
// asked for an export by its exact name, which the C API lacks.
//
// Always true: a change of `config` changes bridge_config_text, which is part of the name of every compiled form.

use crate::{slice_in, text_in, text_out};
use std::ffi::c_char;
use wasmtime::component::Component;
use wasmtime::{Config, Engine, OptLevel};
use wasmtime_c_api::{wasm_engine_t, wasmtime_component_t};

/// What `config` says, in words: changes with it, and needs no engine.
#[unsafe(no_mangle)]
pub extern "C" fn bridge_config_text() -> *const c_char {
    c"1 cranelift speed epoch cow no-unwind-info no-address-map".as_ptr()
}

fn config() -> Config {
    let mut c = Config::new();
    c.wasm_component_model(true);
    c.epoch_interruption(true);
    c.cranelift_opt_level(OptLevel::Speed);
    c.parallel_compilation(true);
    c.memory_init_cow(true);
    // Nobody unwinds through guests or symbolizes their frames: smaller forms, nothing to register at load.
    c.native_unwind_info(false);
    c.generate_address_map(false);
    c
}

// `wasm_engine_t` is `repr(C)` around one Engine and `wasmtime_component_t` is `repr(transparent)` around one Component, in
// the exact version Cargo.toml pins; their fields are private to the C API's crate.
pub(crate) fn engine_of(e: &wasm_engine_t) -> &Engine {
    unsafe { &*(e as *const wasm_engine_t).cast::<Engine>() }
}

pub(crate) fn component_of(c: &wasmtime_component_t) -> &Component {
    unsafe { &*(c as *const wasmtime_component_t).cast::<Component>() }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn bridge_engine_new(error: *mut *mut c_char) -> *mut wasm_engine_t {
    match Engine::new(&config()) {
        Ok(engine) => Box::into_raw(Box::new(engine)).cast::<wasm_engine_t>(),
        Err(e) => {
            text_out(error, &format!("{e:#}"));
            std::ptr::null_mut()
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn bridge_component_load(
    engine: &wasm_engine_t,
    form: *const u8,
    len: usize,
    out: &mut *mut wasmtime_component_t,
    error: *mut *mut c_char,
) -> bool {
    let form = unsafe { slice_in(form, len) };
    take_component(
        unsafe { Component::deserialize(engine_of(engine), form) },
        out,
        error,
    )
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn bridge_component_compile(
    engine: &wasm_engine_t,
    wasm: *const u8,
    len: usize,
    out: &mut *mut wasmtime_component_t,
    error: *mut *mut c_char,
) -> bool {
    // from_binary, not new: text is never accepted, whatever features another crate turns on.
    let wasm = unsafe { slice_in(wasm, len) };
    take_component(Component::from_binary(engine_of(engine), wasm), out, error)
}

fn take_component(
    result: wasmtime::Result<Component>,
    out: &mut *mut wasmtime_component_t,
    error: *mut *mut c_char,
) -> bool {
    match result {
        Ok(component) => {
            *out = Box::into_raw(Box::new(component)).cast::<wasmtime_component_t>();
            true
        }
        Err(e) => {
            text_out(error, &format!("{e:#}"));
            false
        }
    }
}

/// The engine's own lookup also accepts semver-compatible names; a murmur interface is served in one exact version.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bridge_component_exports(
    component: &wasmtime_component_t,
    name: *const c_char,
) -> bool {
    let component = component_of(component);
    exports_exactly(component, &unsafe { text_in(name) })
}

pub(crate) fn exports_exactly(component: &Component, name: &str) -> bool {
    let ty = component.component_type();
    ty.exports(component.engine()).any(|(n, _)| n == name)
}
