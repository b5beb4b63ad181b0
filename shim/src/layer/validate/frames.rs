//! A call stack as text, for one line on stderr.
//!
//! It uses symbol tables only; the analyzer finds source lines afterwards. It reads files and allocates memory, so it
//! is used for findings only, and without a lock.

use std::path::Path;

use urscope_schema::trace::records::{PythonFrame, is_of_runtime};

use crate::raw::symbols::{demangle::demangle, elf, modules};
use crate::stacks::{self, Frames};

/// The most frames that are shown.
const FRAME_LIMIT: usize = 6;

/// The length in bytes above which a name is shortened, and the most characters of a name.
const LONG_NAME: usize = 60;
const NAME_LIMIT: usize = 120;

/// The program's frames of a stack, innermost first: `put (app+0x1234) ← main (app+0x5678)`. Frames of the runtime
/// are shown only if there are no others. The offsets are for `addr2line -e`.
pub(super) fn describe(stack: u64) -> Option<String> {
    let frames = of_stack(stacks::frames(stack)?);
    // The frames outside of `main` are not the program's.
    let last = frames.iter().position(|frame| frame.function.as_deref() == Some("main"));
    let frames = frames.get(..last.map_or(frames.len(), |last| last + 1)).unwrap_or(&frames);
    let own = |frame: &&Frame| frame.is_of_program();
    let runtime_only = !frames.iter().any(|frame| own(&frame));
    let described: Vec<String> =
        frames.iter().filter(|frame| runtime_only || own(frame)).take(FRAME_LIMIT).map(Frame::describe).collect();
    if described.is_empty() { None } else { Some(described.join(" ← ")) }
}

/// The frames of a stack. Frames of Python replace the interpreter's function that runs them.
fn of_stack(stack: Frames) -> Vec<Frame> {
    let mut python = stack.python.into_iter().peekable();
    let mut frames = Vec::new();
    for (at, address) in stack.addresses.into_iter().enumerate() {
        let before = frames.len();
        while let Some(frame) = python.next_if(|frame| frame.at as usize == at) {
            frames.push(Frame::of_python(frame));
        }
        if frames.len() == before {
            frames.push(Frame::from_address(address as u64));
        }
    }
    frames.extend(python.map(Frame::of_python));
    frames
}

/// An address of a stack, or a frame of Python.
struct Frame {
    function: Option<String>,
    /// The path of the program or library, or of a source of Python; empty for an address in neither.
    module: String,
    /// Its position in the module: `+OFFSET`, `:LINE`, or nothing for an instruction of Python without a line.
    location: String,
}

impl Frame {
    fn from_address(address: u64) -> Self {
        // The return address may be the first of the next function.
        let inside = address.saturating_sub(1);
        let Some(module) = modules::describe(inside as usize) else {
            return Self { function: None, module: String::new(), location: format!("{address:#x}") };
        };
        let offset = inside.wrapping_sub(module.bias.0);
        let function = elf::function(Path::new(&module.path), offset).map(|name| demangle(&name));
        Self { function, module: module.path, location: format!("+{offset:#x}") }
    }

    fn of_python(frame: PythonFrame) -> Self {
        let location = frame.line.map_or_else(String::new, |line| format!(":{line}"));
        Self { function: Some(frame.function), module: frame.file, location }
    }

    /// Also true for templates of the C++ library in the program, which may contain inlined code of the program.
    fn is_of_program(&self) -> bool {
        !is_of_runtime(&self.module)
    }

    fn describe(&self) -> String {
        let place = format!("{}{}", self.module.rsplit('/').next().unwrap_or_default(), self.location);
        let text = match &self.function {
            Some(function) => format!("{} ({place})", short(function)),
            None => place,
        };
        text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
    }
}

/// A name without its parameters and template arguments, if it is long.
fn short(name: &str) -> String {
    let mut bare = String::new();
    let mut depth = 0_usize;
    for letter in name.chars() {
        match letter {
            '(' if depth == 0 && !bare.is_empty() => {
                bare.push_str("(…)");
                break;
            }
            '<' => {
                depth += 1;
                if depth == 1 {
                    bare.push_str("<…>");
                }
            }
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => bare.push(letter),
            _ => {}
        }
    }
    let described = if name.len() > LONG_NAME { bare.as_str() } else { name };
    if described.chars().count() > NAME_LIMIT {
        described.chars().take(NAME_LIMIT).chain(['…']).collect()
    } else {
        described.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, module: &str) -> Frame {
        Frame { function: Some(function.into()), module: module.into(), location: "+0x12".into() }
    }

    #[test]
    fn a_frame_is_described_as_far_as_it_is_known() {
        assert_eq!(frame("main", "/bin/app").describe(), "main (app+0x12)");
        let unnamed = Frame { function: None, module: "/bin/a\npp".into(), location: "+0x1".into() };
        assert_eq!(unnamed.describe(), "a?pp+0x1");
        assert_eq!(Frame::from_address(1).describe(), "0x1", "in no library");
        let here = Frame::from_address(short as *const () as u64 + 1);
        assert!(here.describe().contains("short"), "{}", here.describe());
    }

    #[test]
    fn frames_of_python_stand_for_the_function_that_runs_them() {
        let python = |at, function: &str, line| PythonFrame {
            at,
            function: function.into(),
            file: "/home/me/app.py".into(),
            line,
            ..PythonFrame::default()
        };
        let frames = of_stack(Frames {
            addresses: vec![1, 2, 3],
            python: vec![python(1, "inner", Some(7)), python(1, "outer", None), python(3, "beyond", Some(9))],
        });
        let described: Vec<String> = frames.iter().map(Frame::describe).collect();
        assert_eq!(described, ["0x1", "inner (app.py:7)", "outer (app.py)", "0x3", "beyond (app.py:9)"]);
    }

    #[test]
    fn a_long_name_is_cut() {
        let long = format!("app::put({})", "int, ".repeat(20));
        assert_eq!(short(&long), "app::put(…)");
        let template =
            "std::_Function_handler<void (app::Peer&), void (*)(app::Peer&)>::_M_invoke(std::_Any_data const&)";
        assert_eq!(short(template), "std::_Function_handler<…>::_M_invoke(…)");
        assert_eq!(short("app::put(int)"), "app::put(int)");
        assert_eq!(short(&"ü".repeat(500)).chars().count(), NAME_LIMIT + 1);
    }

    #[test]
    fn the_runtime_is_distinguished_from_the_program() {
        assert!(frame("app::put(int)", "/bin/app").is_of_program());
        assert!(!frame("urIPCPutMemHandleExp", "/lib/libur_loader.so.0").is_of_program());
    }
}
