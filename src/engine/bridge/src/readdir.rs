// SPDX-License-Identifier: Apache-2.0
//
// Directories are listed in the order of their names: the order a file system gives is another in each folder, and what a
// guest makes of it would be, too.
//
// Always true: what is listed, and what cannot be, is as wasmtime-wasi has it; only the order is ours.

use crate::guest::GuestData;
use std::vec::IntoIter;
use wasmtime::Result;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, ResourceType};
use wasmtime_wasi::WasiView;
use wasmtime_wasi::filesystem::WasiFilesystemView;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Descriptor, DirectoryEntry, ErrorCode, Host, HostDescriptor,
};

pub const INTERFACE: &str = "wasi:filesystem/types@0.2.12";

struct Sorted(IntoIter<FsResult<DirectoryEntry>>);

type Store<'a> = StoreContextMut<'a, GuestData>;

async fn open(data: &mut GuestData, dir: Resource<Descriptor>) -> FsResult<Resource<Sorted>> {
    let unsorted = data.filesystem().read_directory(dir).await?;
    let table = data.ctx().table;
    let mut entries: Vec<_> = table.delete(unsorted)?.into_iter().collect();
    entries.sort_by(|a, b| {
        let name = |e: &FsResult<DirectoryEntry>| e.as_ref().ok().map(|e| e.name.clone());
        name(a).cmp(&name(b))
    });
    Ok(table.push(Sorted(entries.into_iter()))?)
}

/// As the generated bindings hand it out: an error of the file system is the guest's, any other traps.
pub fn settle<T>(data: &mut GuestData, result: FsResult<T>) -> Result<(Result<T, ErrorCode>,)> {
    match result {
        Ok(value) => Ok((Ok(value),)),
        Err(e) => Ok((Err(data.filesystem().convert_error_code(e)?),)),
    }
}

/// Shadows the three definitions of directory streams in a linker that has them.
pub fn sort_directories(l: &mut Linker<GuestData>) -> Result<()> {
    l.allow_shadowing(true);
    let mut types = l.instance(INTERFACE)?;
    types.resource(
        "directory-entry-stream",
        ResourceType::host::<Sorted>(),
        |mut store, rep| {
            let stream = Resource::<Sorted>::new_own(rep);
            store.data_mut().ctx().table.delete(stream)?;
            Ok(())
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.read-directory",
        |mut store: Store<'_>, (dir,): (Resource<Descriptor>,)| {
            Box::new(async move {
                let data = store.data_mut();
                let opened = open(data, dir).await;
                settle(data, opened)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]directory-entry-stream.read-directory-entry",
        |mut store: Store<'_>, (stream,): (Resource<Sorted>,)| {
            Box::new(async move {
                let data = store.data_mut();
                let next = data.ctx().table.get_mut(&stream)?.0.next().transpose();
                settle(data, next)
            })
        },
    )?;
    l.allow_shadowing(false);
    Ok(())
}
