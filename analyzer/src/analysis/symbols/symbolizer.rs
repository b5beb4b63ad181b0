//! Converts the addresses of a call stack to names, using the files that ran, identified by their build ids.
//!
//! Only the stacks that a report shows are looked up. If a file is missing or has another build id, the frame has no
//! names, only its module and offset.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::{cell::Cell, collections::HashMap, fmt::Write as _, ops::Range};

use addr2line::{
    Loader,
    gimli::{ReaderOffset as _, UnitOffset},
};
use object::{CompressionFormat, Object as _, ObjectSection as _, ReadCache, ReadRef};
use urscope_schema::trace::records::{Module, PythonFrame, Stack, is_of_runtime};

use super::{bodies::Bodies, frames::KERNEL_STUB};
use crate::{analysis::Frame, files};

/// The directory of separate debug files, by build id.
const DEBUG_FILES: &str = "/usr/lib/debug/.build-id";

/// Looks up names, and caches the files that it has loaded.
pub(crate) struct Symbolizer {
    /// Directories with copies of the files, for traces of another machine.
    directories: Vec<PathBuf>,
    loaders: HashMap<(String, String), Option<Loaded>>,
}

/// A file with its names, and its functions if it is of a program.
struct Loaded {
    names: Loader,
    bodies: Option<Bodies>,
}

impl Symbolizer {
    /// Searches the paths in the traces, and `directories`.
    pub(crate) fn new(directories: &[PathBuf]) -> Self {
        Self { directories: directories.to_vec(), loaders: HashMap::new() }
    }

    /// The frames of a stack, innermost first; an inlined function comes before the function that it was inlined into.
    /// Frames of Python replace that of the interpreter's function that ran them.
    pub(crate) fn stack(&mut self, modules: &[Module], stack: Stack) -> Vec<Frame> {
        self.frames_in(modules, stack, |_| true)
    }

    /// Those of the frames that are in no library of the runtime, of which none is loaded.
    pub(crate) fn outside_of_runtime(&mut self, modules: &[Module], stack: Stack) -> Vec<Frame> {
        let mut frames = self.frames_in(modules, stack, |module| !is_of_runtime(&module.path));
        frames.retain(|frame| !is_of_runtime(&frame.module));
        frames
    }

    fn frames_in(&mut self, modules: &[Module], stack: Stack, wanted: impl Fn(&Module) -> bool) -> Vec<Frame> {
        let mut python = stack.python.into_iter().peekable();
        let mut frames = Vec::new();
        for (at, address) in stack.frames.iter().enumerate() {
            let before = frames.len();
            while let Some(frame) = python.next_if(|frame| frame.at as usize == at) {
                frames.push(of_python(frame));
            }
            if frames.len() == before {
                let module = modules.iter().find(|module| (module.start.0..module.end.0).contains(&address.0));
                if module.is_none_or(&wanted) {
                    frames.extend(self.frames_of(module, address.0));
                }
            }
        }
        frames.extend(python.map(of_python));
        name_kernel_stubs(&mut frames);
        frames
    }

    fn frames_of(&mut self, module: Option<&Module>, address: u64) -> Vec<Frame> {
        let Some(module) = module else {
            return vec![Frame { offset: format!("{address:#x}"), ..Frame::default() }];
        };
        // A return address is after the call, perhaps on the next line.
        let place = address.saturating_sub(1).wrapping_sub(module.bias.0);
        let bare = Frame { module: module.path.clone(), offset: format!("{place:#x}"), ..Frame::default() };
        let Some(Loaded { names, bodies }) = self.loaded(module) else { return vec![bare] };
        let mut named = Vec::new();
        if let Ok(mut frames) = names.find_frames(place) {
            while let Ok(Some(frame)) = frames.next() {
                let function = frame.function.as_ref().and_then(|function| function.demangle().ok());
                let location = frame.location.as_ref();
                let line = location.and_then(|location| location.line);
                let body = bodies
                    .as_mut()
                    .zip(frame.dw_die_offset)
                    .and_then(|(bodies, at)| bodies.find(place, UnitOffset(at.0.into_u64() as usize)));
                let within = body.zip(line).and_then(|(body, line)| line.checked_sub(body.first));
                named.push(Frame {
                    function: function.map(std::borrow::Cow::into_owned),
                    file: location.and_then(|location| location.file).map(str::to_owned),
                    line,
                    column: location.and_then(|location| location.column).filter(|column| *column > 0),
                    within: within.map(u64::from),
                    rest: within.and(body.zip(line)).map(|(body, line)| body.last.saturating_sub(line)),
                    ..bare.clone()
                });
            }
        }
        named.retain(|frame| frame.function.is_some() || frame.line.is_some());
        let symbol = names.find_symbol_info(place);
        let function =
            || symbol.as_ref().map(|symbol| addr2line::demangle_auto(symbol.name().into(), None).into_owned());
        match named.last_mut() {
            None => named.push(Frame {
                function: function(),
                within: symbol.as_ref().and_then(|symbol| place.checked_sub(symbol.address())),
                ..bare
            }),
            // Where a compiler writes lines and nothing else, it names only functions that it has inlined.
            Some(outermost) if outermost.function.is_none() => outermost.function = function(),
            // The debug information of a lambda does not say of which function it is.
            Some(outermost) if outermost.function.as_deref() == Some(LAMBDA) => {
                outermost.function = function().or_else(|| outermost.function.take());
            }
            Some(_) => {}
        }
        name_lambdas(&mut named);
        named
    }

    fn loaded(&mut self, module: &Module) -> Option<&mut Loaded> {
        let key = (module.path.clone(), module.build_id.clone());
        let directories = &self.directories;
        self.loaders.entry(key).or_insert_with(|| open(module, directories)).as_mut()
    }
}

fn of_python(PythonFrame { function, file, line, first, last, .. }: PythonFrame) -> Frame {
    let within = line.zip(first).and_then(|(line, first)| line.checked_sub(first));
    let rest = line.zip(last).and_then(|(line, last)| last.checked_sub(line));
    let module = file.clone();
    let function = Some(function);
    let file = Some(file);
    let within = within.map(u64::from);
    Frame { module, function, file, line, within, rest, ..Frame::default() }
}

/// The name of a lambda.
const LAMBDA: &str = "operator()";

/// Adds to the name of an inlined C++ lambda, which is the same for all of them, the function that it was inlined into.
fn name_lambdas(frames: &mut [Frame]) {
    for index in (1..frames.len()).rev() {
        let [inlined, outer] = frames.get_mut(index - 1..=index).unwrap_or_default() else { return };
        if inlined.function.as_deref() == Some(LAMBDA)
            && let Some(outer) = &outer.function
        {
            inlined.function = Some(format!("{LAMBDA} in {outer}"));
        }
    }
}

/// Names the function that a launch of a kernel calls, which has the name and the line of the kernel, as part of the
/// launch.
fn name_kernel_stubs(frames: &mut [Frame]) {
    for index in (1..frames.len()).rev() {
        let [inner, outer] = frames.get_mut(index - 1..=index).unwrap_or_default() else { return };
        if inner.function.as_deref().is_some_and(|name| name.starts_with(KERNEL_STUB))
            && let Some(kernel) = &outer.function
        {
            outer.function = Some(format!("{KERNEL_STUB} of {kernel}"));
        }
    }
}

fn open(module: &Module, directories: &[PathBuf]) -> Option<Loaded> {
    let _span = tracing::info_span!("symbolizing", module = module.path).entered();
    let path = Path::new(&module.path);
    let copies = directories.iter().filter_map(|directory| Some(directory.join(path.file_name()?)));
    let by_id = module.build_id.split_at_checked(2).filter(|(_, rest)| !rest.is_empty());
    let by_id = by_id.filter(|_| !is_of_c_library(path));
    let debug = by_id.map(|(first, rest)| Path::new(DEBUG_FILES).join(first).join(format!("{rest}.debug")));
    let mut candidates = debug.into_iter().chain(copies).chain([path.to_owned()]);
    let file = candidates.find(|file| is_build(file, &module.build_id))?;
    // The loader reads the package of split debug information, too, if there is one.
    let package = file.with_extension(match file.extension() {
        Some(extension) => format!("{}.dwp", extension.display()),
        None => "dwp".to_owned(),
    });
    let is_readable = !package.exists() || with_object(&package, |_| ()).is_some();
    let names = if is_readable { Loader::new(&file).ok() } else { None }?;
    let bodies = if is_of_runtime(&module.path) { None } else { Bodies::open(&file) };
    Some(Loaded { names, bodies })
}

/// Whether a file is the C library or its loader. Their symbols name their frames. To decompress their debug
/// information takes as long as all else in a report of one finding, and nobody looks at their lines.
fn is_of_c_library(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("libc.so.") || name.starts_with("ld-linux")
}

/// Whether a file is the build that ran. A file without a build id matches a module without one.
fn is_build(file: &Path, build_id: &str) -> bool {
    let id = with_object(file, |object| hexadecimal(object.build_id().ok().flatten().unwrap_or_default()));
    id.as_deref() == Some(build_id)
}

/// The most memory that the compressed debug information of a file may take, in bytes. A file of a few megabytes can
/// declare any size.
const LARGEST: u64 = 1 << 30;

/// The most that the table of lines may have of it: in memory, a byte of it becomes up to 25.
const LARGEST_LINES: u64 = 64 << 20;

/// The most bytes that are read of the headers of a file and its build id.
const HEADERS: u64 = 64 << 20;

/// Looks at a file; `None` if it cannot be read, or if its debug information is too large.
///
/// A trace can name any path as a library. Only regular files with a size are opened: others, like most files of
/// `/proc`, could be endless or block the reader.
fn with_object<T>(file: &Path, look: impl FnOnce(&object::File<'_, Headers<'_>>) -> T) -> Option<T> {
    // Libraries are often installed with links of somebody else, and nothing of a file is shown but names.
    let file = fs::canonicalize(file).and_then(|file| files::open(&file));
    let file = file.ok().filter(|file| file.metadata().is_ok_and(|data| data.len() > 0))?;
    let cache = ReadCache::new(file);
    let left = Cell::new(HEADERS);
    let object = object::File::parse(Headers { cache: &cache, left: &left }).ok()?;
    let mut size = 0_u64;
    for section in object.sections() {
        let Ok(range) = section.compressed_file_range() else { continue };
        if range.format == CompressionFormat::None {
            continue;
        }
        size = size.saturating_add(range.uncompressed_size);
        let is_of_lines = section.name().is_ok_and(|name| name.ends_with("debug_line"));
        if size > LARGEST || is_of_lines && range.uncompressed_size > LARGEST_LINES {
            return None;
        }
    }
    Some(look(&object))
}

/// A file of which only its headers and build id are read: a sparse file can declare any size for them.
#[derive(Clone, Copy)]
struct Headers<'a> {
    cache: &'a ReadCache<File>,
    /// How many bytes may be read yet.
    left: &'a Cell<u64>,
}

impl Headers<'_> {
    fn take(self, size: u64) -> Result<(), ()> {
        self.left.set(self.left.get().checked_sub(size).ok_or(())?);
        Ok(())
    }
}

impl<'a> ReadRef<'a> for Headers<'a> {
    fn len(self) -> Result<u64, ()> {
        self.cache.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        self.take(size)?;
        self.cache.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        self.cache.read_bytes_at_until(range, delimiter)
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use object::ObjectSymbol as _;
    use urscope_schema::trace::records::Hex;

    use super::*;

    /// This test program, as a trace would describe it, and the offset of a function in it.
    fn this_program() -> (Module, u64) {
        let path = std::env::current_exe().unwrap();
        let bytes = fs::read(&path).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        let id = object.build_id().unwrap().unwrap_or_default();
        let build_id = hexadecimal(id);
        let symbol =
            object.symbols().find(|symbol| symbol.name().is_ok_and(|name| name.contains("this_program"))).unwrap();
        let bias = Hex(0x5000_0000);
        let path = path.to_str().unwrap().to_owned();
        (Module { bias, start: bias, end: Hex(bias.0 + (1 << 32)), path, build_id }, symbol.address() + 4)
    }

    fn at(address: Hex) -> Stack {
        Stack { stack: 1, frames: vec![address], python: Vec::new() }
    }

    #[test]
    fn an_address_has_its_function_and_line() {
        let (module, offset) = this_program();
        let address = Hex(module.bias.0 + offset + 1);
        let frames = Symbolizer::new(&[]).stack(&[module], at(address));
        let frame = frames.last().unwrap();
        assert!(frame.function.as_ref().unwrap().contains("this_program"), "{frames:?}");
        assert!(frame.file.as_ref().unwrap().ends_with("symbolizer.rs") && frame.line > Some(0), "{frames:?}");
    }

    #[test]
    fn frames_of_python_stand_where_the_interpreter_ran_them() {
        let python = |at, function: &str, line| PythonFrame {
            at,
            function: function.into(),
            file: "/home/me/app.py".into(),
            line,
            ..PythonFrame::default()
        };
        let python = vec![python(1, "inner", Some(7)), python(1, "outer", None), python(3, "beyond", Some(9))];
        let frames = vec![Hex(0x11), Hex(0x22), Hex(0x33)];
        let lines: Vec<String> =
            Symbolizer::new(&[]).stack(&[], Stack { stack: 1, frames, python }).iter().map(Frame::line).collect();
        let beyond = "beyond (/home/me/app.py:9)";
        assert_eq!(lines, ["0x11 ()", "inner (/home/me/app.py:7)", "outer (/home/me/app.py)", "0x33 ()", beyond]);
    }

    #[test]
    fn an_inlined_lambda_is_named_after_its_surroundings() {
        let frame = |name: &str| Frame { function: Some(name.to_owned()), ..Frame::default() };
        let mut frames = ["operator()", "operator()", "work", "main()::{lambda()#1}::operator()"].map(frame);
        name_lambdas(&mut frames);
        let names = frames.each_ref().map(|frame| frame.function.as_deref().unwrap_or_default());
        let expected = "operator() in operator() in work, operator() in work, work, main()::{lambda()#1}::operator()";
        assert_eq!(names.join(", "), expected);
        name_lambdas(&mut []);
    }

    /// As nvcc compiles `scale<<<1, 32>>>(p)`, with the static runtime.
    #[test]
    fn a_launch_of_a_kernel_is_at_the_line_of_the_program() {
        let frame = |name: &str, file: Option<&str>| Frame {
            function: Some(name.to_owned()),
            file: file.map(str::to_owned),
            line: file.map(|_| 7),
            module: "/home/me/app".into(),
            ..Frame::default()
        };
        let header = Some("/usr/local/cuda/targets/x86_64-linux/include/crt/device_functions.h");
        let mut frames = [
            frame("libcudart_static_4d8b33a106dceb3c07a56e26de61f2d53bb62a68", None),
            frame("cudaLaunchKernel", None),
            frame("__cudaLaunchKernel_helper", header),
            frame("__device_stub__Z5scalePf(float*)", Some("/tmp/tmpxft_1/app.cudafe1.stub.c")),
            frame("scale(float*)", Some("/home/me/app.cu")),
            frame("step(float*)", Some("/home/me/app.cu")),
        ];
        name_kernel_stubs(&mut frames);
        assert_eq!(frames[4].function.as_deref(), Some("__device_stub_ of scale(float*)"));
        let of_program = frames.iter().filter(|frame| frame.is_of_program()).map(Frame::brief);
        assert_eq!(of_program.collect::<Vec<_>>(), ["step, app.cu:7"]);
        assert!(frame("cudaScale", Some("/home/me/app.cu")).is_of_program(), "it has a line");
    }

    #[test]
    fn a_file_of_another_build_is_not_used() {
        let (mut module, offset) = this_program();
        module.build_id = "00ff".into();
        let frames = Symbolizer::new(&[]).stack(&[module.clone()], at(Hex(module.bias.0 + offset + 1)));
        let [frame] = &frames[..] else { panic!("{frames:?}") };
        assert_eq!((frame.function.as_ref(), frame.line), (None, None));
        assert_eq!(frame.offset, format!("{offset:#x}"));
    }

    #[test]
    fn a_copy_in_a_given_directory_replaces_a_missing_file() {
        let (mut module, offset) = this_program();
        let directory = tempfile::tempdir().unwrap();
        fs::copy(&module.path, directory.path().join("program")).unwrap();
        module.path = "/gone/program".into();
        let directories = [directory.path().to_owned()];
        let frames = Symbolizer::new(&directories).stack(&[module.clone()], at(Hex(module.bias.0 + offset + 1)));
        assert!(frames.iter().any(|frame| frame.function.is_some()), "{frames:?}");
    }

    #[test]
    fn an_endless_or_blocking_file_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let start = Hex(0);
        let end = Hex(u64::MAX);
        for path in ["/dev/zero", "/dev/tty", "/proc/kmsg", "/proc", pipe.to_str().unwrap()] {
            let module = Module { bias: start, start, end, path: path.into(), build_id: String::new() };
            let frames = Symbolizer::new(&[]).stack(&[module], at(Hex(0x1234)));
            assert_eq!(frames, [Frame { module: path.into(), offset: "0x1233".into(), ..Frame::default() }]);
        }
    }

    /// The start of an ELF file with one section of debug information, which is said to have a size when it is
    /// decompressed.
    fn with_compressed(size: u64) -> Vec<u8> {
        let names = b"\0.shstrtab\0.debug_info\0";
        let names_at = 64;
        let data_at = 64 + names.len() as u64;
        let sections_at = data_at + 24;
        let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 62, 0, 1, 0, 0, 0];
        for word in [0, 0, sections_at] {
            file.extend(u64::to_le_bytes(word));
        }
        file.extend([0, 0, 0, 0, 64, 0, 56, 0, 0, 0, 64, 0, 3, 0, 1, 0]);
        file.extend(names);
        // ELFCOMPRESS_ZLIB, the size, and an alignment.
        for word in [1, size, 1] {
            file.extend(u64::to_le_bytes(word));
        }
        // The name, type, flags (SHF_COMPRESSED), place and size of each section.
        for (name, kind, flags, at, length) in
            [(0_u32, 0_u32, 0_u64, 0, 0), (1, 3, 0, names_at, names.len() as u64), (11, 1, 0x800, data_at, 24)]
        {
            file.extend([name.to_le_bytes(), kind.to_le_bytes()].concat());
            for word in [flags, 0, at, length, 0, 1, 0] {
                file.extend(u64::to_le_bytes(word));
            }
        }
        file
    }

    #[test]
    fn debug_information_that_would_take_too_much_memory_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("library.so");
        for (size, is_read) in [(LARGEST, true), (LARGEST + 1, false), (u64::MAX, false)] {
            fs::write(&path, with_compressed(size)).unwrap();
            assert_eq!(with_object(&path, |_| ()).is_some(), is_read, "{size}");
        }
        // A file of a few kilobytes whose section headers would be 8 GiB, as many as there can be.
        let mut sparse = with_compressed(0);
        sparse[60..62].copy_from_slice(&[0, 0]);
        let first = u64::from_le_bytes(sparse[40..48].try_into().unwrap()) as usize;
        sparse[first + 32..first + 40].copy_from_slice(&(1_u64 << 27).to_le_bytes());
        fs::write(&path, sparse).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(9 << 30).unwrap();
        assert!(with_object(&path, |_| ()).is_none());
    }

    #[test]
    fn an_address_outside_all_modules_stays_a_number() {
        let frames = Symbolizer::new(&[]).stack(&[], at(Hex(0x1234)));
        assert_eq!(frames, [Frame { offset: "0x1234".into(), ..Frame::default() }]);
    }
}
