// SPDX-License-Identifier: Apache-2.0
//
// A guest: one store with its grants and limits, one instance, one call at a time.
//
// Always true: a guest holds exactly the preopens, variables and HTTP handler of its specification; a limit that was refused
// is remembered and outranks whatever the guest made of the refusal; freeing a guest drops every task it started.

use crate::drive::{Stop, drive, stop_borrow};
use crate::http::{Handler, Hooks};
use crate::link::{Linked, Missing};
use crate::senses::Senses;
use crate::stdio::{LastWords, Stdio};
use crate::{slice_in, text_in, text_out};
use std::ffi::{c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use wasmtime::component::{Instance, ResourceTable, Val};
use wasmtime::{ResourceLimiter, Store, Trap, UpdateDeadline};
use wasmtime_c_api::wasmtime_component_val_t;
use wasmtime_wasi::{FsPerms, I32Exit, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

#[repr(C)]
pub struct Preopen {
    dir_fd: c_int,
    guest_path: *const c_char,
    is_read_only: bool,
}

#[repr(C)]
pub struct Spec {
    guest: *mut c_void,
    preopens: *const Preopen,
    preopen_count: usize,
    env: *const *const c_char,
    env_count: usize,
    memory_bytes: u64,
    table_elements: u64,
    instances: u64,
    deadline_ms: u64,
    http: *const Handler,
    http_ctx: *mut c_void,
    has_stdio: bool,
    senses: *const Senses,
}

/// Mirrors enum guest_ending of engine.h.
#[repr(i32)]
#[derive(Clone, Copy)]
pub enum Ending {
    Ok = 0,
    MissingExport = 2,
    Trapped = 3,
    Deadline = 4,
    Limit = 5,
    Cancelled = 6,
}

pub struct GuestData {
    pub guest: *mut c_void,
    wasi: WasiCtx,
    table: ResourceTable,
    http: WasiHttpCtx,
    hooks: Hooks,
    limits: Limits,
    deadline: Instant,
    last_words: LastWords,
}

// The C pointers are opaque to Rust, and a guest is used by one thread at a time.
unsafe impl Send for GuestData {}

impl WasiView for GuestData {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl WasiHttpView for GuestData {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            ctx: &mut self.http,
            table: &mut self.table,
            hooks: &mut self.hooks,
        }
    }
}

struct Limits {
    memory_bytes: u64,
    table_elements: u64,
    instances: u64,
    refused: Option<String>,
}

impl ResourceLimiter for Limits {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired as u64 <= self.memory_bytes {
            return Ok(true);
        }
        self.refused = Some(format!(
            "linear memory growth to {desired} bytes exceeds capabilities.limits.memory_bytes ({})",
            self.memory_bytes
        ));
        Ok(false)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired as u64 <= self.table_elements {
            return Ok(true);
        }
        self.refused = Some(format!(
            "table growth to {desired} elements exceeds capabilities.limits.table_elements ({})",
            self.table_elements
        ));
        Ok(false)
    }

    fn instances(&self) -> usize {
        usize::try_from(self.instances).unwrap_or(usize::MAX)
    }
}

impl Limits {
    /// The engine counts instances itself and only reports the number it refused in the error's text.
    fn instance_refusal(&self, error: &str) -> Option<String> {
        let wanted = error.strip_prefix("resource limit exceeded: instance count too high at ")?;
        Some(format!(
            "instance count {wanted} exceeds capabilities.limits.instances ({})",
            self.instances
        ))
    }
}

pub struct Guest {
    store: ManuallyDrop<Store<GuestData>>,
    runtime: ManuallyDrop<Runtime>,
    instance: Option<Instance>,
    deadline_ms: u64,
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _entered = self.runtime.enter();
        unsafe { ManuallyDrop::drop(&mut self.store) };
        drop(_entered);
        // Not waiting for a thread that sits in a blocking file operation: it holds nothing of the guest's.
        unsafe { ManuallyDrop::take(&mut self.runtime) }.shutdown_background();
    }
}

fn wasi_of(spec: &Spec, last_words: &LastWords) -> Result<WasiCtx, String> {
    let mut b = WasiCtxBuilder::new();
    b.allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false);
    if spec.has_stdio {
        b.inherit_stdin()
            .stdout(Stdio::OUT)
            .stderr(Stdio::err(last_words.clone()));
    }
    for variable in unsafe { slice_in(spec.env, spec.env_count) } {
        let variable = unsafe { text_in(*variable) };
        let (name, value) = variable.split_once('=').unwrap_or((&variable, ""));
        b.env(name, value);
    }
    for p in unsafe { slice_in(spec.preopens, spec.preopen_count) } {
        let path = format!("/proc/self/fd/{}", p.dir_fd);
        let name = unsafe { text_in(p.guest_path) };
        let perms = if p.is_read_only {
            FsPerms::ReadOnly
        } else {
            FsPerms::ReadWrite
        };
        b.preopened_dir(&path, &name, perms)
            .map_err(|e| format!("preopen \"{name}\": {e:#}"))?;
    }
    if let Some(senses) = unsafe { spec.senses.as_ref() } {
        senses.give(&mut b);
    }
    Ok(b.build())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn bridge_guest_new(
    linked: &Linked,
    spec: &Spec,
    error: *mut *mut c_char,
) -> *mut Guest {
    let last_words = LastWords::default();
    let wasi = match wasi_of(spec, &last_words) {
        Ok(wasi) => wasi,
        Err(text) => {
            text_out(error, &text);
            return std::ptr::null_mut();
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_time()
        // What a guest waits for that runs again has come: its sleeps end at once.
        .start_paused(unsafe { spec.senses.as_ref() }.is_some_and(Senses::is_past))
        .max_blocking_threads(2)
        .build()
    {
        Ok(runtime) => runtime,
        Err(e) => {
            text_out(error, &format!("no event loop for the guest: {e}"));
            return std::ptr::null_mut();
        }
    };
    let data = GuestData {
        guest: spec.guest,
        wasi,
        table: ResourceTable::new(),
        http: WasiHttpCtx::new(),
        hooks: Hooks::new(spec.http, spec.http_ctx),
        limits: Limits {
            memory_bytes: spec.memory_bytes,
            table_elements: spec.table_elements,
            instances: spec.instances,
            refused: None,
        },
        deadline: Instant::now(),
        last_words,
    };
    let mut store = Store::new(linked.component.engine(), data);
    store.limiter(|data| &mut data.limits);
    store.epoch_deadline_callback(|cx| {
        if Instant::now() >= cx.data().deadline {
            return Err(Trap::Interrupt.into());
        }
        Ok(UpdateDeadline::Yield(1))
    });
    Box::into_raw(Box::new(Guest {
        store: ManuallyDrop::new(store),
        runtime: ManuallyDrop::new(runtime),
        instance: None,
        deadline_ms: spec.deadline_ms,
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn bridge_guest_free(guest: *mut Guest) {
    if !guest.is_null() {
        drop(unsafe { Box::from_raw(guest) });
    }
}

impl Guest {
    fn arm_deadline(&mut self) {
        let now = Instant::now();
        let far = now + Duration::from_secs(3600 * 24 * 365);
        self.store.data_mut().deadline = now
            .checked_add(Duration::from_millis(self.deadline_ms))
            .unwrap_or(far);
        self.store.set_epoch_deadline(1);
    }

    /// Why a call failed: a refused limit first, then the deadline, then a plain trap.
    fn classify(&mut self, e: wasmtime::Error) -> (Ending, String) {
        let cause = e.root_cause().to_string();
        let limits = &mut self.store.data_mut().limits;
        if let Some(text) = limits
            .refused
            .take()
            .or_else(|| limits.instance_refusal(&cause))
        {
            return (Ending::Limit, text);
        }
        if let Some(Trap::Interrupt) = e.downcast_ref::<Trap>() {
            let seconds = self.deadline_ms.div_ceil(1000);
            return (
                Ending::Deadline,
                format!("exceeded its {seconds}s deadline (capabilities.limits.deadline_seconds)"),
            );
        }
        if let Some(I32Exit(status)) = e.downcast_ref::<I32Exit>() {
            return (
                Ending::Trapped,
                format!("the guest exited with status {status}"),
            );
        }
        (Ending::Trapped, cause)
    }
}

/// *words is the last the guest wrote on its stderr since it was asked, "" when nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bridge_guest_last_words(guest: &mut Guest, words: *mut *mut c_char) {
    text_out(words, &guest.store.data().last_words.take());
}

const CANCELLED: &str = "cancelled";

#[unsafe(no_mangle)]
pub unsafe extern "C" fn bridge_guest_start(
    guest: &mut Guest,
    linked: &Linked,
    stop: *const Stop,
    error: *mut *mut c_char,
) -> Ending {
    let stop = unsafe { stop_borrow(stop) };
    guest.arm_deadline();
    let started = drive(
        &guest.runtime,
        &stop,
        linked.pre.instantiate_async(&mut *guest.store),
    );
    match started {
        Some(Ok(instance)) => {
            guest.instance = Some(instance);
            Ending::Ok
        }
        Some(Err(_)) | None if stop.is_raised() => {
            text_out(error, CANCELLED);
            Ending::Cancelled
        }
        Some(Err(e)) => {
            let (ending, text) = guest.classify(e);
            text_out(error, &text);
            ending
        }
        None => Ending::Cancelled,
    }
}

/// Calls an export. *result is written (and owned by C) when the function returns a value and *has_result is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bridge_guest_call(
    guest: &mut Guest,
    linked: &Linked,
    interface: *const c_char,
    function: *const c_char,
    args: *const wasmtime_component_val_t,
    arg_count: usize,
    has_result: &mut bool,
    result: &mut wasmtime_component_val_t,
    stop: *const Stop,
    error: *mut *mut c_char,
) -> Ending {
    *has_result = false;
    let stop = unsafe { stop_borrow(stop) };
    let (interface, function) = unsafe { (text_in(interface), text_in(function)) };
    let Some(instance) = guest.instance else {
        text_out(error, "the guest was never started");
        return Ending::Trapped;
    };
    let index = match linked.export(&interface, &function) {
        Ok(index) => index,
        Err(missing) => {
            let text = match missing {
                Missing::Interface => format!("it exports no instance \"{interface}\""),
                Missing::Function => format!("its \"{interface}\" has no function \"{function}\""),
            };
            text_out(error, &text);
            return Ending::MissingExport;
        }
    };
    let Some(callee) = instance.get_func(&mut *guest.store, index) else {
        text_out(
            error,
            &format!("its \"{interface}\" has no function \"{function}\""),
        );
        return Ending::MissingExport;
    };
    let params: Vec<Val> = unsafe { slice_in(args, arg_count) }
        .iter()
        .map(Val::from)
        .collect();
    let result_count = callee.ty(&*guest.store).results().len();
    let mut results = vec![Val::Bool(false); result_count];

    guest.arm_deadline();
    let ended = drive(
        &guest.runtime,
        &stop,
        callee.call_async(&mut *guest.store, &params, &mut results),
    );
    match ended {
        Some(Ok(())) => {
            if let Some(value) = results.first() {
                *result = wasmtime_component_val_t::from(value);
                *has_result = true;
            }
            Ending::Ok
        }
        Some(Err(_)) | None if stop.is_raised() => {
            text_out(error, CANCELLED);
            Ending::Cancelled
        }
        // wasi:cli/exit with success is how some languages end a function that returns nothing.
        Some(Err(e)) if result_count == 0 && matches!(e.downcast_ref(), Some(I32Exit(0))) => {
            Ending::Ok
        }
        Some(Err(e)) => {
            let (ending, text) = guest.classify(e);
            text_out(error, &text);
            ending
        }
        None => Ending::Cancelled,
    }
}
