// SPDX-License-Identifier: Apache-2.0
//
// Opening a file for a guest waits for nobody.
//
// A FIFO is opened once somebody opens its other end, which may be never, and a device may do anything; commands can put a
// FIFO where a guest looked a moment ago and saw a file. So a guest is given regular files and folders alone, and what is
// opened is looked at once it is open, without waiting. All else is as wasmtime-wasi has it.

use crate::guest::GuestData;
use crate::readdir::{INTERFACE, settle};
use std::ffi::{CString, c_char, c_int, c_long};
use std::fs::File as OsFile;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use wasmtime::component::{Linker, Resource};
use wasmtime::{Result, StoreContextMut};
use wasmtime_wasi::WasiView;
use wasmtime_wasi::filesystem::{Descriptor, Dir, File, OpenMode, WasiFilesystemView};
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, ErrorCode, HostDescriptor, OpenFlags, PathFlags,
};
use wasmtime_wasi::runtime::spawn_blocking;

/// The same on every architecture, as all calls that are as young.
const SYS_OPENAT2: c_long = 437;
const RESOLVE_BENEATH: u64 = 0x08;
const RESOLVE_NO_MAGICLINKS: u64 = 0x02;
const TRIES: usize = 64;

/// Those of the generic table; a few architectures have another bit for the last.
const O_RDONLY: c_int = 0;
const O_WRONLY: c_int = 1;
const O_RDWR: c_int = 2;
const O_CREAT: c_int = 0o100;
const O_EXCL: c_int = 0o200;
const O_NOCTTY: c_int = 0o400;
const O_TRUNC: c_int = 0o1000;
const O_NONBLOCK: c_int = 0o4000;
const O_CLOEXEC: c_int = 0o2000000;
const O_PATH: c_int = 0o10000000;
#[cfg(not(any(
    target_arch = "aarch64",
    target_arch = "arm",
    target_arch = "powerpc64"
)))]
const O_NOFOLLOW: c_int = 0o400000;
#[cfg(any(
    target_arch = "aarch64",
    target_arch = "arm",
    target_arch = "powerpc64"
))]
const O_NOFOLLOW: c_int = 0o100000;

const EPERM: i32 = 1;
const EAGAIN: i32 = 11;
const EXDEV: i32 = 18;
const ENOSYS: i32 = 38;

#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

/// How a guest asked.
#[derive(Clone)]
struct Wanted {
    path: String,
    follows: bool,
    how: OpenFlags,
    flags: DescriptorFlags,
}

impl Wanted {
    fn mode(&self) -> OpenMode {
        let writes = self.flags.contains(DescriptorFlags::WRITE);
        let makes = self.how.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE);
        let reads = self.flags.contains(DescriptorFlags::READ) || !writes;
        let mut mode = OpenMode::empty();
        mode.set(OpenMode::READ, reads);
        mode.set(OpenMode::WRITE, writes || makes);
        mode
    }

    fn os_flags(&self) -> c_int {
        let access = match (
            self.mode().contains(OpenMode::READ),
            self.mode().contains(OpenMode::WRITE),
        ) {
            (true, true) => O_RDWR,
            (false, true) => O_WRONLY,
            _ => O_RDONLY,
        };
        let with = |flag: OpenFlags, bit: c_int| if self.how.contains(flag) { bit } else { 0 };
        access
            | with(OpenFlags::CREATE, O_CREAT)
            | with(OpenFlags::TRUNCATE, O_TRUNC)
            | if self.how.contains(OpenFlags::CREATE | OpenFlags::EXCLUSIVE) {
                O_EXCL
            } else {
                0
            }
    }
}

enum Opened {
    Dir(OsFile),
    File(OsFile),
    /// This kernel or a filter of the host's has no such call.
    Unknown,
}

fn open_beneath(dir: &OsFile, path: &CString, flags: c_int) -> io::Result<OsFile> {
    let how = OpenHow {
        flags: (flags | O_CLOEXEC) as u64,
        mode: if flags & O_CREAT != 0 { 0o666 } else { 0 },
        resolve: RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    let mut result = Err(io::Error::from_raw_os_error(EAGAIN));
    for _ in 0..TRIES {
        let path: *const c_char = path.as_ptr();
        let fd = unsafe {
            syscall(
                SYS_OPENAT2,
                dir.as_raw_fd(),
                path,
                &how,
                size_of::<OpenHow>(),
            )
        };
        if fd >= 0 {
            return Ok(unsafe { OsFile::from_raw_fd(fd as c_int) });
        }
        result = Err(io::Error::last_os_error());
        // A rename somewhere on the host came between.
        if result
            .as_ref()
            .is_err_and(|e| e.raw_os_error() != Some(EAGAIN))
        {
            break;
        }
    }
    result
}

fn refuse_others(file: &OsFile) -> FsResult<bool> {
    let kind = file.metadata()?.file_type();
    if kind.is_dir() || kind.is_file() {
        return Ok(kind.is_dir());
    }
    Err(ErrorCode::NotPermitted.into())
}

/// A look that touches nothing comes first: whoever waits at the other end of a FIFO goes on waiting.
fn open_now(dir: &OsFile, wanted: &Wanted) -> FsResult<Opened> {
    let path = CString::new(wanted.path.as_str()).map_err(|_| ErrorCode::Invalid)?;
    let kept = if wanted.follows { 0 } else { O_NOFOLLOW };
    let known = |e: io::Error| match e.raw_os_error() {
        Some(ENOSYS | EPERM) => Ok(Opened::Unknown),
        Some(EXDEV) => Err(ErrorCode::NotPermitted.into()),
        _ => Err(e.into()),
    };
    match open_beneath(dir, &path, O_PATH | kept) {
        // A link that is not followed is no file: opening it says so.
        Ok(seen) if !seen.metadata()?.is_symlink() => drop(refuse_others(&seen)?),
        _ => {}
    }
    let file = match open_beneath(dir, &path, wanted.os_flags() | O_NONBLOCK | O_NOCTTY | kept) {
        Ok(file) => file,
        Err(e) => return known(e),
    };
    let is_dir = refuse_others(&file)?;
    match is_dir {
        true => Ok(Opened::Dir(file)),
        false if wanted.how.contains(OpenFlags::DIRECTORY) => Err(ErrorCode::NotDirectory.into()),
        false => Ok(Opened::File(file)),
    }
}

/// What wasmtime-wasi refuses before it asks the system.
fn check(dir: &Dir, wanted: &Wanted) -> FsResult<()> {
    let synced = DescriptorFlags::FILE_INTEGRITY_SYNC
        | DescriptorFlags::DATA_INTEGRITY_SYNC
        | DescriptorFlags::REQUESTED_WRITE_SYNC;
    if wanted.flags.intersects(synced) {
        return Err(ErrorCode::Unsupported.into());
    }
    let made = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE;
    if wanted.how.contains(OpenFlags::DIRECTORY) && wanted.how.intersects(made) {
        return Err(ErrorCode::Invalid.into());
    }
    if dir.perms.write_not_permitted() && wanted.mode().contains(OpenMode::WRITE) {
        return Err(ErrorCode::NotPermitted.into());
    }
    Ok(())
}

async fn open(
    data: &mut GuestData,
    at: Resource<Descriptor>,
    path_flags: PathFlags,
    wanted: Wanted,
) -> FsResult<Resource<Descriptor>> {
    let dir = match data.ctx().table.get(&at)? {
        Descriptor::Dir(dir) => dir.clone(),
        Descriptor::File(_) => return Err(ErrorCode::NotDirectory.into()),
    };
    check(&dir, &wanted)?;
    let (handle, asked) = (dir.dir.clone(), wanted.clone());
    let descriptor = match spawn_blocking(move || open_now(&handle, &asked)).await? {
        Opened::Dir(opened) => Descriptor::Dir(Dir::new(opened, dir.perms, wanted.mode(), false)),
        Opened::File(opened) => {
            Descriptor::File(File::new(opened, dir.perms, wanted.mode(), false))
        }
        Opened::Unknown => {
            let Wanted {
                path, how, flags, ..
            } = wanted;
            return data
                .filesystem()
                .open_at(at, path_flags, path, how, flags)
                .await;
        }
    };
    Ok(data.ctx().table.push(descriptor)?)
}

type Asked = (
    Resource<Descriptor>,
    PathFlags,
    String,
    OpenFlags,
    DescriptorFlags,
);

/// Shadows the one definition that opens.
pub fn open_without_waiting(l: &mut Linker<GuestData>) -> Result<()> {
    l.allow_shadowing(true);
    l.instance(INTERFACE)?.func_wrap_async(
        "[method]descriptor.open-at",
        |mut store: StoreContextMut<'_, GuestData>, (at, path_flags, path, how, flags): Asked| {
            Box::new(async move {
                let data = store.data_mut();
                let follows = path_flags.contains(PathFlags::SYMLINK_FOLLOW);
                let wanted = Wanted {
                    path,
                    follows,
                    how,
                    flags,
                };
                let opened = open(data, at, path_flags, wanted).await;
                settle(data, opened)
            })
        },
    )?;
    l.allow_shadowing(false);
    Ok(())
}
