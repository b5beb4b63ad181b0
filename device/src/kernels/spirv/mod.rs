//! Reads a SPIR-V module: its kernels with their parameters, specialisation constants, imports and exports.
//!
//! OpenCL does not report how large an argument is, and `zeCommandListAppendLaunchKernelWithArguments` passes no sizes.
//! The engine checks and compiles the module; this only reads. The bytes may be hostile: must never panic, and never do
//! more work than a constant amount for each word.

mod layout;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::{borrow::Cow, ops::RangeInclusive, sync::Arc};

pub(crate) use layout::Parameter;
use layout::{Type, Types};

/// The first word of every module.
const MAGIC: u32 = 0x0723_0203;
/// Words before the first instruction.
const HEADER: usize = 5;

/// The instructions that are read, and the numbers in them (SPIR-V specification, section 3).
mod op {
    pub(super) const SOURCE: u32 = 3;
    pub(super) const EXTENSION: u32 = 10;
    pub(super) const EXT_INST_IMPORT: u32 = 11;
    pub(super) const ENTRY_POINT: u32 = 15;
    pub(super) const EXECUTION_MODE: u32 = 16;
    pub(super) const CAPABILITY: u32 = 17;
    pub(super) const TYPE_VOID: u32 = 19;
    pub(super) const TYPE_BOOL: u32 = 20;
    pub(super) const TYPE_INT: u32 = 21;
    pub(super) const TYPE_FLOAT: u32 = 22;
    pub(super) const TYPE_VECTOR: u32 = 23;
    pub(super) const TYPE_IMAGE: u32 = 25;
    pub(super) const TYPE_SAMPLED_IMAGE: u32 = 27;
    pub(super) const TYPE_ARRAY: u32 = 28;
    pub(super) const TYPE_STRUCT: u32 = 30;
    pub(super) const TYPE_OPAQUE: u32 = 31;
    pub(super) const TYPE_POINTER: u32 = 32;
    pub(super) const TYPE_PIPE: u32 = 38;
    pub(super) const CONSTANT: u32 = 43;
    pub(super) const SPEC_CONSTANT_TRUE: u32 = 48;
    pub(super) const SPEC_CONSTANT: u32 = 50;
    pub(super) const FUNCTION: u32 = 54;
    pub(super) const FUNCTION_PARAMETER: u32 = 55;
    pub(super) const VARIABLE: u32 = 59;
    pub(super) const DECORATE: u32 = 71;
    pub(super) const CONTROL_BARRIER: u32 = 224;
    pub(super) const ATOMIC_LOAD: u32 = 227;
    pub(super) const ATOMIC_XOR: u32 = 242;
    pub(super) const GROUP_ASYNC_COPY: u32 = 259;
    pub(super) const GROUP_SMAX: u32 = 271;
    pub(super) const EXECUTION_MODE_ID: u32 = 331;
    pub(super) const TYPE_UNTYPED_POINTER: u32 = 4417;
}

/// `ExecutionModel`, `ExecutionMode` and `Decoration`.
const KERNEL: u32 = 6;
/// `SourceLanguage`.
const OPENCL_C: u32 = 3;
const MODE_LOCAL_SIZE: u32 = 17;
const MODE_LOCAL_SIZE_HINT: u32 = 18;
const MODE_SUBGROUP_SIZE: u32 = 35;
const MODE_SUBGROUPS_PER_GROUP: u32 = 36;
const MODE_LOCAL_SIZE_ID: u32 = 38;
const MODE_LARGEST_GROUP: u32 = 5893;
const SPEC_ID: u32 = 1;
const PACKED: u32 = 10;
const BUILT_IN: u32 = 11;
const PARAMETER_ATTRIBUTE: u32 = 38;
const LINKAGE: u32 = 41;
/// `FunctionParameterAttribute`: `NoWrite` and `NoReadWrite`.
const NO_WRITES: [u32; 2] = [6, 7];
const IMPORT: u32 = 1;

/// `StorageClass`: local memory.
const WORKGROUP: u32 = 4;
/// The built-ins that do not depend on groups (`BuiltIn`), and the names by which modules import them.
const GROUP_INDEPENDENT_BUILT_INS: [(u32, &str); 5] = [
    (28, "__spirv_BuiltInGlobalInvocationId"),
    (30, "__spirv_BuiltInWorkDim"),
    (31, "__spirv_BuiltInGlobalSize"),
    (33, "__spirv_BuiltInGlobalOffset"),
    (34, "__spirv_BuiltInGlobalLinearId"),
];
/// The capabilities that add no instruction for groups except those that [`Reader::grouped`] knows
/// (`Capability`): Matrix, Addresses, Linkage, Kernel, Vector16, Float16Buffer, Float16, Float64,
/// Int64, Int16, GenericPointer and Int8.
const GROUP_INDEPENDENT_CAPABILITIES: [u32; 12] = [0, 4, 5, 6, 7, 8, 9, 10, 11, 22, 38, 39];

/// SPV_INTEL_kernel_attributes: its name, its capabilities, and its modes, the largest group first.
const ATTRIBUTES: &[u8] = b"SPV_INTEL_kernel_attributes";
const ATTRIBUTE_CAPABILITIES: [u32; 2] = [5892, 5897];
const ATTRIBUTE_MODES: RangeInclusive<u32> = MODE_LARGEST_GROUP..=5896;

/// Prefixes of the extensions and instruction sets that an OpenCL compiler may know.
const EXTENSIONS: [&str; 3] = ["SPV_KHR_", "SPV_EXT_", "SPV_INTEL_"];
const INSTRUCTION_SETS: [&str; 3] = ["OpenCL.std", "OpenCL.DebugInfo.", "NonSemantic."];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelInfo {
    /// How it takes its arguments.
    pub parameters: Arc<[Parameter]>,
    /// For each of them, whether it is a pointer through which it certainly does not write.
    pub unwritten: Arc<[bool]>,
    /// The group size that it requires; zeros for any.
    pub group: [u32; 3],
    /// The sub-group size that it requires; 0 for any.
    pub sub_group: u32,
    /// The number of sub-groups of a group that it requires; 0 for any.
    pub sub_groups: u32,
    /// The largest number of work items in a group that it allows; 0 for any.
    pub largest: u32,
    /// The group size that its source suggests; zeros for none.
    pub group_hint: [u32; 3],
    /// It runs the same however its work items are grouped: it does not ask for groups, require a size of
    /// them, or share anything in them, and no item can wait for another one.
    pub ungrouped: bool,
}

impl KernelInfo {
    /// The attributes of its source, as OpenCL C writes them, with a space between them.
    pub(crate) fn attributes(&self) -> String {
        let sized = |name: &str, [x, y, z]: [u32; 3]| ([x, y, z] != [0; 3]).then(|| format!("{name}({x},{y},{z})"));
        let sub_group = (self.sub_group != 0).then(|| format!("intel_reqd_sub_group_size({})", self.sub_group));
        let all =
            [sized("reqd_work_group_size", self.group), sized("work_group_size_hint", self.group_hint), sub_group];
        all.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// A module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Info {
    pub kernels: HashMap<String, KernelInfo>,
    /// The names of its kernels, in its order.
    pub names: Vec<String>,
    /// The sizes of its specialisation constants in bytes, by number.
    pub constants: BTreeMap<u32, usize>,
    /// The names that it imports, including built-in functions and variables of the engine.
    pub imports: BTreeSet<String>,
    pub exports: BTreeSet<String>,
    /// The version of OpenCL C that its source is in, as 200000 for 2.0; 0 for another language.
    pub opencl: u32,
    /// An extension or a set of instructions that no compiler for OpenCL knows.
    pub unknown: Option<String>,
}

/// What is collected while the instructions are read.
#[derive(Default)]
struct Reader {
    info: Info,
    types: Types,
    /// Entry points: their functions and names.
    entries: Vec<(u32, String)>,
    /// Types and ids of the parameters of each function, in order.
    functions: HashMap<u32, Vec<[u32; 2]>>,
    /// The function that is being read.
    current: u32,
    /// Modes of entry points: the function, the mode, and its numbers or the ids of its numbers.
    modes: Vec<(u32, u32, [u32; 3])>,
    /// Whole numbers.
    numbers: HashMap<u32, u64>,
    packed: HashSet<u32>,
    /// Parameters that are pointers through which nothing is written.
    unwritten: HashSet<u32>,
    /// Whether something in the module may depend on how work items are grouped.
    grouped: bool,
    /// Numbers of specialisation constants, by id.
    constants: HashMap<u32, u32>,
}

/// Reads a module, or returns `None` if the bytes are not one. What cannot be understood is left out.
pub(crate) fn read(bytes: &[u8]) -> Option<Info> {
    let (words, rest) = bytes.as_chunks::<4>();
    let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    if words.first() != Some(&MAGIC) || !rest.is_empty() {
        return None;
    }
    let mut reader = Reader::default();
    let mut left = words.get(HEADER..)?;
    while let Some(first) = left.first() {
        let (instruction, after) = left.split_at_checked((first >> 16) as usize)?;
        // Without a word, reading would never end.
        let (first, operands) = instruction.split_first()?;
        // One that is too short is left to the engine, which refuses the module.
        let _ = reader.instruction(first & 0xffff, operands);
        left = after;
    }
    Some(reader.finish())
}

/// The module without attributes of its kernels (SPV_INTEL_kernel_attributes): compilers write them for the SYCL
/// property `max_work_group_size`, and the engine refuses modules that have some. They limit how a kernel is launched
/// and do not change what it does; the device keeps to the largest group itself. Other bytes are returned unchanged.
pub(crate) fn without_attributes(code: &[u8]) -> Cow<'_, [u8]> {
    attributes_removed(code).map_or(Cow::Borrowed(code), Cow::Owned)
}

/// `None` if there are none, or the bytes cannot be read.
fn attributes_removed(code: &[u8]) -> Option<Vec<u8>> {
    let (header, mut left) = code.split_at_checked(HEADER * 4)?;
    let mut kept = header.to_vec();
    while let Some(first) = left.first_chunk() {
        let first = u32::from_le_bytes(*first);
        let (instruction, after) = left.split_at_checked((first >> 16) as usize * 4)?;
        let operands = instruction.get(4..)?.as_chunks().0;
        let number = |index: usize| operands.get(index).map(|word| u32::from_le_bytes(*word));
        let drop = match first & 0xffff {
            op::CAPABILITY => number(0).is_some_and(|capability| ATTRIBUTE_CAPABILITIES.contains(&capability)),
            op::EXTENSION => {
                operands.as_flattened().strip_prefix(ATTRIBUTES).is_some_and(|rest| rest.first() == Some(&0))
            }
            op::EXECUTION_MODE => number(1).is_some_and(|mode| ATTRIBUTE_MODES.contains(&mode)),
            _ => false,
        };
        if !drop {
            kept.extend(instruction);
        }
        left = after;
    }
    (left.is_empty() && kept.len() < code.len()).then_some(kept)
}

impl Reader {
    fn instruction(&mut self, code: u32, operands: &[u32]) -> Option<()> {
        self.grouped |= Self::grouped(code, operands);
        match (code, operands) {
            (op::SOURCE, [OPENCL_C, version, ..]) => self.info.opencl = *version,
            (op::EXTENSION, name) => self.require(&text(name).0, &EXTENSIONS),
            (op::EXT_INST_IMPORT, [_, name @ ..]) => self.require(&text(name).0, &INSTRUCTION_SETS),
            (op::ENTRY_POINT, [KERNEL, function, name @ ..]) => self.entries.push((*function, text(name).0)),
            (op::EXECUTION_MODE | op::EXECUTION_MODE_ID, [function, mode, numbers @ ..]) => {
                let number = |index: usize| numbers.get(index).copied().unwrap_or_default();
                self.modes.push((*function, *mode, [number(0), number(1), number(2)]));
            }
            (op::DECORATE, [id, decoration, rest @ ..]) => self.decoration(*id, *decoration, rest)?,
            (op::CONSTANT | op::SPEC_CONSTANT_TRUE..=op::SPEC_CONSTANT, [kind, id, value @ ..]) => {
                let high = value.get(1).copied().unwrap_or_default();
                let number = u64::from(high) << 32 | u64::from(value.first().copied().unwrap_or_default());
                self.numbers.insert(*id, number);
                if let Some(constant) = self.constants.get(id) {
                    self.info.constants.insert(*constant, self.types.size(*kind)?);
                }
            }
            (op::FUNCTION, [_, id, ..]) => {
                self.current = *id;
                self.functions.insert(*id, Vec::new());
            }
            (op::FUNCTION_PARAMETER, [kind, id]) => self.functions.get_mut(&self.current)?.push([*kind, *id]),
            _ => self.types.add(*operands.first()?, self.kind(code, operands)?),
        }
        Some(())
    }

    /// Whether an instruction may depend on how work items are grouped, or let one wait for another one.
    fn grouped(code: u32, operands: &[u32]) -> bool {
        match (code, operands) {
            (op::CAPABILITY, [capability, ..]) => !GROUP_INDEPENDENT_CAPABILITIES.contains(capability),
            (op::DECORATE, [_, BUILT_IN, built_in, ..]) => {
                GROUP_INDEPENDENT_BUILT_INS.iter().all(|(number, _)| number != built_in)
            }
            (op::TYPE_POINTER | op::TYPE_UNTYPED_POINTER, [_, storage, ..]) | (op::VARIABLE, [_, _, storage, ..]) => {
                *storage == WORKGROUP
            }
            (op::CONTROL_BARRIER | op::ATOMIC_LOAD..=op::ATOMIC_XOR | op::GROUP_ASYNC_COPY..=op::GROUP_SMAX, _) => true,
            _ => false,
        }
    }

    fn require(&mut self, name: &str, known: &[&str]) {
        if !known.iter().any(|known| name.starts_with(known)) {
            self.info.unknown = Some(name.to_owned());
        }
    }

    /// The type that an instruction declares.
    fn kind(&self, code: u32, operands: &[u32]) -> Option<Type> {
        Some(match (code, operands) {
            (op::TYPE_BOOL, _) => Types::scalar(8),
            (op::TYPE_INT | op::TYPE_FLOAT, [_, bits, ..]) => Types::scalar((*bits).min(64)),
            (op::TYPE_VECTOR, [_, of, count]) => self.types.vector(*of, *count),
            (op::TYPE_ARRAY, [_, of, count]) => self.types.array(*of, self.numbers.get(count).copied()),
            (op::TYPE_STRUCT, [id, members @ ..]) => self.types.structure(members, self.packed.contains(id)),
            (op::TYPE_POINTER, [_, storage, of]) => Type::Pointer(*storage, Some(*of)),
            (op::TYPE_UNTYPED_POINTER, [_, storage]) => Type::Pointer(*storage, None),
            (op::TYPE_VOID | op::TYPE_IMAGE..=op::TYPE_SAMPLED_IMAGE | op::TYPE_OPAQUE..=op::TYPE_PIPE, _) => {
                Type::Opaque
            }
            _ => return None,
        })
    }

    fn decoration(&mut self, id: u32, decoration: u32, rest: &[u32]) -> Option<()> {
        match decoration {
            SPEC_ID => drop(self.constants.insert(id, *rest.first()?)),
            PACKED => drop(self.packed.insert(id)),
            PARAMETER_ATTRIBUTE if NO_WRITES.contains(rest.first()?) => drop(self.unwritten.insert(id)),
            LINKAGE => {
                let (name, words) = text(rest);
                let names = match rest.get(words) {
                    Some(&IMPORT) => &mut self.info.imports,
                    _ => &mut self.info.exports,
                };
                names.insert(name);
            }
            _ => {}
        }
        Some(())
    }

    fn finish(self) -> Info {
        let Self { mut info, types, entries, functions, modes, numbers, unwritten, grouped, .. } = self;
        // An import may depend on anything.
        let grouped = grouped
            || info.imports.iter().any(|import| GROUP_INDEPENDENT_BUILT_INS.iter().all(|(_, name)| name != import));
        let mut requirements: HashMap<u32, KernelInfo> = HashMap::new();
        for (function, mode, values) in modes {
            let kernel = requirements.entry(function).or_default();
            let [first, ..] = values;
            match mode {
                MODE_LOCAL_SIZE => kernel.group = values,
                MODE_LOCAL_SIZE_HINT => kernel.group_hint = values,
                MODE_LOCAL_SIZE_ID => {
                    kernel.group = values.map(|id| numbers.get(&id).copied().unwrap_or_default() as u32);
                }
                MODE_SUBGROUP_SIZE => kernel.sub_group = first,
                MODE_SUBGROUPS_PER_GROUP => kernel.sub_groups = first,
                MODE_LARGEST_GROUP => {
                    kernel.largest = values.iter().fold(1, |items, size| items.saturating_mul((*size).max(1)));
                }
                _ => {}
            }
        }
        for (function, parameters) in functions {
            // Once for each function, however many names it has.
            let kernel = requirements.entry(function).or_default();
            kernel.parameters = parameters.iter().map(|[kind, _]| types.parameter(*kind)).collect();
            kernel.unwritten =
                parameters.iter().map(|[kind, id]| unwritten.contains(id) || types.is_constant(*kind)).collect();
        }
        for (function, name) in entries {
            let mut kernel = requirements.get(&function).cloned().unwrap_or_default();
            let of_any_size = kernel.group == [0; 3] && [kernel.sub_group, kernel.sub_groups, kernel.largest] == [0; 3];
            kernel.ungrouped = of_any_size && !grouped;
            if info.kernels.insert(name.clone(), kernel).is_none() {
                info.names.push(name);
            }
        }
        info
    }
}

/// A string at the start of these words, and how many words it takes.
fn text(words: &[u32]) -> (String, usize) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take_while(|byte| *byte != 0).collect();
    (String::from_utf8_lossy(&bytes).into_owned(), bytes.len() / 4 + 1)
}

#[cfg(test)]
#[allow(dead_code, reason = "the tests here use a part of it")]
#[path = "../../../tests/kernels/spirv.rs"]
mod assembler;

#[cfg(test)]
mod tests;
