//! The names of trace files, in both forms.

use super::Form;

/// The name of a trace file: `urscope-<exe>-<pid>-<start>`, with a number `again` where that name is taken, and the
/// ending of its form.
pub fn file_name(form: Form, executable: &str, pid: u32, start: u64, again: u32) -> String {
    let plain: String = executable
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+') { c } else { '_' })
        .take(64)
        .collect();
    match again {
        0 => format!("urscope-{plain}-{pid}-{start}{}", form.ending()),
        n => format!("urscope-{plain}-{pid}-{start}-{n}{}", form.ending()),
    }
}

/// What follows the name of a trace file until its header is written.
pub const UNFINISHED: &str = ".unfinished";

/// The name of a trace file instead of `name`, which somebody else has taken. It has the same writer.
pub fn other_name(name: &str, number: u32) -> Option<String> {
    let (stem, form) = Form::split(name)?;
    Some(format!("{stem}-{number}{}", form.ending()))
}

/// The number and start of the process that wrote the trace file of this name, or `None` for the name of another file.
pub fn writer_of(name: &str) -> Option<(u32, u64)> {
    // The executable's name has no hyphen in a file name.
    let mut parts = Form::split(name)?.0.strip_prefix("urscope-")?.split('-').skip(1);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_leads_to_its_writer() {
        assert_eq!(writer_of(&file_name(Form::Chrome, "a-b c", 7, 99, 0)), Some((7, 99)));
        assert_eq!(writer_of(&file_name(Form::Binary, "a", 7, 99, 3)), Some((7, 99)));
        assert_eq!(other_name("urscope-a-7-99.fxt", 2).as_deref(), Some("urscope-a-7-99-2.fxt"));
        assert_eq!(writer_of(&other_name("urscope-a-7-99-3.json", 2).unwrap()), Some((7, 99)));
        for other in ["urscope-a-7.json", "urscope-a-7-99.jsonl", "a-7-99.json", "urscope-a-x-99.json"] {
            assert_eq!(writer_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_file_name_holds_no_path_and_never_repeats() {
        assert_eq!(file_name(Form::Chrome, "../my app", 7, 99, 0), "urscope-.._my_app-7-99.json");
        assert_eq!(file_name(Form::Binary, "python3.11", 7, 99, 2), "urscope-python3.11-7-99-2.fxt");
    }
}
