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
    let line = match table {
        Table::Pairs => in_pairs(bytes, i64::from(first), at),
        Table::Locations => in_locations(bytes, i64::from(first), at),
    }?;
    u32::try_from(line).ok().filter(|line| *line > 0)
}

fn in_pairs(bytes: &[u8], first: i64, at: i64) -> Option<i64> {
    /// The difference that stands for code without a line.
    const NO_LINE: i8 = -128;
    let (mut end, mut line) = (0, first);
    for [length, difference] in bytes.as_chunks::<2>().0 {
        end += i64::from(*length);
        let difference = difference.cast_signed();
        if difference != NO_LINE {
            line += i64::from(difference);
        }
        if at < end {
            return (difference != NO_LINE).then_some(line);
        }
    }
    None
}

fn in_locations(bytes: &[u8], first: i64, at: i64) -> Option<i64> {
    let mut bytes = bytes.iter().copied();
    let (mut end, mut line) = (0, first);
    loop {
        let head = bytes.next()?;
        end += (i64::from(head & 7) + 1) * UNIT;
        let mut has_line = true;
        match head >> 3 & 15 {
            15 => has_line = false,
            14 => {
                line += signed(&mut bytes)?;
                for _end_line_and_columns in 0..3 {
                    unsigned(&mut bytes)?;
                }
            }
            13 => line += signed(&mut bytes)?,
            form @ 10..=12 => {
                line += i64::from(form) - 10;
                bytes.next()?;
                bytes.next()?;
            }
            _ => {
                bytes.next()?;
            }
        }
        if at < end {
            return has_line.then_some(line);
        }
    }
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
        let (mut found, mut last) = (Vec::new(), None);
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
