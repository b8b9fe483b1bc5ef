# SPDX-License-Identifier: Apache-2.0
command -v cargo >/dev/null || { echo "cargo is missing: install Rust with rustup, then: rustup target add wasm32-wasip2" >&2; exit 1; }
cargo build --release --target wasm32-wasip2
cp target/wasm32-wasip2/release/@ROLE@.wasm @NAME@.wasm
