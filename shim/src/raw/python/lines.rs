//! The line of an instruction, from the table of its code object.
//!
//! CPython describes the tables in `Objects/lnotab_notes.txt` (3.10) and `Objects/locations.md` (3.11 and later). The
//! bytes may be anything: a table that ends early, or an invalid line, gives `None`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// Pairs of a length in bytes and a signed difference of lines: 3.10.
    Pairs,
    /// Entries of a length in units of two bytes, with a difference of lines and columns: 3.11 and later.
    Locations,
}

/// The size of a unit of code in bytes.
const UNIT: i64 = 2;

/// The line of the instruction at an offset in bytes; `None` if it has none.
pub(super) fn line_of(table: Table, bytes: &[u8], first: u32, at: i64) -> Option<u32> {
    let mut found = None;
    each(table, bytes, i64::from(first), |end, line| {
        found = line;
        at >= end
    });
    found.and_then(number)
}

/// The first and the last line of the statements of a function that begins in line `first`.
pub(super) fn statements(table: Table, bytes: &[u8], first: u32) -> Option<[u32; 2]> {
    let begin = i64::from(first);
    let mut earliest = None;
    let mut last = None;
    each(table, bytes, begin, |_, line| {
        // What stands in the first line is the beginning of the function, if there is anything else.
        let below = line.filter(|line| *line > begin);
        earliest = earliest.map_or(below, |known: i64| Some(below.map_or(known, |line| known.min(line))));
        last = last.max(line);
        true
    });
    let last = number(last?)?;
    Some([earliest.and_then(number).unwrap_or(last), last])
}

fn number(line: i64) -> Option<u32> {
    u32::try_from(line).ok().filter(|line| *line > 0)
}

/// Takes where each entry ends, in bytes, and its line, as long as more of them are wanted. `None` comes last if there
/// are no more.
fn each(table: Table, bytes: &[u8], first: i64, mut wants_more: impl FnMut(i64, Option<i64>) -> bool) {
    match table {
        Table::Pairs => in_pairs(bytes, first, &mut wants_more),
        Table::Locations => in_locations(bytes, first, &mut wants_more),
    }
}

fn in_pairs(bytes: &[u8], first: i64, wants_more: &mut dyn FnMut(i64, Option<i64>) -> bool) {
    /// The difference that stands for code without a line.
    const NO_LINE: i8 = -128;
    let mut end = 0;
    let mut line = first;
    for [length, difference] in bytes.as_chunks::<2>().0 {
        end += i64::from(*length);
        let difference = difference.cast_signed();
        if difference != NO_LINE {
            line += i64::from(difference);
        }
        if !wants_more(end, (difference != NO_LINE).then_some(line)) {
            return;
        }
    }
    wants_more(i64::MAX, None);
}

fn in_locations(bytes: &[u8], first: i64, wants_more: &mut dyn FnMut(i64, Option<i64>) -> bool) {
    let mut bytes = bytes.iter().copied();
    let mut end = 0;
    let mut line = first;
    while let Some((length, has_line)) = location(&mut bytes, &mut line) {
        end += length;
        if !wants_more(end, has_line.then_some(line)) {
            return;
        }
    }
    wants_more(i64::MAX, None);
}

/// The length of an entry in bytes, and whether it has a line; moves the line.
fn location(bytes: &mut impl Iterator<Item = u8>, line: &mut i64) -> Option<(i64, bool)> {
    let head = bytes.next()?;
    let length = (i64::from(head & 7) + 1) * UNIT;
    match head >> 3 & 15 {
        15 => return Some((length, false)),
        14 => {
            *line += signed(bytes)?;
            for _end_line_and_columns in 0..3 {
                unsigned(bytes)?;
            }
        }
        13 => *line += signed(bytes)?,
        form @ 10..=12 => {
            *line += i64::from(form) - 10;
            bytes.next()?;
            bytes.next()?;
        }
        _ => {
            bytes.next()?;
        }
    }
    Some((length, true))
}

/// A number in groups of six bits, the lowest first; bit 6 of a byte means that another one follows.
fn unsigned(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let mut number = 0;
    for shift in (0..60).step_by(6) {
        let byte = bytes.next()?;
        number |= i64::from(byte & 63) << shift;
        if byte & 64 == 0 {
            return Some(number);
        }
    }
    None
}

/// A number with its sign in the lowest bit.
fn signed(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let number = unsigned(bytes)?;
    Some(if number & 1 == 1 { -(number >> 1) } else { number >> 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    mod recorded;

    fn lines(table: Table, bytes: &[u8], first: u32, length: i64) -> String {
        let mut found = Vec::new();
        let mut last = None;
        for at in (0..length).step_by(2) {
            let line = line_of(table, bytes, first, at);
            if last.replace(line) != Some(line) {
                found.push(format!("{at}:{}", line.map_or("-".into(), |line| line.to_string())));
            }
        }
        found.join(" ")
    }

    #[test]
    fn the_lines_are_those_that_python_says() {
        for case in recorded::CASES {
            assert_eq!(lines(case.table, case.bytes, case.first, case.length), case.lines, "{}", case.python);
        }
    }

    #[test]
    fn the_statements_are_below_the_beginning_of_the_function() {
        for case in recorded::CASES {
            let at = |at| line_of(case.table, case.bytes, case.first, at);
            let all: Vec<u32> = (0..case.length).step_by(2).filter_map(at).collect();
            let last = all.iter().max().copied();
            let first = all.iter().filter(|line| **line > case.first).min().copied().or(last);
            let expected = first.zip(last).map(|(first, last)| [first, last]);
            assert_eq!(statements(case.table, case.bytes, case.first), expected, "{}", case.python);
        }
        assert_eq!(statements(Table::Pairs, &[], 5), None);
    }

    #[test]
    fn a_table_that_is_cut_short_has_no_line_behind_its_end() {
        for case in recorded::CASES {
            for cut in 0..case.bytes.len() {
                for at in [-2, 0, case.length - 2, case.length, i64::MAX] {
                    let whole = line_of(case.table, case.bytes, case.first, at);
                    let part = line_of(case.table, &case.bytes[..cut], case.first, at);
                    assert!(part.is_none() || part == whole, "{} cut at {cut}", case.python);
                }
            }
        }
    }

    #[test]
    fn a_number_without_an_end_is_none() {
        assert_eq!(unsigned(&mut [0x7f; 80].into_iter()), None);
        assert_eq!(signed(&mut [0b11].into_iter()), Some(-1));
        assert_eq!(unsigned(&mut [0b100_0001, 1].into_iter()), Some(65));
        assert_eq!(line_of(Table::Pairs, &[4, 0x81], 5, 0), None, "line -122");
    }
}
