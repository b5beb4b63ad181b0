//! The JSON schema of a report, and descriptions of the types in it that other crates define.
//!
//! The crates that define entry points and severities are loaded into every traced program. They must not depend on the
//! crate that generates JSON schemas.

#![allow(dead_code, reason = "only the macro that generates the schema reads these types")]

use schemars::{JsonSchema, generate::SchemaSettings};

use super::Judgement;

/// The schema of a report in JSON (draft 2020-12), the text of `docs/report.schema.json`.
pub fn report_schema() -> String {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Judgement>();
    schema.insert("title".into(), "urscope report, version 1".into());
    format!("{:#}\n", schema.as_value())
}

/// The severity of a finding: worth knowing, resources are lost, or the specification forbids it.
#[derive(JsonSchema)]
#[schemars(rename = "Severity", rename_all = "lowercase")]
pub(crate) enum SeverityForm {
    Note,
    Warning,
    Error,
}

/// An entry point at which urscope tried to intercept calls, and the result.
#[derive(JsonSchema)]
#[schemars(rename = "EntryPoint")]
pub(crate) struct EntryPointForm {
    /// `adapter-table`, `exported-symbol`, `inline`, `xpti`, `level-zero-driver`, `cuda-driver` or `unseen-adapter`.
    kind: String,
    /// The number that call records carry as `via`.
    via: u64,
    /// The file name of the library behind it.
    library: String,
    /// The directory that the library was loaded from.
    directory: String,
    /// The SYCL runtimes and Unified Runtime loaders in the process, with their paths.
    runtime: Vec<String>,
    /// The number of slots that were intercepted.
    slots: u32,
    /// The number of slots in the IPC table: 4 before 2026.2, 11 since.
    ipc_slots: u32,
    /// The functions behind the slots.
    functions: Vec<String>,
    /// Why some or all slots could not be intercepted; empty on success.
    problem: String,
}

#[cfg(test)]
mod tests {
    use urscope_rules::Severity;
    use urscope_schema::trace::records::EntryPoint;

    use super::*;

    /// The names of the fields in a schema.
    fn fields(schema: &schemars::Schema) -> Vec<&str> {
        schema.get("properties").unwrap().as_object().unwrap().keys().map(String::as_str).collect()
    }

    #[test]
    fn the_schemas_match_the_types_they_describe() {
        let entry_point = serde_json::to_value(EntryPoint::default()).unwrap();
        let form = schemars::schema_for!(EntryPointForm);
        let mut known = fields(&form);
        let mut own: Vec<_> = entry_point.as_object().unwrap().keys().map(String::as_str).collect();
        known.sort_unstable();
        own.sort_unstable();
        assert_eq!(known, own);
        let severities = schemars::schema_for!(SeverityForm);
        let severities = severities.as_value().to_string();
        for severity in Severity::ALL {
            assert!(severities.contains(&format!("\"{severity}\"")), "{severities}");
        }
    }
}
