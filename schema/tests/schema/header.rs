//! What is demanded of arguments is what `ur_api.h` of the newest release lists among a function's results: all of it,
//! or with a reason why not, and nothing else.

use std::{collections::BTreeSet, path::Path, process::Command};

use urscope_schema::api::{Effect, Function, UNIFIED_RUNTIME, unified_runtime::constants};
use urscope_schema::call::Values;

use How::{Adapter, Bits, Left, Rule, Words};

/// The header of the release that the table of functions is made from; it is set up if it is not there yet.
fn header() -> String {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let setup = Command::new(repository.join("scripts/setup")).args(["--runtime", "2026.2.0"]).output();
    let setup = setup.expect("scripts/setup cannot be started");
    assert!(setup.status.success(), "{}", String::from_utf8_lossy(&setup.stderr));
    let file = repository.join("target/runtime/2026.2.0/include/unified-runtime/ur_api.h");
    std::fs::read_to_string(file).expect("the runtime has a header")
}

/// What the header says of a function: its parameters, and its results, each with one condition.
#[derive(Default)]
struct Promise {
    parameters: Vec<String>,
    results: Vec<(String, String)>,
}

fn promise(header: &str, function: &str) -> Promise {
    let start =
        header.find(&format!("UR_APICALL {function}(")).unwrap_or_else(|| panic!("no {function} in the header"));
    let declared = header[start..].split_once('(').unwrap().1.split_once(");").unwrap().0;
    let code: String = declared.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let parameters = code.split(',').map(|one| {
        one.rsplit(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .find(|word| !word.is_empty())
            .unwrap()
            .into()
    });
    let above = &header[..start];
    let comment = &above[above.rfind("@returns").expect("a list of results")..];
    let mut results: Vec<(String, Vec<String>)> = Vec::new();
    for line in comment.lines().map(|line| line.trim_start_matches("///").trim()) {
        match (line.strip_prefix("- "), line.strip_prefix("+ "), results.last_mut()) {
            (Some(result), ..) => {
                let (code, remark) = result.split_once(" - ").unwrap_or((result, ""));
                let remarks = Some(remark.to_owned()).filter(|remark| !remark.is_empty());
                results.push((code.trim_start_matches("::").to_owned(), remarks.into_iter().collect()));
            }
            (_, Some(condition), Some((_, conditions))) => conditions.push(condition.to_owned()),
            (None, None, Some((_, conditions))) if !line.is_empty() && !line.starts_with("UR_APIEXPORT") => {
                if let Some(last) = conditions.last_mut() {
                    *last = format!("{last} {line}");
                }
            }
            _ => {}
        }
    }
    let results = results.into_iter().flat_map(|(code, mut conditions)| {
        if conditions.is_empty() {
            conditions.push(String::new());
        }
        conditions.into_iter().map(move |condition| (code.clone(), condition.replace('`', "").replace("::", "")))
    });
    Promise { parameters: parameters.collect(), results: results.collect() }
}

fn number(code: &str) -> u32 {
    UNIFIED_RUNTIME
        .results
        .iter()
        .find(|known| known.name == code)
        .unwrap_or_else(|| panic!("{code} has no number"))
        .code
}

/// What a call is answered whose arguments with these names are null or zero, and the others are not.
fn without(function: Function, zero: &[&str], values: &Values) -> Option<u32> {
    let nulls = function.nulls_of(|parameter| u64::from(!zero.contains(&parameter)));
    nulls.fault(function, values).map(|fault| fault.answer.0)
}

/// How a line of the header is kept.
enum How {
    /// With these arguments null or zero.
    Words(&'static [&'static str]),
    /// For each bit of a mask, but for those that are left alone.
    Bits(u64),
    /// By a rule, which knows more than the arguments.
    Rule(&'static str),
    /// Only the adapter can know.
    Adapter,
    /// It is not, for this reason.
    Left(&'static str),
}

/// The results that say nothing of the arguments.
const NOT_OF_ARGUMENTS: [&str; 7] = [
    "UR_RESULT_SUCCESS",
    "UR_RESULT_ERROR_UNINITIALIZED",
    "UR_RESULT_ERROR_DEVICE_LOST",
    "UR_RESULT_ERROR_ADAPTER_SPECIFIC",
    "UR_RESULT_ERROR_OUT_OF_RESOURCES",
    "UR_RESULT_ERROR_OUT_OF_HOST_MEMORY",
    "UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY",
];

const NEWER: &str =
    "a newer release has more properties, and every adapter answers an error to one that it does not know";
const QUEUE: &str = "a queue cannot be shared: of what it is asked to do, only the event that it signals is looked at";
const OPTIONAL: &str =
    "the comments of the parameters call it optional, and the adapters take a null for a question about the other one";

/// The conditions that are not simply that a parameter is null, by their first words, and how each is kept.
#[rustfmt::skip]
const CONDITIONS: &[(&str, &str, How)] = &[
    ("UR_RESULT_ERROR_INVALID_CONTEXT", "", Adapter),
    ("UR_RESULT_ERROR_INVALID_DEVICE", "", Adapter),
    ("UR_RESULT_ERROR_INVALID_EVENT", "", Adapter),
    ("UR_RESULT_ERROR_INVALID_MEM_OBJECT", "", Adapter),
    ("UR_RESULT_ERROR_INVALID_NULL_HANDLE", "\"If device handles in phDevices are not valid handles.\"", Adapter),
    ("UR_RESULT_ERROR_INVALID_QUEUE", "", Adapter),
    ("UR_RESULT_ERROR_INVALID_EVENT_WAIT_LIST", "phEventWaitList", Adapter),
    ("UR_RESULT_ERROR_INVALID_EVENT_WAIT_LIST", "If event objects in phEventWaitList", Adapter),
    ("UR_RESULT_ERROR_INVALID_VALUE", "", Adapter),
    ("UR_RESULT_ERROR_INVALID_NULL_HANDLE", "NULL == hQueue", Left(QUEUE)),
    ("UR_RESULT_ERROR_INVALID_ENUMERATION", "NULL != pProperties && UR_QUEUE_FLAGS_MASK", Left(QUEUE)),
    ("UR_RESULT_ERROR_INVALID_QUEUE_PROPERTIES", "pProperties != NULL && pProperties->flags", Left(QUEUE)),
    ("UR_RESULT_ERROR_INVALID_NULL_POINTER", "NULL == phQueue", Left(QUEUE)),
    ("UR_RESULT_ERROR_INVALID_ENUMERATION", "NULL != pProperties && UR_EXP_ASYNC_USM_ALLOC_FLAGS_MASK", Left(QUEUE)),
    ("UR_RESULT_ERROR_UNSUPPORTED_FEATURE", "", Adapter),
    ("UR_RESULT_ERROR_UNSUPPORTED_FEATURE", "If the adapter has no underlying equivalent handle.", Adapter),
    ("UR_RESULT_ERROR_INVALID_ENUMERATION", "NULL != pProperties && UR_EXP_ENQUEUE_EXT_FLAGS_MASK", Left(QUEUE)),
    ("UR_RESULT_ERROR_IN_EVENT_LIST_EXEC_STATUS", "An event in phEventWaitList has", Adapter),
    ("UR_RESULT_ERROR_UNSUPPORTED_ENUMERATION", "If propName is not supported by the adapter.", Adapter),
    ("UR_RESULT_ERROR_UNSUPPORTED_FEATURE", "If any device associated with hContext reports false", Adapter),
    ("UR_RESULT_ERROR_UNSUPPORTED_FEATURE", "A device in hContext does not support event IPC", Adapter),
    ("UR_RESULT_ERROR_UNSUPPORTED_FEATURE", "The device associated with hEvent does not support event IPC", Adapter),
    ("UR_RESULT_ERROR_UNSUPPORTED_FEATURE", "hEvent has profiling or timestamping enabled.", Adapter),
    ("UR_RESULT_ERROR_UNSUPPORTED_FEATURE", "pEventDesc->flags & UR_EXP_EVENT_FLAG_ENABLE_PROFILING and the platform", Adapter),
    ("UR_RESULT_ERROR_INVALID_OPERATION", "If UR_DEVICE_INFO_USM_", Adapter),
    ("UR_RESULT_ERROR_INVALID_VALUE", "If align is greater that the size of the largest data type", Adapter),
    ("UR_RESULT_ERROR_INVALID_USM_SIZE", "size is greater than UR_DEVICE_INFO_MAX_MEM_ALLOC_SIZE", Adapter),
    ("UR_RESULT_ERROR_INVALID_SIZE", "If propSize is less than the real number of bytes", Adapter),
    ("UR_RESULT_ERROR_INVALID_SIZE", "If size is not a multiple of UR_VIRTUAL_MEM_GRANULARITY_INFO_MINIMUM.", Adapter),
    ("UR_RESULT_ERROR_INVALID_VALUE", "ipcMemHandleDataSize is not the same", Adapter),
    ("UR_RESULT_ERROR_INVALID_VALUE", "ipcPhysMemHandleDataSize is not the same", Adapter),
    ("UR_RESULT_ERROR_INVALID_VALUE", "ipcEventHandleDataSize is not the same", Adapter),
    ("UR_RESULT_ERROR_INVALID_ENUMERATION", "UR_DEVICE_INFO_ENQUEUE_HOST_TASK_SUPPORT_EXP < propName", Left(NEWER)),
    ("UR_RESULT_ERROR_INVALID_ENUMERATION", "UR_EVENT_INFO_REFERENCE_COUNT < propName", Left(NEWER)),
    ("UR_RESULT_ERROR_INVALID_ENUMERATION", "UR_PHYSICAL_MEM_INFO_REFERENCE_COUNT < propName", Left(NEWER)),
    ("UR_RESULT_ERROR_INVALID_NULL_POINTER", "NULL == ppIPCMemHandleData", Left(OPTIONAL)),
    ("UR_RESULT_ERROR_INVALID_NULL_POINTER", "NULL == pIPCMemHandleDataSizeRet", Left(OPTIONAL)),
    ("UR_RESULT_ERROR_INVALID_ARGUMENT", "hPhysMem was not created with the UR_PHYSICAL_MEM_FLAG_ENABLE_IPC flag", Rule("export-without-flag")),
    ("UR_RESULT_ERROR_INVALID_EVENT", "hEvent was not created with the UR_EXP_EVENT_FLAG_IPC_EXP flag.", Rule("export-without-flag")),
    ("UR_RESULT_ERROR_INVALID_EVENT", "hEvent was obtained from urIPCOpenEventHandleExp.", Rule("export-of-import")),
    ("UR_RESULT_ERROR_INVALID_SIZE", "propSize == 0 && pPropValue != NULL", Words(&["size"])),
    ("UR_RESULT_ERROR_INVALID_NULL_POINTER", "propSize != 0 && pPropValue == NULL", Words(&["value"])),
    ("UR_RESULT_ERROR_INVALID_NULL_POINTER", "pPropValue == NULL && pPropSizeRet == NULL", Words(&["size", "value", "size_ret"])),
    ("UR_RESULT_ERROR_INVALID_USM_SIZE", "size == 0", Words(&["size"])),
    ("UR_RESULT_ERROR_INVALID_SIZE", "DeviceCount == 0", Words(&["count"])),
    ("UR_RESULT_ERROR_INVALID_VALUE", "numEvents == 0", Words(&["count"])),
    ("UR_RESULT_ERROR_INVALID_VALUE", "pUSMDesc && pUSMDesc->align != 0 && ((pUSMDesc->align & (pUSMDesc->align-1)) != 0)", Adapter),
    ("UR_RESULT_ERROR_INVALID_ENUMERATION", "NULL != pProperties && UR_CONTEXT_FLAGS_MASK & pProperties->flags", Bits(0)),
    ("UR_RESULT_ERROR_INVALID_ENUMERATION", "UR_USM_POOL_FLAGS_MASK & pPoolDesc->flags", Bits(0)),
    ("UR_RESULT_ERROR_INVALID_ENUMERATION", "NULL != pUSMDesc && UR_USM_ADVICE_FLAGS_MASK & pUSMDesc->hints", Bits(0)),
    // The lowest bit has a name in 2026.0 and 2026.1.
    ("UR_RESULT_ERROR_INVALID_ENUMERATION", "NULL != pProperties && UR_PHYSICAL_MEM_FLAGS_MASK & pProperties->flags", Bits(1)),
    ("UR_RESULT_ERROR_INVALID_ENUMERATION", "UR_EXP_EVENT_FLAGS_MASK & pEventDesc->flags", Bits(0)),
    ("UR_RESULT_ERROR_INVALID_ENUMERATION", "UR_VIRTUAL_MEM_ACCESS_FLAGS_MASK & flags", Bits(0)),
];

/// The value of the mask that a condition names.
fn mask(header: &str, condition: &str) -> u64 {
    let name = condition.split(' ').find(|word| word.ends_with("_FLAGS_MASK")).expect("a mask");
    let (_, value) = header.split_once(&format!("#define {name} 0x")).expect("the mask is defined");
    u64::from_str_radix(value.split_whitespace().next().unwrap(), 16).unwrap()
}

fn is_kept(header: &str, function: Function, code: u32, condition: &str, how: &How) {
    let name = function.name();
    match how {
        Words(zero) => assert_eq!(without(function, zero, &Values::NONE), Some(code), "{name}: {condition}"),
        Bits(but) => {
            let mask = mask(header, condition);
            for bit in (0..32).map(|bit| 1_u64 << bit) {
                let values = Values { flags: Some(bit), ..Values::NONE };
                let expected = Some(code).filter(|_| mask & bit != 0 && but & bit == 0);
                assert_eq!(without(function, &[], &values), expected, "{name}: {condition}, {bit:#x}");
            }
        }
        Rule(rule) => {
            let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/rules.md");
            let rules = std::fs::read_to_string(rules).expect("the rules are documented");
            assert!(rules.contains(&format!("`{rule}`")) || rules.contains(rule), "there is no rule {rule}");
        }
        Left(reason) => assert!(!reason.is_empty()),
        Adapter => {}
    }
}

#[test]
fn every_result_of_the_header_is_demanded_or_left_for_a_reason() {
    let header = header();
    let mut used = BTreeSet::new();
    // The newest header has one of them no more.
    let is_there = |function: &Function| *function != Function::urEnqueueKernelLaunch;
    let functions = Function::ALL.iter().copied().filter(|function| function.interface() == &UNIFIED_RUNTIME);
    for function in functions.filter(is_there) {
        let promise = promise(&header, function.name());
        let rows = function.parameters();
        assert_eq!(promise.parameters.len(), rows.len(), "{}", function.name());
        assert!(promise.results.len() > 4, "{} promises hardly anything", function.name());
        // These are hooked for the sake of memory that they access, or of an order. The adapter answers what is missing
        // in them.
        if function.is_command()
            || function.effect().is_never_recorded() && !matches!(function.effect(), Effect::Creates(_))
        {
            let blamed = rows.iter().find(|(parameter, _)| without(function, &[parameter], &Values::NONE).is_some());
            assert_eq!(blamed, None, "{}", function.name());
            continue;
        }
        let mut demanded = BTreeSet::new();
        for (code, condition) in &promise.results {
            if NOT_OF_ARGUMENTS.contains(&code.as_str()) {
                continue;
            }
            let known = CONDITIONS.iter().position(|(of, begins, _)| {
                of == code && condition.starts_with(begins) && begins.is_empty() == condition.is_empty()
            });
            if let Some(known) = known {
                used.insert(known);
                is_kept(&header, function, number(code), condition, &CONDITIONS[known].2);
                continue;
            }
            let parameter = condition.strip_prefix("NULL == ").and_then(|parameter| {
                let place = promise.parameters.iter().position(|known| known == parameter)?;
                Some(rows[place].0)
            });
            let Some(parameter) = parameter else { panic!("{}: {code}: {condition:?}", function.name()) };
            let answer = without(function, &[parameter], &Values::NONE);
            assert_eq!(answer, Some(number(code)), "{}: {condition}", function.name());
            demanded.insert(parameter);
        }
        // A demand that the header does not make would blame a correct program.
        for (parameter, _) in rows {
            let answer = without(function, &[parameter], &Values::NONE);
            let listed = demanded.contains(parameter)
                || CONDITIONS.iter().enumerate().any(|(known, (.., how))| {
                    used.contains(&known) && matches!(how, Words(zero) if zero.contains(parameter))
                });
            assert!(answer.is_none() || listed, "{} is blamed for {parameter}", function.name());
        }
    }
    for (known, (code, condition, _)) in CONDITIONS.iter().enumerate() {
        assert!(used.contains(&known), "the header does not say any more: {code}: {condition}");
    }
}

/// The value of an enumerator or of a `#define` in the header.
fn value(header: &str, name: &str) -> u32 {
    let define = header.split_once(&format!("#define {name} ")).map(|(_, rest)| rest.split('\n').next().unwrap());
    let enumerator = || header.split_once(&format!("\n  {name} = ")).map(|(_, rest)| rest.split(',').next().unwrap());
    let text = define.or_else(enumerator).unwrap_or_else(|| panic!("the header does not define {name}")).trim();
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).unwrap(),
        None => text.parse().unwrap(),
    };
    match text.strip_prefix("UR_BIT(").and_then(|rest| rest.strip_suffix(')')) {
        Some(bit) => 1 << number(bit),
        None => number(text),
    }
}

#[test]
fn every_constant_has_the_value_of_the_header() {
    let header = header();
    for (name, ours) in constants::ALL.iter().copied() {
        assert_eq!(ours, value(&header, name), "{name}");
    }
}

#[test]
fn the_result_codes_are_those_of_the_header() {
    let header = header();
    let (_, body) = header.split_once("typedef enum ur_result_t {").expect("the enumeration of results");
    let body = body.split_once("} ur_result_t;").unwrap().0;
    let names = body.lines().filter_map(|line| line.trim_start().split_once(" = ").map(|(name, _)| name));
    let theirs: BTreeSet<_> = names
        .filter(|name| name.starts_with("UR_RESULT_") && !name.ends_with("_FORCE_UINT32"))
        .map(|name| (value(&header, name), name.split(' ').next().unwrap().to_owned()))
        .collect();
    let ours: BTreeSet<_> = UNIFIED_RUNTIME.results.iter().map(|known| (known.code, known.name.to_owned())).collect();
    assert_eq!(ours, theirs);
}
