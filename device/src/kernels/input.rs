//! The inputs of a module: SPIR-V, build flags and specialisation constants.
//!
//! A native binary of this device consists of these inputs, because the engine's own binaries depend on
//! the processor and the release. The bytes may be hostile: must never panic.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::{ffi::c_char, sync::Arc};

use super::spirv::{self, Info};
use crate::ffi::layout::{ModuleConstants, ModuleDesc, ModuleProgramDesc};
use crate::ffi::result::{Outcome, ZeResult};
use crate::ffi::{Argument, In};

/// `ZE_MODULE_FORMAT_IL_SPIRV` and `ZE_MODULE_FORMAT_NATIVE`.
const SPIRV: u32 = 0;
const NATIVE: u32 = 1;
/// The first bytes of a native binary of this device.
const MAGIC: &[u8; 8] = b"ze_soft\x01";

/// A SPIR-V module with its build flags and constants.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Input {
    pub code: Arc<[u8]>,
    /// Build flags of Level Zero.
    pub flags: String,
    /// Specialisation constants: number and value.
    pub constants: Vec<(u32, Box<[u8]>)>,
}

/// The inputs of a module: `INVALID_NULL_POINTER`, `INVALID_SIZE`, `INVALID_ENUMERATION`, `INVALID_NATIVE_BINARY`, or
/// `MODULE_BUILD_FAILURE` for what is no SPIR-V.
pub(crate) fn read(desc: In<ModuleDesc>) -> Outcome<Vec<Input>> {
    let given = desc.read()?;
    if given.format > NATIVE {
        return Err(ZeResult::INVALID_ENUMERATION);
    }
    let Some(program) = desc.next_of::<ModuleProgramDesc>() else {
        let code = desc.member(|desc| desc.input)?;
        let constants = desc.member(|desc| desc.constants)?;
        return one(given.format, code, desc.number(|desc| desc.input_size)?, desc.member(flags)?, constants);
    };
    let count = program.number(|program| program.count)?;
    let codes = program.member(|program| program.inputs)?;
    codes.check()?;
    let codes = codes.optional_pointers(count)?;
    let sizes = program.member(|program| program.input_sizes)?.sizes(count)?;
    let flags = program.member(|program| program.build_flags)?.optional_pointers(count)?;
    let constants = program.member(|program| program.constants)?.optional_pointers(count)?;
    let mut inputs = Vec::new();
    for (((code, size), flags), constants) in codes.into_iter().zip(sizes).zip(flags).zip(constants) {
        inputs.extend(one(given.format, code, size, flags, constants)?);
    }
    if inputs.is_empty() { Err(ZeResult::INVALID_SIZE) } else { Ok(inputs) }
}

fn flags(desc: &ModuleDesc) -> *const c_char {
    desc.build_flags
}

fn one(
    format: u32,
    code: In<u8>,
    size: Argument<usize>,
    flags: In<c_char>,
    constants: In<ModuleConstants>,
) -> Outcome<Vec<Input>> {
    code.check()?;
    if size.value() == 0 {
        return Err(ZeResult::INVALID_SIZE);
    }
    let code = code.array(size)?;
    if format != SPIRV {
        return load(&code).ok_or_else(|| {
            let reason = "a native binary that this device has not made: compile the program for SPIR-V (spir64)";
            ZeResult::INVALID_NATIVE_BINARY.because(|| reason)
        });
    }
    let info = spirv::read(&code).ok_or(ZeResult::MODULE_BUILD_FAILURE)?;
    let flags = if flags.is_null() { String::new() } else { flags.text()? };
    Ok(vec![Input { code: code.into(), flags, constants: read_constants(constants, &info)? }])
}

/// The constants that the module has. Others are ignored.
fn read_constants(given: In<ModuleConstants>, info: &Info) -> Outcome<Vec<(u32, Box<[u8]>)>> {
    let mut read = Vec::new();
    if given.is_null() {
        return Ok(read);
    }
    let count = given.number(|given| given.count)?;
    let numbers = given.member(|given| given.ids)?.array(count)?;
    let values = given.member(|given| given.values)?.optional_pointers(count)?;
    for (number, value) in numbers.into_iter().zip(values) {
        if let Some(size) = info.constants.get(&number) {
            read.push((number, super::launch::constant(value, *size)?));
        }
    }
    Ok(read)
}

/// A hash of these inputs, equal in every process.
pub(crate) fn identity(inputs: &[Input]) -> u64 {
    let mut hasher = DefaultHasher::new();
    inputs.hash(&mut hasher);
    hasher.finish()
}

/// A native binary of these inputs.
pub(crate) fn save(inputs: &[Input]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let mut put = |bytes: &[u8]| {
        out.extend((bytes.len() as u64).to_le_bytes());
        out.extend(bytes);
    };
    for input in inputs {
        put(&input.code);
        put(input.flags.as_bytes());
        put(&(input.constants.len() as u64).to_le_bytes());
        for (number, value) in &input.constants {
            put(&number.to_le_bytes());
            put(value);
        }
    }
    out
}

/// The inputs in a native binary. `None` for other bytes.
pub(crate) fn load(bytes: &[u8]) -> Option<Vec<Input>> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let mut inputs = Vec::new();
    while !rest.is_empty() {
        let code: Arc<[u8]> = take(&mut rest)?.into();
        spirv::read(&code)?;
        let flags = String::from_utf8(take(&mut rest)?.to_vec()).ok()?;
        let count = u64::from_le_bytes(take(&mut rest)?.try_into().ok()?);
        let mut constants = Vec::new();
        // However large the count is, reading ends with the bytes.
        for _ in 0..count {
            let number = u32::from_le_bytes(take(&mut rest)?.try_into().ok()?);
            constants.push((number, take(&mut rest)?.into()));
        }
        inputs.push(Input { code, flags, constants });
    }
    (!inputs.is_empty()).then_some(inputs)
}

/// The native binary of a module that `zeModuleCreate` would make of these bytes, which are SPIR-V or such a binary.
/// `None` if they are neither. This shows what the device reads without an engine.
pub fn native_binary_of(bytes: &[u8]) -> Option<Vec<u8>> {
    if let Some(inputs) = load(bytes) {
        return Some(save(&inputs));
    }
    spirv::read(bytes)?;
    Some(save(&[Input { code: bytes.into(), flags: String::new(), constants: Vec::new() }]))
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk()?;
    let (found, after) = after.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    *rest = after;
    Some(found)
}
