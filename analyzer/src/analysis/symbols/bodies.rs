//! The lines between which a function stands in its source, from its debug information. They say which functions only
//! pass a call on.
//!
//! Only programs are looked into, not the libraries of the runtime. What is missing or damaged gives no answer.

use std::{collections::HashMap, fs, path::Path, sync::Arc};

use addr2line::gimli::{
    AttributeValue, DebugInfoOffset, DebuggingInformationEntry, Dwarf, DwarfSections, EndianSlice, RunTimeEndian,
    SectionId, Unit, UnitOffset, constants,
};
use object::{Object as _, ObjectSection as _, ReadCache};

use crate::files;

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;
type Entry<'a> = DebuggingInformationEntry<Slice<'a>>;

/// The most debug information of a file that is looked into, in bytes. It is read whole.
const LARGEST: u64 = 256 << 20;

/// The most places that refer to another one, one after the other.
const REFERENCES: usize = 4;

/// The first and the last line of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Body {
    /// Of its declaration, or the first one with code if the declaration is not known.
    pub(super) first: u32,
    /// The last one with code.
    pub(super) last: u32,
}

/// A place of a table of lines: its address, the number of its file, and its line.
type Row = (u64, u64, u32);

/// The functions of a file.
pub(super) struct Bodies {
    sections: DwarfSections<Vec<u8>>,
    /// The addresses of each unit, and where it is.
    units: Vec<(u64, u64, DebugInfoOffset)>,
    rows: HashMap<DebugInfoOffset, Arc<[Row]>>,
    known: HashMap<(DebugInfoOffset, UnitOffset), Option<Body>>,
}

impl Bodies {
    /// `None` if the file cannot be read, or holds no debug information or too much of it.
    pub(super) fn open(file: &Path) -> Option<Self> {
        let file = files::open(&fs::canonicalize(file).ok()?).ok()?;
        let cache = ReadCache::new(file);
        let object = object::File::parse(&cache).ok()?;
        let size: u64 = object.sections().filter(|section| is_of_debug(section.name())).map(|it| it.size()).sum();
        if size > LARGEST {
            return None;
        }
        let load = |id: SectionId| {
            let is_needed = !matches!(id, SectionId::DebugStr | SectionId::DebugLoc | SectionId::DebugLocLists);
            let section = is_needed.then(|| object.section_by_name(id.name())).flatten();
            let data = section.map(|section| section.uncompressed_data().map(std::borrow::Cow::into_owned));
            data.unwrap_or_else(|| Ok(Vec::new()))
        };
        let sections = DwarfSections::load(load).ok()?;
        let mut bodies = Self { sections, units: Vec::new(), rows: HashMap::new(), known: HashMap::new() };
        bodies.units = bodies.dwarf().units_of();
        (!bodies.units.is_empty()).then_some(bodies)
    }

    fn dwarf(&self) -> Borrowed<'_> {
        Borrowed(self.sections.borrow(|section| EndianSlice::new(section, RunTimeEndian::Little)))
    }

    /// The function at this place of the unit that has the address.
    pub(super) fn find(&mut self, address: u64, function: UnitOffset) -> Option<Body> {
        let here = |(begin, end, _): &&(u64, u64, DebugInfoOffset)| (*begin..*end).contains(&address);
        let (_, _, unit) = *self.units.iter().find(here)?;
        if let Some(known) = self.known.get(&(unit, function)) {
            return *known;
        }
        let rows = match self.rows.get(&unit) {
            Some(rows) => Arc::clone(rows),
            None => self.dwarf().rows_of(unit).unwrap_or_default(),
        };
        let body = self.dwarf().body(unit, function, &rows);
        self.rows.insert(unit, rows);
        self.known.insert((unit, function), body);
        body
    }
}

fn is_of_debug(name: object::Result<&str>) -> bool {
    name.is_ok_and(|name| name.starts_with(".debug_"))
}

struct Borrowed<'a>(Dwarf<Slice<'a>>);

impl<'a> Borrowed<'a> {
    fn units_of(&self) -> Vec<(u64, u64, DebugInfoOffset)> {
        let mut found = Vec::new();
        let mut headers = self.0.units();
        while let Ok(Some(header)) = headers.next() {
            let Some(at) = header.debug_info_offset() else { continue };
            let Ok(unit) = self.0.unit(header) else { continue };
            let Ok(mut ranges) = self.0.unit_ranges(&unit) else { continue };
            while let Ok(Some(range)) = ranges.next() {
                found.push((range.begin, range.end, at));
            }
        }
        found
    }

    fn unit(&self, at: DebugInfoOffset) -> Option<Unit<Slice<'a>>> {
        self.0.unit(self.0.debug_info.header_from_offset(at).ok()?).ok()
    }

    fn rows_of(&self, at: DebugInfoOffset) -> Option<Arc<[Row]>> {
        let mut found = Vec::<Row>::new();
        let mut rows = self.unit(at)?.line_program?.rows();
        while let Ok(Some((_, row))) = rows.next_row() {
            let Some(line) = row.line().and_then(|line| u32::try_from(line.get()).ok()) else { continue };
            // Where a function is inlined, the line of the call has the same address, and no instruction.
            found.pop_if(|(address, ..)| *address == row.address());
            if !row.end_sequence() {
                found.push((row.address(), row.file_index(), line));
            }
        }
        found.sort_unstable();
        Some(found.into())
    }

    fn body(&self, at: DebugInfoOffset, function: UnitOffset, rows: &[Row]) -> Option<Body> {
        let unit = self.unit(at)?;
        let entry = unit.entry(function).ok()?;
        let inside = |place: &Entry<'a>, found: &mut Vec<(u64, u64)>| {
            let mut ranges = self.0.die_ranges(&unit, place).ok()?;
            while let Ok(Some(range)) = ranges.next() {
                found.push((range.begin, range.end));
            }
            Some(())
        };
        let mut own = Vec::new();
        let mut inlined = Vec::new();
        let mut calls = Vec::new();
        inside(&entry, &mut own)?;
        let mut entries = unit.entries_raw(Some(function)).ok()?;
        let mut place = DebuggingInformationEntry::null();
        let mut skipped = None;
        entries.read_entry(&mut place).ok()?;
        while entries.next_depth() > 0 {
            let depth = entries.next_depth();
            if !entries.read_entry(&mut place).ok()? || skipped.is_some_and(|skipped| depth > skipped) {
                continue;
            }
            skipped = (place.tag() == constants::DW_TAG_inlined_subroutine).then_some(depth);
            if skipped.is_some() {
                inside(&place, &mut inlined);
                calls.push((number(&place, constants::DW_AT_call_file), number(&place, constants::DW_AT_call_line)));
            }
        }
        let is_in = |ranges: &[(u64, u64)], address: u64| ranges.iter().any(|(a, b)| (*a..*b).contains(&address));
        let lines = own.iter().flat_map(|(begin, end)| {
            let first = rows.partition_point(|(address, ..)| address < begin);
            rows.iter().skip(first).take_while(move |(address, ..)| address < end)
        });
        let lines: Vec<&Row> = lines.filter(|(address, ..)| !is_in(&inlined, *address)).collect();
        let (file, line) = declared(&unit, &entry).unwrap_or_default();
        let file = file.or_else(|| lines.first().map(|(_, file, _)| *file));
        let of_file = lines.iter().filter(|(_, other, _)| Some(*other) == file).map(|(.., line)| *line);
        let calls = calls.iter().filter(|(other, _)| *other == file).filter_map(|(_, line)| (*line)?.try_into().ok());
        let all: Vec<u32> = of_file.chain(calls).collect();
        let first = line.or_else(|| all.iter().min().copied())?;
        Some(Body { first, last: all.into_iter().max().unwrap_or(first).max(first) })
    }
}

/// The file and the line in which a function is declared.
fn declared<'a>(unit: &Unit<Slice<'a>>, entry: &Entry<'a>) -> Option<(Option<u64>, Option<u32>)> {
    let mut entry = entry.clone();
    for _ in 0..REFERENCES {
        if let Some(line) = number(&entry, constants::DW_AT_decl_line) {
            return Some((number(&entry, constants::DW_AT_decl_file), u32::try_from(line).ok()));
        }
        let origin = [constants::DW_AT_abstract_origin, constants::DW_AT_specification];
        let AttributeValue::UnitRef(next) = origin.into_iter().find_map(|name| entry.attr_value(name))? else {
            return None;
        };
        entry = unit.entry(next).ok()?;
    }
    None
}

fn number(entry: &Entry<'_>, name: addr2line::gimli::DwAt) -> Option<u64> {
    match entry.attr_value(name)? {
        AttributeValue::FileIndex(file) => Some(file),
        value => value.udata_value(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use addr2line::{Loader, gimli::ReaderOffset as _};
    use object::ObjectSymbol as _;

    use super::*;

    /// The functions `in_one_line`, `below`, and `around` with `inside`, which is inlined into it.
    const SOURCE: &str = "\
void release(void *memory);
void in_one_line(void *memory) { release(memory); }
void below(void *memory)
{

  release(memory);
}
static inline __attribute__((always_inline)) void inside(void *memory) {
  release(memory);
  release(memory);
  release(memory);
}
int around(void *memory) {
  inside(memory);
  return 1;
}
";

    /// The library that the machine's compiler makes of the source.
    fn compiled(directory: &Path, flags: &[&str]) -> std::path::PathBuf {
        let source = directory.join("release.c");
        let library = directory.join("release.so");
        fs::write(&source, SOURCE).unwrap();
        let compiler = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1"])
            .args(flags)
            .arg(&source)
            .arg("-o")
            .arg(&library)
            .status();
        assert!(compiler.unwrap().success(), "{flags:?}");
        library
    }

    /// The functions at the last call of a function of the library, the innermost first.
    fn bodies_at(library: &Path, function: &str) -> Vec<Option<Body>> {
        let bytes = fs::read(library).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        let symbol = object.symbols().find(|symbol| symbol.name() == Ok(function)).unwrap();
        let names = Loader::new(library).unwrap();
        let mut bodies = Bodies::open(library).unwrap();
        let of_address = |address| {
            let mut found = Vec::new();
            let mut frames = names.find_frames(address).unwrap();
            while let Some(frame) = frames.next().unwrap() {
                found.push(bodies.find(address, UnitOffset(frame.dw_die_offset.unwrap().0.into_u64() as usize)));
            }
            found
        };
        (symbol.address()..symbol.address() + symbol.size()).map(of_address).max_by_key(Vec::len).unwrap()
    }

    #[test]
    fn a_function_has_the_lines_from_its_declaration_to_its_last_one() {
        let body = |first, last| Some(Body { first, last });
        let directory = tempfile::tempdir().unwrap();
        for flags in [&["-g"][..], &["-g1"], &["-g", "-gdwarf-4"], &["-g", "-gz"]] {
            let library = compiled(directory.path(), flags);
            assert_eq!(bodies_at(&library, "in_one_line"), [body(2, 2)], "{flags:?}");
            assert_eq!(bodies_at(&library, "below"), [body(3, 7)], "{flags:?}");
            // The last line with code of what is inlined, and not the line of its call.
            assert_eq!(bodies_at(&library, "around"), [body(8, 11), body(13, 16)], "{flags:?}");
        }
    }

    #[test]
    fn a_file_without_debug_information_or_cut_short_has_no_functions() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Bodies::open(&compiled(directory.path(), &["-g0"])).is_none());
        let library = compiled(directory.path(), &["-g"]);
        let bytes = fs::read(&library).unwrap();
        for length in (0..bytes.len()).step_by(61) {
            fs::write(&library, &bytes[..length]).unwrap();
            assert!(Bodies::open(&library).is_none(), "{length}");
        }
        assert!(Bodies::open(&directory.path().join("gone")).is_none());
    }
}
