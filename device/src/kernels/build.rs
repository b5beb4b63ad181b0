//! Programs of modules, built by the engine from their inputs.
//!
//! The engine's binaries are cached in this process, so that equal inputs are not compiled again; every module still
//! has a program, and so variables, of its own. Must never cache more than [`CACHE_LIMIT`] bytes.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;

use super::engine::{Engine, Program};
use super::input::Input;
use super::spirv::{self, Info};
use crate::ffi::result::{Outcome, ZeResult};
use crate::platform::log;

/// The limit of the cache, in bytes of inputs and binaries. Above it, all entries are dropped.
const CACHE_LIMIT: usize = 64 << 20;

/// Binaries and their build logs, by inputs.
#[derive(Default)]
struct BinaryCache {
    binaries: HashMap<Vec<Input>, (Arc<[u8]>, String)>,
    bytes: usize,
}

static CACHE: LazyLock<Mutex<BinaryCache>> = LazyLock::new(Mutex::default);

/// Builds a program of inputs. Returns what they contain, the program, if it need not be linked with other modules
/// first, and the build log.
pub(crate) fn build(engine: &'static Engine, inputs: &[Input]) -> (Outcome<(Info, Option<Program>)>, String) {
    let Some(info) = info(inputs) else {
        return (Err(ZeResult::MODULE_BUILD_FAILURE), "the input is no SPIR-V".to_owned());
    };
    // The engine ends the process when it does not know an extension.
    if let Some(name) = &info.unknown {
        return (Err(ZeResult::MODULE_BUILD_FAILURE), format!("the input needs {name}, which is unknown"));
    }
    if let Some((binary, log)) = cached(inputs)
        && let Ok(program) = Program::from_binary(engine, &binary)
    {
        return (Ok((info, Some(program))), log);
    }
    let mut log = String::new();
    let made = match inputs {
        [input] => build_one(engine, input, info.opencl, &mut log),
        _ => link(engine, inputs, info.opencl, &mut log),
    };
    match made {
        Some(program) => {
            if let Some(binary) = program.binary() {
                cache(inputs, binary, &log);
            }
            (Ok((info, Some(program))), log)
        }
        None if waits_for_others(engine, inputs, &info) => (Ok((info, None)), log),
        None => (Err(ZeResult::MODULE_BUILD_FAILURE), log),
    }
}

/// Whether inputs that cannot be built only lack other modules. The imports do not show it: they
/// include built-in functions and variables of the engine.
fn waits_for_others(engine: &'static Engine, inputs: &[Input], info: &Info) -> bool {
    let compiles = |input: &Input| {
        let program = create(engine, input, &mut String::new());
        program.is_some_and(|program| program.compile(&options(&input.flags, info.opencl)).is_ok())
    };
    !info.imports.is_empty() && inputs.iter().all(compiles)
}

/// The kernels, imports and exports of all inputs. `None` if one is no SPIR-V.
fn info(inputs: &[Input]) -> Option<Info> {
    let mut whole = Info::default();
    for input in inputs {
        let one = spirv::read(&input.code)?;
        whole.kernels.extend(one.kernels);
        whole.names.extend(one.names);
        whole.constants.extend(one.constants);
        whole.imports.extend(one.imports);
        whole.exports.extend(one.exports);
        whole.opencl = whole.opencl.max(one.opencl);
        whole.unknown = whole.unknown.or(one.unknown);
    }
    let Info { imports, exports, .. } = &mut whole;
    imports.retain(|name| !exports.contains(name));
    Some(whole)
}

/// The inputs of other modules that `inputs` needs, directly or indirectly.
pub(crate) fn needed(inputs: &[Input], others: &[Input]) -> Vec<Input> {
    let read = |input: &Input| spirv::read(&input.code).unwrap_or_default();
    let mut wanted: BTreeSet<String> = inputs.iter().flat_map(|input| read(input).imports).collect();
    let mut left: Vec<_> = others.iter().map(|input| (input, read(input))).collect();
    let mut found = Vec::new();
    while let Some(at) = left.iter().position(|(_, info)| !info.exports.is_disjoint(&wanted)) {
        let (input, info) = left.swap_remove(at);
        wanted.extend(info.imports);
        found.push(input.clone());
    }
    found
}

fn build_one(engine: &'static Engine, input: &Input, opencl: u32, log: &mut String) -> Option<Program> {
    let program = create(engine, input, log)?;
    let built = program.build(&options(&input.flags, opencl));
    add(log, &program.log());
    described(log, "build", built).then_some(program)
}

fn link(engine: &'static Engine, inputs: &[Input], opencl: u32, log: &mut String) -> Option<Program> {
    let mut parts = Vec::new();
    for input in inputs {
        let part = create(engine, input, log)?;
        let compiled = part.compile(&options(&input.flags, opencl));
        add(log, &part.log());
        if !described(log, "compile", compiled) {
            return None;
        }
        parts.push(part);
    }
    let (program, linked) = Program::linked(engine, &parts);
    if let Some(program) = &program {
        add(log, &program.log());
    }
    program.filter(|_| described(log, "link", linked))
}

fn create(engine: &'static Engine, input: &Input, log: &mut String) -> Option<Program> {
    let program = Program::from_spirv(engine, &spirv::without_attributes(&input.code));
    let program = program.inspect_err(|code| add(log, &format!("the engine refuses the input: OpenCL error {code}")));
    let program = program.ok()?;
    for (number, value) in &input.constants {
        if let Err(code) = program.set_constant(*number, value) {
            let bytes = value.len();
            add(log, &format!("specialisation constant {number} with {bytes} bytes: OpenCL error {code}"));
        }
    }
    Some(program)
}

/// Whether a step succeeded. If not, the log says which and why.
fn described(log: &mut String, step: &str, result: Result<(), i32>) -> bool {
    if let Err(code) = result {
        add(log, &format!("{step}: OpenCL error {code}"));
    }
    result.is_ok()
}

fn add(log: &mut String, line: &str) {
    if !line.is_empty() {
        log.push_str(line);
        log.push('\n');
    }
}

fn cached(inputs: &[Input]) -> Option<(Arc<[u8]>, String)> {
    CACHE.lock().binaries.get(inputs).cloned()
}

fn cache(inputs: &[Input], binary: Vec<u8>, log: &str) {
    let bytes = binary.len() + inputs.iter().map(|input| input.code.len()).sum::<usize>();
    if bytes > CACHE_LIMIT {
        return;
    }
    let mut cache = CACHE.lock();
    if cache.bytes + bytes > CACHE_LIMIT {
        *cache = BinaryCache::default();
    }
    if cache.binaries.insert(inputs.to_vec(), (binary.into(), log.to_owned())).is_none() {
        cache.bytes += bytes;
    }
}

/// The options for the engine, from build flags of Level Zero and the version of OpenCL C that the
/// source is in. Flags that it does not know are left out. Without the version it compiles as for 1.2,
/// which has no atomic operations through generic pointers.
fn options(flags: &str, opencl: u32) -> String {
    let mut options = Vec::new();
    match opencl {
        0..200_000 => {}
        200_000..300_000 => options.push("-cl-std=CL2.0"),
        _ => options.push("-cl-std=CL3.0"),
    }
    let mut flags = flags.split_ascii_whitespace();
    while let Some(flag) = flags.next() {
        match flag {
            "-ze-opt-disable" | "-O0" | "-ze-opt-level=0" => options.push("-cl-opt-disable"),
            "-ze-opt-level" => {
                if flags.next() == Some("0") {
                    options.push("-cl-opt-disable");
                }
            }
            "-g"
            | "-cl-opt-disable"
            | "-cl-mad-enable"
            | "-cl-no-signed-zeros"
            | "-cl-denorms-are-zero"
            | "-cl-finite-math-only"
            | "-cl-fast-relaxed-math"
            | "-cl-single-precision-constant"
            | "-cl-unsafe-math-optimizations"
            | "-cl-fp32-correctly-rounded-divide-sqrt" => options.push(flag),
            other => log::note(&format!("the build flag {other} has no effect")),
        }
    }
    options.dedup();
    options.join(" ")
}

#[cfg(test)]
mod tests {
    use super::options;

    #[test]
    fn flags_of_level_zero_become_options_of_opencl() {
        assert_eq!(options("-ze-opt-disable -g", 0), "-cl-opt-disable -g");
        assert_eq!(options("-ze-opt-level 0", 102_000), "-cl-opt-disable");
        assert_eq!(options("-ze-opt-level 2 -cl-mad-enable", 200_000), "-cl-std=CL2.0 -cl-mad-enable");
        assert_eq!(options("-ze-opt-level=2 -vc-codegen -ze-opt-large-register-file", 300_000), "-cl-std=CL3.0");
    }
}
