// SPDX-License-Identifier: Apache-2.0
//
// Runs one future on the calling thread until it is done or told to stop.
//
// The future is polled outside of tokio's block_on, which is entered only to wait: a host function may therefore call another
// guest on the same thread. Tasks and timers of the runtime advance while waiting. A stopped future is dropped here, which
// unwinds the guest, before the function returns.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use wasmtime::Engine;
use wasmtime_c_api::wasm_engine_t;

/// What stops one call, from any thread.
pub struct Stop {
    is_raised: AtomicBool,
    notify: Notify,
    engine: Engine,
}

impl Stop {
    pub fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::Acquire)
    }
}

impl Wake for Stop {
    fn wake(self: Arc<Self>) {
        self.notify.notify_one();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.notify.notify_one();
    }
}

/// The future's output, or None when it was stopped.
pub fn drive<F: Future>(runtime: &Runtime, stop: &Arc<Stop>, future: F) -> Option<F::Output> {
    let _entered = runtime.enter();
    let waker = Waker::from(stop.clone());
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if stop.is_raised() {
            return None;
        }
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return Some(output);
        }
        runtime.block_on(async {
            // A guest that never waits long must not starve the tasks that feed it.
            tokio::task::yield_now().await;
            stop.notify.notified().await;
        });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn bridge_stop_new(engine: &wasm_engine_t) -> *const Stop {
    Arc::into_raw(Arc::new(Stop {
        is_raised: AtomicBool::new(false),
        notify: Notify::new(),
        engine: crate::engine::engine_of(engine).clone(),
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn bridge_stop_raise(stop: &Stop) {
    stop.is_raised.store(true, Ordering::Release);
    // A guest busy in a loop looks up at the next epoch; other guests see one early look, no more.
    stop.engine.increment_epoch();
    stop.notify.notify_one();
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn bridge_stop_free(stop: *const Stop) {
    if !stop.is_null() {
        drop(unsafe { Arc::from_raw(stop) });
    }
}

/// A second handle on a Stop that C owns.
pub unsafe fn stop_borrow(stop: *const Stop) -> Arc<Stop> {
    unsafe {
        Arc::increment_strong_count(stop);
        Arc::from_raw(stop)
    }
}
