// SPDX-License-Identifier: Apache-2.0
//
// What a guest may import: WASI, wasi:http, and the host interfaces C names.
//
// A linker serves every guest of one kind and a pre-linked component every instance of it: host functions find the guest they
// are called for in the store. Only the WASI packages a component names are linked, since filling a linker with all of them
// is a large part of a warm start. Always true: an import that is not offered fails with its name, and a murmur interface is
// served in its exact version only (the engine alone would accept a compatible one).

use crate::engine::{component_of, engine_of, exports_exactly};
use crate::guest::GuestData;
use crate::wasi::WASI_PACKAGES;
use crate::{slice_in, text_in, text_out};
use std::collections::{HashMap, HashSet};
use std::ffi::{c_char, c_void};
use std::sync::Mutex;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Linker, Val};
use wasmtime_c_api::{wasm_engine_t, wasmtime_component_t, wasmtime_component_val_t};

#[repr(C)]
pub struct Interface {
    name: *const c_char,
    functions: *const *const c_char,
    function_count: usize,
}

/// C's entry point for every host function: (guest, interface, function, args, result, error) -> handled.
pub type HostCall = unsafe extern "C" fn(
    *mut c_void,
    usize,
    usize,
    *const wasmtime_component_val_t,
    usize,
    *mut wasmtime_component_val_t,
    *mut *mut c_char,
) -> bool;

pub struct GuestLinker {
    /// The host interfaces alone.
    base: Linker<GuestData>,
    served: HashSet<String>,
    has_http: bool,
    /// By the set of WASI packages added to the base, one bit a row of WASI_PACKAGES.
    filled: Mutex<HashMap<u32, Linker<GuestData>>>,
}

impl GuestLinker {
    fn packages_of(&self, component: &Component) -> u32 {
        let ty = component.component_type();
        let mut set = 0;
        for (name, _) in ty.imports(component.engine()) {
            for (bit, package) in WASI_PACKAGES.iter().enumerate() {
                if name.starts_with(package.prefix) && (self.has_http || !package.is_http) {
                    set |= 1 << bit;
                }
            }
        }
        set
    }

    fn link(&self, component: &Component) -> wasmtime::Result<InstancePre<GuestData>> {
        let packages = self.packages_of(component);
        let mut filled = self.filled.lock().unwrap_or_else(|e| e.into_inner());
        if !filled.contains_key(&packages) {
            let mut linker = self.base.clone();
            for (bit, package) in WASI_PACKAGES.iter().enumerate() {
                if packages & (1 << bit) != 0 {
                    (package.add)(&mut linker)?;
                }
            }
            filled.insert(packages, linker);
        }
        filled[&packages].instantiate_pre(component)
    }
}

pub struct Linked {
    pub pre: InstancePre<GuestData>,
    pub component: Component,
    exports: Mutex<Vec<((String, String), ComponentExportIndex)>>,
}

pub enum Missing {
    Interface,
    Function,
}

impl Linked {
    /// The index of an exported function; what was found is remembered for the next instance.
    pub fn export(&self, interface: &str, function: &str) -> Result<ComponentExportIndex, Missing> {
        let mut known = self.exports.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((_, index)) = known
            .iter()
            .find(|((i, f), _)| i == interface && f == function)
        {
            return Ok(*index);
        }
        if !exports_exactly(&self.component, interface) {
            return Err(Missing::Interface);
        }
        let instance = self
            .component
            .get_export_index(None, interface)
            .ok_or(Missing::Interface)?;
        let index = self
            .component
            .get_export_index(Some(&instance), function)
            .ok_or(Missing::Function)?;
        known.push(((interface.to_owned(), function.to_owned()), index));
        Ok(index)
    }
}

fn add_host_functions(
    linker: &mut Linker<GuestData>,
    interface_index: usize,
    interface: &Interface,
    call: HostCall,
) -> wasmtime::Result<()> {
    let name = unsafe { text_in(interface.name) };
    let functions = unsafe { slice_in(interface.functions, interface.function_count) };
    let mut root = linker.root();
    let mut instance = root.instance(&name)?;
    for (function_index, function) in functions.iter().enumerate() {
        let function = unsafe { text_in(*function) };
        instance.func_new(&function, move |cx, _ty, args, results| {
            let guest = cx.data().guest;
            drop(cx);
            let args: Vec<_> = args.iter().map(wasmtime_component_val_t::from).collect();
            let mut result = wasmtime_component_val_t::default();
            let mut error: *mut c_char = std::ptr::null_mut();
            let handled = unsafe {
                call(
                    guest,
                    interface_index,
                    function_index,
                    args.as_ptr(),
                    args.len(),
                    &mut result,
                    &mut error,
                )
            };
            if !handled {
                let text = if error.is_null() {
                    "the host refused the call".to_owned()
                } else {
                    let text = unsafe { text_in(error) };
                    unsafe { free(error.cast()) };
                    text
                };
                return Err(wasmtime::Error::msg(text));
            }
            if let Some(slot) = results.first_mut() {
                *slot = Val::from(&result);
            }
            Ok(())
        })?;
    }
    Ok(())
}

unsafe extern "C" {
    fn free(p: *mut c_void);
}

/// The error text C hands back from a host call is its own malloc'ed string, freed above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bridge_linker_new(
    engine: &wasm_engine_t,
    interfaces: *const Interface,
    interface_count: usize,
    has_http: bool,
    call: HostCall,
    error: *mut *mut c_char,
) -> *mut GuestLinker {
    let mut base = Linker::<GuestData>::new(engine_of(engine));
    let mut served = HashSet::new();
    for (index, interface) in unsafe { slice_in(interfaces, interface_count) }
        .iter()
        .enumerate()
    {
        served.insert(unsafe { text_in(interface.name) });
        if let Err(e) = add_host_functions(&mut base, index, interface, call) {
            text_out(error, &format!("{e:#}"));
            return std::ptr::null_mut();
        }
    }
    Box::into_raw(Box::new(GuestLinker {
        base,
        served,
        has_http,
        filled: Mutex::new(HashMap::new()),
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn bridge_linker_free(linker: *mut GuestLinker) {
    if !linker.is_null() {
        drop(unsafe { Box::from_raw(linker) });
    }
}

/// The first murmur import in a version that is not served. Instances of types alone need nothing from the host.
fn unserved(component: &Component, served: &HashSet<String>) -> Option<String> {
    let engine = component.engine();
    let ty = component.component_type();
    for (name, item) in ty.imports(engine) {
        if !name.starts_with("murmur:") || served.contains(name) {
            continue;
        }
        if let ComponentItem::ComponentInstance(instance) = &item.ty {
            let calls = instance
                .exports(engine)
                .any(|(_, e)| matches!(e.ty, ComponentItem::ComponentFunc(_)));
            if !calls {
                continue;
            }
        }
        return Some(name.to_owned());
    }
    None
}

/// Checks every import of the component against the linker. NULL with the import's name in *error otherwise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bridge_link(
    linker: &GuestLinker,
    component: &wasmtime_component_t,
    error: *mut *mut c_char,
) -> *mut Linked {
    let component = component_of(component);
    if let Some(name) = unserved(component, &linker.served) {
        text_out(
            error,
            &format!("it imports \"{name}\", which is not offered to it"),
        );
        return std::ptr::null_mut();
    }
    match linker.link(component) {
        Ok(pre) => Box::into_raw(Box::new(Linked {
            pre,
            component: component.clone(),
            exports: Mutex::new(Vec::new()),
        })),
        Err(e) => {
            text_out(error, &format!("{e:#}"));
            std::ptr::null_mut()
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn bridge_linked_free(linked: *mut Linked) {
    if !linked.is_null() {
        drop(unsafe { Box::from_raw(linked) });
    }
}
