//! The rows of Level Zero are what `ze_api.h` and `ze_ddi.h` declare. The headers are those of the loader that the
//! tests use (1.8.12, with the API 1.4); what is newer is compared with the table of the software device, which has the
//! whole API 1.17.

use std::{fs, path::Path, process::Command};

use urscope_schema::api::{Function, LEVEL_ZERO, Table, level_zero::constants};

fn repository() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn header(name: &str) -> String {
    let setup = Command::new(repository().join("scripts/setup")).arg("--loader").output();
    let setup = setup.expect("scripts/setup cannot be started");
    assert!(setup.status.success(), "{}", String::from_utf8_lossy(&setup.stderr));
    fs::read_to_string(repository().join("target/loader").join(name)).expect("the loader comes with its headers")
}

fn rows() -> impl Iterator<Item = Function> {
    Function::ALL.iter().copied().filter(|function| function.interface() == &LEVEL_ZERO)
}

/// How many parameters the header declares for a function; `None` if it has no such function.
fn parameters(header: &str, function: &str) -> Option<usize> {
    let (_, declared) = header.split_once(&format!("\n{function}("))?;
    let declared = declared.split_once(");").unwrap().0;
    let code: Vec<_> = declared.lines().map(|line| line.split("///").next().unwrap()).collect();
    Some(code.concat().split(',').count())
}

/// The members of a DDI table in the header.
fn members(header: &str, structure: &str) -> Vec<String> {
    let end = header.find(&format!("}} {structure};")).unwrap_or_else(|| panic!("no {structure} in the header"));
    let body = &header[header[..end].rfind('{').unwrap()..end];
    let member =
        |line: &str| line.split_once(" pfn").or_else(|| line.rsplit_once("pfn")).map(|(_, name)| name.to_owned());
    body.lines().filter_map(member).map(|name| name.trim_end_matches(';').trim().to_owned()).collect()
}

#[test]
fn rows_have_the_parameters_and_slots_of_the_header() {
    let api = header("ze_api.h");
    let ddi = header("ze_ddi.h");
    let mut compared = 0;
    for function in rows() {
        let Some(count) = parameters(&api, function.name()) else { continue };
        assert_eq!(function.parameters().len(), count, "{}", function.name());
        let (table, slot) = function.slot();
        let name = format!("{table:?}").replace("Ze", "ze");
        let snake: String =
            name.chars().map(|c| if c.is_uppercase() { format!("_{}", c.to_lowercase()) } else { c.into() }).collect();
        if matches!(table, Table::ZeMemExp | Table::ZeEventExp | Table::ZeExtension) {
            continue;
        }
        let structure = format!("{snake}_dditable_t");
        let members = members(&ddi, &structure);
        assert_eq!(Some(members[slot].as_str()), function.name().strip_prefix(&name), "{members:?}");
        // The API 1.4, of before the put.
        assert_eq!(members.len(), table.slots(4), "{structure}");
        compared += 1;
    }
    assert!(compared > 20, "{compared}");
}

/// The functions of the API 1.17 in the order of the device's table: each table's getter, and its functions with the
/// minor version that added them.
fn device_table() -> Vec<(String, Vec<(u32, String)>)> {
    let text = fs::read_to_string(repository().join("device/src/table.rs")).unwrap();
    let blocks = text.split('}').filter_map(|part| part.rsplit_once('{'));
    let tables = blocks.filter_map(|(before, rows)| {
        let rows = rows.split(';').filter_map(|row| {
            let mut words = row.split_whitespace();
            Some((words.next()?.parse().ok()?, words.next()?.to_owned()))
        });
        Some((before.split_whitespace().last()?.to_owned(), rows.collect()))
    });
    tables.collect()
}

#[test]
fn rows_have_the_slots_of_the_newest_api() {
    let tables = device_table();
    for function in rows().filter(|function| function.slot().0 != Table::ZeExtension) {
        let (table, slot) = function.slot();
        let (_, functions) = tables.iter().find(|(getter, _)| getter == table.getter()).unwrap();
        assert_eq!(functions[slot].1, function.name());
        for minor in 0..=17 {
            let filled = functions.iter().filter(|(since, _)| *since <= minor).count();
            assert_eq!(table.slots(minor), filled, "{table:?} of version 1.{minor}");
        }
    }
}

/// Those that the header has not got are of a newer API.
#[test]
fn constants_are_those_of_the_header() {
    let api = header("ze_api.h");
    let value = |name: &str| {
        let (_, behind) = api.split_once(&format!(" {name} = ")).unwrap_or_else(|| panic!("no {name}"));
        let number = behind.split([',', ' ']).next().unwrap();
        match number.strip_prefix("ZE_BIT(").map(|bit| bit.trim_end_matches(')')) {
            Some(bit) => 1 << bit.parse::<u32>().unwrap(),
            None => u64::from_str_radix(number.trim_start_matches("0x"), 16).unwrap(),
        }
    };
    assert_eq!(value("ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC"), constants::EXTERNAL_MEMORY_EXPORT_DESC);
    assert_eq!(value("ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD"), constants::EXTERNAL_MEMORY_IMPORT_FD);
    assert_eq!(value("ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD"), constants::EXTERNAL_MEMORY_EXPORT_FD);
    assert_eq!(value("ZE_EVENT_POOL_FLAG_IPC"), constants::EVENT_POOL_FLAG_IPC);
}

/// What shares something and has no row, and why.
const WITHOUT_A_ROW: [(&str, &str); 1] = [("zeDriverGetIpcProperties", "it asks for what can be shared")];

#[test]
fn every_sharing_function_of_the_newest_api_has_a_row_or_a_reason() {
    let all = device_table().into_iter().flat_map(|(_, functions)| functions).map(|(_, name)| name);
    let sharing: Vec<_> = all.filter(|name| name.starts_with("ze") && name.contains("Ipc")).collect();
    assert!(sharing.len() > 10, "{sharing:?}");
    for name in &sharing {
        let has_row = rows().any(|function| function.name() == name);
        let reason = WITHOUT_A_ROW.iter().find(|(without, _)| without == name);
        assert!(has_row != reason.is_some(), "{name}");
    }
    for (name, reason) in WITHOUT_A_ROW {
        assert!(sharing.iter().any(|sharing| sharing == name) && !reason.is_empty(), "{name}");
    }
}
