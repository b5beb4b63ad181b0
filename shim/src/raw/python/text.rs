//! Reads texts of Python.

use super::{Interpreter, memory};

/// The form of a text: the width of a character in bytes, and whether all are ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    width: usize,
    is_ascii: bool,
}

impl Form {
    /// From the bits of `state` in `PyASCIIObject`; `None` for a text that is not compact.
    fn from_bits(bits: u32) -> Option<Self> {
        const IS_COMPACT: u32 = 1 << 5;
        const IS_ASCII: u32 = 1 << 6;
        let width = (bits >> 2 & 7) as usize;
        (matches!(width, 1 | 2 | 4) && bits & IS_COMPACT != 0).then_some(Self { width, is_ascii: bits & IS_ASCII != 0 })
    }
}

/// The text at an address, at most `limit` characters of it, the last ones if `keep_end`; `None` if there is no text.
pub(super) fn read(interpreter: &Interpreter, at: usize, limit: usize, keep_end: bool) -> Option<String> {
    let layout = &interpreter.layout;
    if memory::word(at + layout.of_type)? != interpreter.types.text {
        return None;
    }
    let length = memory::word(at + layout.length)?;
    let form = Form::from_bits(u32::from_ne_bytes(*memory::bytes(at + layout.form, 4, 4)?.first_chunk()?))?;
    let skipped = if keep_end { length.saturating_sub(limit) } else { 0 };
    let characters = at + if form.is_ascii { layout.ascii } else { layout.other };
    let from = characters.checked_add(skipped.checked_mul(form.width)?)?;
    let bytes = memory::bytes(from, (length - skipped).checked_mul(form.width)?, limit * form.width)?;
    let mut text = decoded(&bytes, form.width);
    if skipped > 0 {
        text.insert(0, '…');
    }
    Some(text)
}

fn decoded(bytes: &[u8], width: usize) -> String {
    let characters = bytes.chunks_exact(width).map(|bytes| {
        let number = bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
        // Python has lone surrogates for bytes of a file name that are not UTF-8.
        char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
    });
    characters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_of_three_widths() {
        assert_eq!(decoded("grün".chars().map(|c| c as u8).collect::<Vec<_>>().as_slice(), 1), "grün");
        let wide: Vec<u8> = "é€".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decoded(&wide, 2), "é€");
        let widest: Vec<u8> = "€😀".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
        assert_eq!(decoded(&widest, 4), "€😀");
        assert_eq!(decoded(&0xdc80_u16.to_le_bytes(), 2), "\u{fffd}");
    }

    #[test]
    fn a_form_that_is_not_known_is_none() {
        // interned: 2, kind: 3, compact: 1, ascii: 1.
        assert_eq!(Form::from_bits(0b110_0101), Some(Form { width: 1, is_ascii: true }));
        assert_eq!(Form::from_bits(0b011_0000), Some(Form { width: 4, is_ascii: false }));
        assert_eq!(Form::from_bits(0b100_0100), None, "not compact");
        assert_eq!(Form::from_bits(0b110_1100), None, "a width of 3");
    }
}
