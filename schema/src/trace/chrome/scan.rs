//! Reads call records in the exact form of our own writer, without a JSON parser.
//!
//! Nearly all lines of a trace have that form, and the parser takes twelve times as long for one. For a line that it
//! accepts, this module must give exactly what the JSON parser of [`super::read`] gives; any other line it declines,
//! and the parser reads it.

use memchr::memchr;

use crate::api::{Function, ResultCode};
use crate::call::{Nanos, Values};
use crate::trace::Record;
use crate::trace::packed::{PackedCall, Packing};

/// Reads the record of a call, from `{` to `}`; `None` where the line does not have exactly the writer's form.
pub(super) fn call(line: &[u8], base: u64) -> Option<Record> {
    let mut words = Vec::new();
    pack(line, base, &mut words)?;
    PackedCall::first_of(&words).map(|call| call.record())
}

/// Adds the record of a call, from `{` to `}`, to `words`; `None`, without an effect, where the line does not have
/// exactly the writer's form.
#[inline]
pub(super) fn pack(line: &[u8], base: u64, words: &mut Vec<u64>) -> Option<()> {
    let mut scan = Scan(line);
    scan.skip(br#"{"ph":""#)?;
    let enters = match scan.byte()? {
        b'B' => true,
        b'E' => false,
        _ => return None,
    };
    scan.skip(br#"","pid":"#)?;
    scan.decimal()?;
    scan.skip(br#","tid":"#)?;
    let tid = u32::try_from(scan.decimal()?).ok()?;
    // A space of the writer's, see [`super::write::Line`].
    let _ = scan.skip(b" ");
    scan.skip(br#","ts":"#)?;
    let micros = scan.decimal()?;
    scan.skip(b".")?;
    let nanos = (0..3).try_fold(0, |sum, _| Some(sum * 10 + scan.digit()?))?;
    let time = Nanos(base.saturating_add(micros.checked_mul(1000)?.checked_add(nanos)?));
    scan.skip(br#","cat":"api","name":""#)?;
    let (name, rest) = scan.0.split_at_checked(memchr(b'"', scan.0)?)?;
    let function = Function::from_bytes(name)?;
    scan.0 = rest;
    scan.skip(br#"","args":{"call":"#)?;
    let call = scan.decimal()?;
    let mut result = ResultCode(0);
    if !enters {
        scan.skip(br#","result":"#)?;
        result = ResultCode(u32::try_from(scan.decimal()?).ok()?);
        scan.skip(br#","result_name":""#)?;
        scan.skip(result.name_of(function).unwrap_or("unknown").as_bytes())?;
        scan.skip(b"\"")?;
    }
    let mut packing = Packing::begin(words);
    if scan.values(&mut packing).is_none() {
        packing.abandon();
        return None;
    }
    if enters {
        packing.enter(function, call, tid, time);
    } else {
        packing.exit(function, call, tid, time, result);
    }
    Some(())
}

/// The rest of a line.
struct Scan<'a>(&'a [u8]);

impl Scan<'_> {
    #[inline]
    fn skip(&mut self, text: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    #[inline]
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    #[inline]
    fn digit(&mut self) -> Option<u64> {
        let digit = self.byte()?.wrapping_sub(b'0');
        (digit < 10).then_some(u64::from(digit))
    }

    /// A number without leading zeros, which JSON does not allow.
    #[inline]
    fn decimal(&mut self) -> Option<u64> {
        let mut sum = 0_u64;
        let mut digits = 0;
        for byte in self.0 {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            sum = if digits < 19 {
                sum * 10 + u64::from(digit)
            } else {
                sum.checked_mul(10)?.checked_add(u64::from(digit))?
            };
            digits += 1;
        }
        let (number, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        match number {
            [] | [b'0', _, ..] => None,
            _ => Some(sum),
        }
    }

    /// The rest of a `"0x…"` after the prefix.
    #[inline]
    fn hex(&mut self) -> Option<u64> {
        let mut sum = 0_u64;
        let mut digits = 0;
        for byte in self.0 {
            let digit = DIGITS.get(usize::from(*byte)).copied().unwrap_or(NO_DIGIT);
            if digit == NO_DIGIT {
                break;
            }
            sum = sum << 4 | u64::from(digit);
            digits += 1;
        }
        self.0 = self.0.get(digits..)?;
        self.skip(b"\"")?;
        matches!(digits, 1..=16).then_some(sum)
    }

    /// The fields up to the end of the line.
    #[inline]
    fn values(&mut self, packing: &mut Packing<'_>) -> Option<()> {
        let value = |line: &mut &[u8]| {
            let mut scan = Scan(line);
            let value = if scan.skip(b"\"0x").is_some() { scan.hex() } else { scan.decimal() };
            *line = scan.0;
            value
        };
        Values::scan(&mut self.0, value, |place, value| {
            packing.value(place, value);
        })?;
        (self.0 == b"}}").then_some(())
    }
}

const NO_DIGIT: u8 = 0xff;

/// The value of each byte as a hexadecimal digit of the writer.
#[expect(clippy::indexing_slicing, reason = "a place outside would not compile")]
const DIGITS: [u8; 256] = {
    let mut table = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        table[b"0123456789abcdef"[digit] as usize] = digit as u8;
        digit += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::read::parse_json, super::write::Line, *};
    use crate::call::{Enter, Exit};

    fn values() -> impl Strategy<Value = Values> {
        let word = || prop::option::weighted(0.4, any::<u64>());
        (word(), word(), word(), word(), word(), word()).prop_map(|(via, context, pointer, size, data, stack)| Values {
            via,
            context,
            pointer,
            size,
            data,
            stack,
            ..Values::NONE
        })
    }

    /// A record of a call as the writer writes it, without its separator.
    fn line() -> impl Strategy<Value = Vec<u8>> {
        let call = (0..Function::COUNT, any::<u64>(), any::<u32>(), 0..u64::MAX / 2, values());
        (call, any::<Option<u32>>()).prop_map(|((row, call, tid, time, values), result)| {
            let function = Function::ALL[row];
            let time = Nanos(time);
            let mut line = Line::default();
            match result {
                None => line.enter(7, 0, &Enter { function, call, tid, time, values }),
                Some(result) => {
                    let result = ResultCode(result % 80);
                    line.exit(7, 0, &Exit { function, call, tid, time, result, values });
                }
            }
            line.bytes().unwrap().strip_prefix(b"\n,").unwrap().to_vec()
        })
    }

    proptest! {
        #[test]
        fn what_the_writer_writes_is_taken_as_the_parser_takes_it(line in line(), base in 0..1_u64 << 40) {
            prop_assert_eq!(Ok(call(&line, base).unwrap()), parse_json(&line, base));
        }

        #[test]
        fn whatever_is_taken_of_damaged_lines_the_parser_takes_alike(
            mut line in line(),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 1..4),
        ) {
            for (place, byte, how) in damage {
                let place = place.index(line.len());
                match how {
                    0 => line[place] = byte,
                    1 => line.insert(place, byte),
                    _ => drop(line.remove(place)),
                }
            }
            if let Some(record) = call(&line, 0) {
                prop_assert_eq!(Ok(record), parse_json(&line, 0));
            }
        }
    }

    const ENTER: &str = r#"{"ph":"B","pid":42,"tid":43,"ts":234.567,"cat":"api","name":"urIPCGetMemHandleExp","args":{"call":17,"via":1,"context":"0xc0de","pointer":"0x7f00"}}"#;

    #[test]
    fn the_writers_form_is_taken() {
        let Some(Record::Enter(enter)) = call(ENTER.as_bytes(), 1_000_000) else { panic!("declined") };
        assert_eq!((enter.function, enter.call, enter.tid), (Function::urIPCGetMemHandleExp, 17, 43));
        assert_eq!(enter.time, Nanos(1_234_567));
        let values = Values { via: Some(1), context: Some(0xc0de), pointer: Some(0x7f00), ..Values::NONE };
        assert_eq!(enter.values, values);
    }

    #[test]
    fn any_other_form_is_declined() {
        for (from, to) in [
            ("\"B\"", "\"X\""),
            ("\"tid\":43", "\"tid\":-43"),
            ("\"tid\":43", "\"tid\":4294967296"),
            ("\"ts\":234.567", "\"ts\":234.56"),
            ("\"ts\":234.567", "\"ts\":0234.567"),
            ("\"ts\":234.567", "\"ts\":18446744073709551615.999"),
            ("Handle", "Hand\\u006ce"),
            ("\"call\":17", "\"call\":18446744073709551616"),
            ("\"via\":1", "\"via\":1.0"),
            ("\"via\":1", "\"via\":1,\"via\":1"),
            ("\"via\":1", "\"strange\":1"),
            ("\"via\":1,\"context\":\"0xc0de\"", "\"context\":\"0xc0de\",\"via\":1"),
            ("0xc0de", "0x"),
            ("0xc0de", "0xC0DE"),
            ("0xc0de", "0x10000000000000000"),
            ("}}", "}} "),
            ("}}", "}"),
            (",\"cat\"", ", \"cat\""),
        ] {
            assert!(ENTER.contains(from), "{from}");
            assert_eq!(call(ENTER.replacen(from, to, 1).as_bytes(), 0), None, "{from} -> {to}");
        }
    }
}
