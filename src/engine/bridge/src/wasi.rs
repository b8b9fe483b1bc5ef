// SPDX-License-Identifier: Apache-2.0
//
// The WASI packages a guest may import, one row each.
//
// The rows are wasmtime-wasi's own list for WASI 0.2, split by package. wasi:sockets links too, so that a component importing
// it starts; every use of it is denied by the guest's context.

use crate::guest::GuestData;
use wasmtime::Result;
use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::WasiView;
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView};
use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemView};
use wasmtime_wasi::p2::bindings;
use wasmtime_wasi::random::{WasiRandom, WasiRandomView};
use wasmtime_wasi::sockets::{WasiSockets, WasiSocketsView};

type L = Linker<GuestData>;

pub struct WasiPackage {
    pub prefix: &'static str,
    pub is_http: bool,
    pub add: fn(&mut L) -> Result<()>,
}

pub const WASI_PACKAGES: [WasiPackage; 7] = [
    WasiPackage {
        prefix: "wasi:io/",
        is_http: false,
        add: add_io,
    },
    WasiPackage {
        prefix: "wasi:clocks/",
        is_http: false,
        add: add_clocks,
    },
    WasiPackage {
        prefix: "wasi:filesystem/",
        is_http: false,
        add: add_filesystem,
    },
    WasiPackage {
        prefix: "wasi:random/",
        is_http: false,
        add: add_random,
    },
    WasiPackage {
        prefix: "wasi:cli/",
        is_http: false,
        add: add_cli,
    },
    WasiPackage {
        prefix: "wasi:sockets/",
        is_http: false,
        add: add_sockets,
    },
    WasiPackage {
        prefix: "wasi:http/",
        is_http: true,
        add: add_http,
    },
];

struct HasTable;

impl HasData for HasTable {
    type Data<'a> = &'a mut ResourceTable;
}

fn add_io(l: &mut L) -> Result<()> {
    use wasmtime_wasi_io::bindings::wasi::io;
    io::error::add_to_linker::<_, HasTable>(l, |t| t.ctx().table)?;
    io::poll::add_to_linker::<_, HasTable>(l, |t| t.ctx().table)?;
    io::streams::add_to_linker::<_, HasTable>(l, |t| t.ctx().table)
}

fn add_clocks(l: &mut L) -> Result<()> {
    bindings::clocks::wall_clock::add_to_linker::<_, WasiClocks>(l, GuestData::clocks)?;
    bindings::clocks::monotonic_clock::add_to_linker::<_, WasiClocks>(l, GuestData::clocks)
}

fn add_filesystem(l: &mut L) -> Result<()> {
    use bindings::filesystem::{preopens, types};
    preopens::add_to_linker::<_, WasiFilesystem>(l, GuestData::filesystem)?;
    types::add_to_linker::<_, WasiFilesystem>(l, GuestData::filesystem)?;
    crate::readdir::sort_directories(l)?;
    crate::open::open_without_waiting(l)
}

fn add_random(l: &mut L) -> Result<()> {
    bindings::random::random::add_to_linker::<_, WasiRandom>(l, GuestData::random)?;
    bindings::random::insecure::add_to_linker::<_, WasiRandom>(l, GuestData::random)?;
    bindings::random::insecure_seed::add_to_linker::<_, WasiRandom>(l, GuestData::random)
}

fn add_cli(l: &mut L) -> Result<()> {
    use bindings::cli;
    cli::exit::add_to_linker::<_, WasiCli>(l, GuestData::cli)?;
    cli::environment::add_to_linker::<_, WasiCli>(l, GuestData::cli)?;
    cli::stdin::add_to_linker::<_, WasiCli>(l, GuestData::cli)?;
    cli::stdout::add_to_linker::<_, WasiCli>(l, GuestData::cli)?;
    cli::stderr::add_to_linker::<_, WasiCli>(l, GuestData::cli)?;
    cli::terminal_input::add_to_linker::<_, WasiCli>(l, GuestData::cli)?;
    cli::terminal_output::add_to_linker::<_, WasiCli>(l, GuestData::cli)?;
    cli::terminal_stdin::add_to_linker::<_, WasiCli>(l, GuestData::cli)?;
    cli::terminal_stdout::add_to_linker::<_, WasiCli>(l, GuestData::cli)?;
    cli::terminal_stderr::add_to_linker::<_, WasiCli>(l, GuestData::cli)
}

fn add_sockets(l: &mut L) -> Result<()> {
    use bindings::sockets;
    let options = bindings::LinkOptions::default();
    sockets::tcp::add_to_linker::<_, WasiSockets>(l, GuestData::sockets)?;
    sockets::udp::add_to_linker::<_, WasiSockets>(l, GuestData::sockets)?;
    sockets::tcp_create_socket::add_to_linker::<_, WasiSockets>(l, GuestData::sockets)?;
    sockets::udp_create_socket::add_to_linker::<_, WasiSockets>(l, GuestData::sockets)?;
    sockets::instance_network::add_to_linker::<_, WasiSockets>(l, GuestData::sockets)?;
    sockets::network::add_to_linker::<_, WasiSockets>(l, &(&options).into(), GuestData::sockets)?;
    sockets::ip_name_lookup::add_to_linker::<_, WasiSockets>(l, GuestData::sockets)
}

fn add_http(l: &mut L) -> Result<()> {
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(l)
}
