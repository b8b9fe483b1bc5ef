// SPDX-License-Identifier: Apache-2.0
//
// A guest's clocks and random numbers where C gives them: a session that is recorded in full, or runs again.
//
// Always true: the functions are called on the guest's thread; without them a guest has the host's own.

use rand::TryRng;
use std::convert::Infallible;
use std::ffi::c_void;
use std::time::Duration;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtxBuilder};

/// Mirrors struct guest_senses of engine.h.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Senses {
    ctx: *mut c_void,
    wall_ns: unsafe extern "C" fn(*mut c_void) -> u64,
    monotonic_ns: unsafe extern "C" fn(*mut c_void) -> u64,
    random: unsafe extern "C" fn(*mut c_void, *mut c_void, usize),
    is_past: bool,
}

// A guest is used by one thread at a time.
unsafe impl Send for Senses {}

impl Senses {
    pub fn is_past(&self) -> bool {
        self.is_past
    }

    pub fn give(&self, b: &mut WasiCtxBuilder) {
        let mut seed = [0u8; 16];
        self.fill(&mut seed);
        b.wall_clock(*self)
            .monotonic_clock(*self)
            .secure_random(*self)
            .insecure_random(*self)
            .insecure_random_seed(u128::from_le_bytes(seed));
    }

    fn fill(&self, out: &mut [u8]) {
        unsafe { (self.random)(self.ctx, out.as_mut_ptr().cast(), out.len()) };
    }
}

impl HostWallClock for Senses {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }
    fn now(&self) -> Duration {
        Duration::from_nanos(unsafe { (self.wall_ns)(self.ctx) })
    }
}

impl HostMonotonicClock for Senses {
    fn resolution(&self) -> u64 {
        1
    }
    fn now(&self) -> u64 {
        unsafe { (self.monotonic_ns)(self.ctx) }
    }
}

impl TryRng for Senses {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0u8; 4];
        self.fill(&mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0u8; 8];
        self.fill(&mut bytes);
        Ok(u64::from_le_bytes(bytes))
    }
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        self.fill(out);
        Ok(())
    }
}
