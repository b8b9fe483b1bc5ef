// SPDX-License-Identifier: Apache-2.0
//
// Clocks and random numbers of a guest, from C instead of from the host: what a recording keeps and a replay gives again.
//
// Always true: one guest is driven by one thread, so the calls come in the order of the guest's own reads.

use rand_core::TryRng;
use std::convert::Infallible;
use std::ffi::c_void;
use std::time::Duration;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtxBuilder};

/// Mirrors struct guest_inputs of engine.h.
#[repr(C)]
pub struct Inputs {
    wall_ns: unsafe extern "C" fn(*mut c_void) -> u64,
    monotonic_ns: unsafe extern "C" fn(*mut c_void) -> u64,
    fill_random: unsafe extern "C" fn(*mut c_void, *mut u8, usize),
}

#[derive(Clone, Copy)]
struct Source {
    inputs: *const Inputs,
    ctx: *mut c_void,
}

// The C side outlives the guest, which one thread drives at a time.
unsafe impl Send for Source {}

impl HostWallClock for Source {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(unsafe { ((*self.inputs).wall_ns)(self.ctx) })
    }
}

impl HostMonotonicClock for Source {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        unsafe { ((*self.inputs).monotonic_ns)(self.ctx) }
    }
}

impl TryRng for Source {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        unsafe { ((*self.inputs).fill_random)(self.ctx, out.as_mut_ptr(), out.len()) };
        Ok(())
    }
}

/// Gives the context these inputs; nothing happens when there are none.
pub fn set(b: &mut WasiCtxBuilder, inputs: *const Inputs, ctx: *mut c_void) {
    if inputs.is_null() {
        return;
    }
    let mut source = Source { inputs, ctx };
    let mut seed = [0; 16];
    let Ok(()) = source.try_fill_bytes(&mut seed);
    b.wall_clock(source)
        .monotonic_clock(source)
        .secure_random(source)
        .insecure_random(source)
        .insecure_random_seed(u128::from_le_bytes(seed));
}
