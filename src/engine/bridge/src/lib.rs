pub use wasmtime_c_api::*;
