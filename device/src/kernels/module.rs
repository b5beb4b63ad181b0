//! Modules and the entry points about them.
//!
//! A module that needs something of other modules has no program until it is linked. Must never change the program of a
//! module that has one: its kernels refer to it.

use std::ffi::{CString, c_char};
use std::sync::{Arc, OnceLock};

use super::engine::{self, Engine, Program};
use super::input::{self, Input};
use super::{build, build_log::BuildLog, spirv::Info};
use crate::discovery::{context::Context, device::Device};
use crate::ffi;
use crate::ffi::handles::{Handle, object};
use crate::ffi::layout::{ModuleDesc, ModuleProperties};
use crate::ffi::result::{Outcome, ZeResult, call, call_teardown};
use crate::ffi::{Argument, In, Out, Pointer};

/// `ZE_MODULE_PROPERTY_FLAG_IMPORTS`.
const IMPORTS: u32 = 1;

/// The object of a `ze_module_handle_t`.
pub struct Module {
    engine: &'static Engine,
    inputs: Vec<Input>,
    /// The kernels, imports and exports of its inputs.
    pub(crate) info: Info,
    /// The names of its kernels, in the order of the inputs.
    names: Vec<CString>,
    /// Whether it had to be linked with others.
    imports: bool,
    program: OnceLock<Program>,
}

object!(Module);

impl Module {
    /// Its program: `INVALID_MODULE_UNLINKED` if it has none yet.
    pub(crate) fn program(&self) -> Outcome<&Program> {
        self.program.get().ok_or(ZeResult::INVALID_MODULE_UNLINKED)
    }

    pub(crate) fn identity(&self) -> u64 {
        input::identity(&self.inputs)
    }
}

/// `zeModuleCreate` (ze_api.h). `UNSUPPORTED_FEATURE` without an engine.
pub extern "C" fn create(
    context: Handle<Context>,
    device: Handle<Device>,
    desc: In<ModuleDesc>,
    module: Out<Handle<Module>>,
    build_log: Out<Handle<BuildLog>>,
) -> ZeResult {
    call(|| {
        context.get()?;
        device.get()?;
        desc.check()?;
        module.check()?;
        let engine = engine::get().ok_or(ZeResult::UNSUPPORTED_FEATURE)?;
        let inputs = input::read(desc)?;
        let (built, text) = build::build(engine, &inputs);
        BuildLog::give(&text, build_log);
        let (info, program) = built.map_err(|code| code.because(|| format!("a module cannot be built: {text}")))?;
        let names = info.names.iter().filter_map(|name| CString::new(name.as_str()).ok()).collect();
        let imports = program.is_none();
        let program = program.map_or_else(OnceLock::new, OnceLock::from);
        module.write(Handle::register(Arc::new(Module { engine, inputs, info, names, imports, program })))
    })
}

/// `zeModuleDestroy` (ze_api.h). Kernels keep what they need.
pub extern "C" fn destroy(module: Handle<Module>) -> ZeResult {
    call_teardown(|| module.retire().map(drop))
}

/// `zeModuleDynamicLink` (ze_api.h). Every module gets a program of its own, so an exported variable exists once for
/// each module that imports it.
pub extern "C" fn dynamic_link(
    count: Argument<u32>,
    modules: In<Handle<Module>>,
    link_log: Out<Handle<BuildLog>>,
) -> ZeResult {
    call(|| {
        let modules = modules.objects(count)?;
        let mut text = String::new();
        let mut result = Ok(());
        for module in modules.iter().filter(|module| module.program.get().is_none()) {
            let others = modules.iter().filter(|other| !Arc::ptr_eq(other, module));
            let others: Vec<_> = others.flat_map(|other| other.inputs.iter().cloned()).collect();
            let mut inputs = module.inputs.clone();
            inputs.extend(build::needed(&module.inputs, &others));
            let (built, log) = build::build(module.engine, &inputs);
            text.push_str(&log);
            match built.ok().and_then(|(_, program)| program) {
                // Another thread may have linked it meanwhile: one program is as good as the other.
                Some(program) => drop(module.program.set(program)),
                None => result = Err(ZeResult::MODULE_LINK_FAILURE),
            }
        }
        BuildLog::give(&text, link_log);
        result.map_err(|code| code.because(|| format!("modules cannot be linked: {text}")))
    })
}

/// `zeModuleGetNativeBinary` (ze_api.h). The binary consists of the inputs, from which this device can
/// create the module again.
pub extern "C" fn get_native_binary(module: Handle<Module>, size: Out<usize>, binary: Out<u8>) -> ZeResult {
    call(|| binary.copy_bytes(size, &input::save(&module.get()?.inputs)))
}

/// `zeModuleGetKernelNames` (ze_api.h). The names live as long as the module.
pub extern "C" fn get_kernel_names(module: Handle<Module>, count: Out<u32>, names: Out<*const c_char>) -> ZeResult {
    call(|| ffi::enumerate(count, names, &module.get()?.names, |place, name| place.write(name.as_ptr())))
}

/// `zeModuleGetProperties` (ze_api.h).
pub extern "C" fn get_properties(module: Handle<Module>, properties: Out<ModuleProperties>) -> ZeResult {
    call(|| {
        let module = module.get()?;
        properties.edit(|out| out.flags = if module.imports { IMPORTS } else { 0 })
    })
}

/// `zeModuleGetGlobalPointer` (ze_api.h).
pub extern "C" fn get_global_pointer(
    module: Handle<Module>,
    name: In<c_char>,
    size: Out<usize>,
    pointer: Out<Pointer>,
) -> ZeResult {
    call(|| {
        let module = module.get()?;
        let (address, length) = module.program()?.global(&name.text()?).ok_or(ZeResult::INVALID_GLOBAL_NAME)?;
        size.write_optional(length);
        pointer.write_optional(Pointer::to(address));
        Ok(())
    })
}

/// `zeModuleGetFunctionPointer` (ze_api.h).
pub extern "C" fn get_function_pointer(module: Handle<Module>, name: In<c_char>, pointer: Out<Pointer>) -> ZeResult {
    call(|| {
        let module = module.get()?;
        let found = module.program()?.function_address(&name.text()?);
        pointer.write(Pointer::to(found.ok_or(ZeResult::INVALID_FUNCTION_NAME)?))
    })
}
