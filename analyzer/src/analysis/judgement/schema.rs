//! The forms of what a report takes over from other crates, for its schema, and the schema.
//!
//! The crates that know what a door and a severity is are loaded into every program; what describes JSON must stay out of
//! them.

#![allow(dead_code, reason = "these types are read by the macro that makes the schema, and by nobody else")]

use schemars::{JsonSchema, generate::SchemaSettings};

use super::Judgement;

/// The schema of a report in JSON (draft 2020-12), the text of `docs/report.schema.json`.
pub fn report_schema() -> String {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Judgement>();
    schema.insert("title".into(), "A report of urscope, version 1".into());
    format!("{:#}\n", schema.as_value())
}

/// How bad a finding is: worth knowing, resources are lost, or the specification forbids it.
#[derive(JsonSchema)]
#[schemars(rename = "Severity", rename_all = "lowercase")]
pub(crate) enum SeverityForm {
    Note,
    Warning,
    Error,
}

/// A way into a process that was tried, and what came of it.
#[derive(JsonSchema)]
#[schemars(rename = "Door")]
pub(crate) struct DoorForm {
    /// `adapter-table` or `exported-symbol`.
    door: String,
    /// The number that call records carry as `via`.
    via: u64,
    /// The library behind it, its file name.
    library: String,
    /// The directory it was loaded from.
    directory: String,
    /// The SYCL runtimes and Unified Runtime loaders in the process, with their paths.
    runtime: Vec<String>,
    /// How many slots were taken.
    slots: u32,
    /// How many slots the IPC table has: 4 before 2026.2, 11 since.
    ipc_slots: u32,
    /// The functions behind the slots.
    functions: Vec<String>,
    /// Why nothing, or less than all, was taken; empty when all went well.
    problem: String,
}

#[cfg(test)]
mod tests {
    use urscope_rules::Severity;
    use urscope_schema::trace::records::EntryPoint;

    use super::*;

    /// The names of the fields that a form has.
    fn fields(schema: &schemars::Schema) -> Vec<&str> {
        schema.get("properties").unwrap().as_object().unwrap().keys().map(String::as_str).collect()
    }

    #[test]
    fn the_forms_are_those_of_what_they_stand_for() {
        let door = serde_json::to_value(EntryPoint::default()).unwrap();
        let form = schemars::schema_for!(DoorForm);
        let mut known = fields(&form);
        let mut own: Vec<_> = door.as_object().unwrap().keys().map(String::as_str).collect();
        known.sort_unstable();
        own.sort_unstable();
        assert_eq!(known, own);
        let grades = schemars::schema_for!(SeverityForm);
        let grades = grades.as_value().to_string();
        for severity in Severity::ALL {
            assert!(grades.contains(&format!("\"{severity}\"")), "{grades}");
        }
    }
}
