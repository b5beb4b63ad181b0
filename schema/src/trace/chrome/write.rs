//! Formats a record into a buffer of fixed size, without allocating, ready to be appended at once.
//!
//! Every line begins with its separator (`\n,`), so a file is complete after each of them. This module must never open
//! a file, take a lock or format a part of a record: one that does not fit is rejected as a whole.

#![expect(clippy::inline_always, reason = "the category is a constant of the caller")]

mod commands;

use serde_json::json;

use crate::api::Function;
use crate::call::{Enter, Exit, Nanos, Shape, Values};
use crate::trace::records::{Clock, Footer, Found, Gap, Named};
use crate::trace::{CALL, INNER, NOTE};

/// The longest call record in bytes: every field is present and has the largest value.
pub const LINE: usize = 1128;

/// The longest [`End`] in bytes: every function was called, with the largest counts.
pub const END_LENGTH: usize = 512 + 56 * Function::COUNT + 11 * MOST_KEPT;

/// The most descriptors that a footer lists.
pub const MOST_KEPT: usize = 256;

/// The unit of appending: the shim stores so many bytes at once, indivisibly.
pub const STEP: usize = 8;

/// The record of a call.
///
/// Perfetto accepts a file whose last record is torn and followed by spaces, unless it is torn right after the decimal
/// point of `ts` or `dur`. To prevent that, a space is put before one whose point would be the last byte of a [`STEP`],
/// counted from the start of the line.
#[derive(Default)]
pub struct Line(Buffer<LINE>);

impl Line {
    /// The bytes; `None` if they did not fit.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.0.bytes()
    }

    /// Writes the record of a call that begins; `base` is [`Clock::base_ns`].
    #[inline]
    pub fn enter(&mut self, pid: u32, base: u64, enter: &Enter) {
        self.begin(pid, base, enter, CALL, "call");
    }

    /// Writes the record of a call that returns.
    #[inline]
    pub fn exit(&mut self, pid: u32, base: u64, exit: &Exit) {
        self.end(pid, base, exit, CALL, "call");
    }

    /// Writes the record of a call that begins inside of the call with its number.
    pub fn inner_enter(&mut self, pid: u32, base: u64, enter: &Enter) {
        self.begin(pid, base, enter, INNER, "inside");
    }

    /// Writes the record of a call that returns inside of the call with its number.
    pub fn inner_exit(&mut self, pid: u32, base: u64, exit: &Exit) {
        self.end(pid, base, exit, INNER, "inside");
    }

    #[inline(always)]
    fn begin(&mut self, pid: u32, base: u64, enter: &Enter, category: &str, number: &str) {
        self.opening(r#"{"ph":"B","pid":"#, pid, enter.tid, enter.time, base);
        self.0.text(r#","cat":""#).text(category).text(r#"","name":""#).text(enter.function.name());
        self.0.text(r#"","args":{""#).text(number).text(r#"":"#).decimal(enter.call);
        self.values(&enter.values);
        self.0.text("}}");
    }

    #[inline(always)]
    fn end(&mut self, pid: u32, base: u64, exit: &Exit, category: &str, number: &str) {
        self.opening(r#"{"ph":"E","pid":"#, pid, exit.tid, exit.time, base);
        self.0.text(r#","cat":""#).text(category).text(r#"","name":""#).text(exit.function.name());
        self.0.text(r#"","args":{""#).text(number).text(r#"":"#).decimal(exit.call);
        self.0.text(r#","result":"#).decimal(u64::from(exit.result.0));
        self.0.text(r#","result_name":""#).text(exit.result.name_of(exit.function).unwrap_or("unknown")).text(r#"""#);
        self.values(&exit.values);
        self.0.text("}}");
    }

    /// Writes the number of open descriptors, as a counter that Perfetto draws.
    pub fn descriptors(&mut self, pid: u32, tid: u32, time: Nanos, base: u64, open: u64) {
        self.opening(r#"{"ph":"C","pid":"#, pid, tid, time, base);
        self.0
            .text(r#","cat":""#)
            .text(NOTE)
            .text(r#"","name":"descriptors","args":{"open":"#)
            .decimal(open)
            .text("}}");
    }

    /// Writes the number of records that are lost so far. It ends with the fields of [`gap`].
    pub fn gap(&mut self, pid: u32, lost: u64) {
        self.0.text("\n,{\"ph\":\"M\",\"name\":\"").text(Gap::NAME).text(r#"","pid":"#).decimal(u64::from(pid));
        self.0.text(r#","tid":"#).decimal(u64::from(pid)).text(r#","args":"#);
        for byte in gap(lost) {
            self.0.byte(byte);
        }
        self.0.text("}");
    }

    fn opening(&mut self, phase: &str, pid: u32, tid: u32, time: Nanos, base: u64) {
        self.0.text("\n,").text(phase).decimal(u64::from(pid)).text(r#","tid":"#).decimal(u64::from(tid));
        self.micros(r#","ts":"#, time.0.saturating_sub(base));
    }

    /// Writes nanoseconds as microseconds.
    fn micros(&mut self, label: &str, time: u64) {
        let micros = time / 1000;
        let nanos = (time % 1000) as u32;
        if (self.0.len + label.len() + digits(micros)) % STEP == STEP - 1 {
            self.0.text(" ");
        }
        self.0.text(label).decimal(micros);
        for digit in [b'.', b'0' + (nanos / 100) as u8, b'0' + (nanos / 10 % 10) as u8, b'0' + (nanos % 10) as u8] {
            self.0.byte(digit);
        }
    }

    fn values(&mut self, values: &Values) {
        values.for_each(|name, shape, value| {
            self.0.text(r#",""#).text(name).text(r#"":"#);
            match shape {
                Shape::Number if value < 1 << 63 => self.0.decimal(value),
                Shape::Number | Shape::Hex => self.0.text(r#""0x"#).hex(value).text(r#"""#),
            };
        });
    }
}

/// The footer and the closing bracket.
///
/// It is formatted by hand, and not by serde like the header, because a process may end inside a signal handler, where
/// nothing can be allocated. [`Footer`] describes its fields.
pub struct End {
    text: Buffer<END_LENGTH>,
    /// Where its fields are, as one JSON object.
    args: std::ops::Range<usize>,
}

/// The counts in a footer.
pub struct Totals<'a> {
    /// The number of calls that returned.
    pub returned: u64,
    /// The number of records that could not be written.
    pub lost: u64,
    /// The number of calls of a function that began.
    pub called: &'a dyn Fn(Function) -> u64,
    /// The exported descriptors that are still open; those after the first [`MOST_KEPT`] are left out.
    pub kept: &'a [u32],
}

impl End {
    /// The footer of a process that ended in the way `how`, which holds nothing that JSON escapes.
    pub fn new(pid: u32, how: &str, totals: &Totals<'_>, clock: &Clock) -> Self {
        let mut end = Buffer::default();
        end.text("\n,{\"ph\":\"M\",\"name\":\"").text(Footer::NAME).text(r#"","pid":"#).decimal(u64::from(pid));
        end.text(r#","tid":"#).decimal(u64::from(pid)).text(r#","args":"#);
        let args = end.len;
        end.text(r#"{"how":""#).text(how);
        let calls = Function::ALL.iter().map(|function| (totals.called)(*function)).sum();
        end.text(r#"","calls":"#).decimal(calls).text(r#","returned":"#).decimal(totals.returned);
        end.text(r#","lost":"#).decimal(totals.lost).text(r#","per_function":{"#);
        let called = Function::ALL.iter().map(|function| (function, (totals.called)(*function)));
        for (number, (function, calls)) in called.filter(|(_, calls)| *calls > 0).enumerate() {
            end.text(if number == 0 { "\"" } else { ",\"" }).text(function.name()).text("\":").decimal(calls);
        }
        end.text("}");
        for (place, descriptor) in totals.kept.iter().take(MOST_KEPT).enumerate() {
            end.text(if place == 0 { r#","kept":["# } else { "," }).decimal(u64::from(*descriptor));
        }
        end.text(if totals.kept.is_empty() { "" } else { "]" });
        end.text(r#","clock":{"base_ns":"#).decimal(clock.base_ns);
        end.text(r#","monotonic_ns":"#).decimal(clock.monotonic_ns);
        end.text(r#","boottime_ns":"#).decimal(clock.boottime_ns);
        end.text(r#","realtime_ns":"#).decimal(clock.realtime_ns).text("}}");
        let args = args..end.len;
        end.text("}").text(CLOSE);
        Self { text: end, args }
    }

    /// The bytes; `None` if they did not fit.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.text.bytes()
    }

    /// The fields of the footer as a JSON object, without what makes them a line; `None` if they did not fit.
    pub fn args(&self) -> Option<&str> {
        std::str::from_utf8(self.bytes()?.get(self.args.clone())?).ok()
    }
}

/// The number of lost records in the fields of a [`gap`]: its place, and its digits, behind spaces. One instruction can
/// replace them in a file.
pub const LOST_AT: usize = r#"{"lost":"#.len();
/// See [`LOST_AT`].
pub const LOST_DIGITS: usize = STEP;

/// The fields of a [`Gap`] as JSON. It shows the largest number that fits if there are more.
pub fn gap(lost: u64) -> [u8; LOST_AT + LOST_DIGITS + 1] {
    let mut fields = *br#"{"lost":        }"#;
    let mut left = lost.min(10_u64.pow(LOST_DIGITS as u32) - 1);
    let digits = LOST_AT..LOST_AT + LOST_DIGITS;
    for digit in fields.get_mut(digits).into_iter().flatten().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    fields
}

/// Text of at most `N` bytes.
struct Buffer<const N: usize> {
    bytes: [u8; N],
    len: usize,
    full: bool,
}

impl<const N: usize> Default for Buffer<N> {
    fn default() -> Self {
        Self { bytes: [0; N], len: 0, full: false }
    }
}

impl<const N: usize> Buffer<N> {
    fn bytes(&self) -> Option<&[u8]> {
        if self.full { None } else { self.bytes.get(..self.len) }
    }

    #[inline]
    fn text(&mut self, text: &str) -> &mut Self {
        match self.bytes.get_mut(self.len..self.len + text.len()) {
            Some(place) => {
                place.copy_from_slice(text.as_bytes());
                self.len += text.len();
            }
            None => self.full = true,
        }
        self
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        match self.bytes.get_mut(self.len) {
            Some(place) => {
                *place = byte;
                self.len += 1;
            }
            None => self.full = true,
        }
    }

    #[inline]
    fn decimal(&mut self, value: u64) -> &mut Self {
        let count = digits(value);
        self.digits::<10>(value, count)
    }

    #[inline]
    fn hex(&mut self, value: u64) -> &mut Self {
        let count = (64 - value.leading_zeros()).div_ceil(4).max(1) as usize;
        self.digits::<16>(value, count)
    }

    #[inline]
    fn digits<const RADIX: u64>(&mut self, mut value: u64, count: usize) -> &mut Self {
        match self.bytes.get_mut(self.len..self.len + count) {
            Some(place) => {
                for digit in place.iter_mut().rev() {
                    let low = (value % RADIX) as u8;
                    *digit = if low < 10 { b'0' + low } else { b'a' + low - 10 };
                    value /= RADIX;
                }
                self.len += count;
            }
            None => self.full = true,
        }
        self
    }
}

fn digits(value: u64) -> usize {
    value.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// The start of a file: the bracket, and the name of the process, by which Perfetto recognises the format.
///
/// `run` makes the first bytes of every file unique: Perfetto's cache compares only those.
pub fn start(pid: u32, name: &str, run: &str) -> Vec<u8> {
    let name = json!({"ph": "M", "name": "process_name", "pid": pid, "tid": pid, "args": {"name": name, "run": run}});
    format!("[\n{name}").into_bytes()
}

/// A record that is not of a call.
pub fn record<R: Named>(pid: u32, record: &R) -> Vec<u8> {
    let line = json!({"ph": "M", "name": R::NAME, "pid": pid, "tid": pid, "args": record});
    format!("\n,{line}").into_bytes()
}

/// The name of a thread.
pub fn thread_name(pid: u32, tid: u32, name: &str) -> Vec<u8> {
    let line = json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}});
    format!("\n,{line}").into_bytes()
}

/// A note of urscope's own, an instant on a thread.
pub fn note(pid: u32, tid: u32, time: Nanos, base: u64, text: &str) -> Vec<u8> {
    instant(pid, tid, time, base, "note", &json!({"text": text}))
}

/// A finding of the validation layer, an instant on the thread of the call.
pub fn finding(pid: u32, tid: u32, time: Nanos, base: u64, found: &Found) -> Vec<u8> {
    instant(pid, tid, time, base, "finding", &json!(found))
}

fn instant(pid: u32, tid: u32, time: Nanos, base: u64, name: &str, args: &serde_json::Value) -> Vec<u8> {
    let since = time.0.saturating_sub(base);
    format!(
        "\n,{{\"ph\":\"i\",\"pid\":{pid},\"tid\":{tid},\"ts\":{}.{:03},\"s\":\"t\",\"cat\":\"{NOTE}\",\"name\":\"{name}\",\"args\":{args}}}",
        since / 1000,
        since % 1000,
    )
    .into_bytes()
}

/// Closes a file: nothing may follow it.
pub const CLOSE: &str = "\n]";

#[cfg(test)]
mod tests {
    use super::super::read::parse_json;
    use super::*;
    use crate::api::{ResultCode, UNIFIED_RUNTIME};
    use crate::trace::Record;

    /// The text of a record, without its separator.
    fn text(write: impl FnOnce(&mut Line)) -> String {
        let mut line = Line::default();
        write(&mut line);
        std::str::from_utf8(line.bytes().unwrap()).unwrap().strip_prefix("\n,").unwrap().to_owned()
    }

    fn get() -> Enter {
        let values = Values { via: Some(1), context: Some(0xc0de), pointer: Some(0x7f00), ..Values::default() };
        Enter { function: Function::urIPCGetMemHandleExp, call: 17, tid: 43, time: Nanos(1_234_567), values }
    }

    #[test]
    fn a_record_is_one_json_line() {
        let Enter { function, call, tid, .. } = get();
        let values =
            Values { data: Some(0x10), data_size: Some(120), fingerprint: Some(u64::MAX), ..Values::default() };
        let exit = Exit { function, call, tid, time: Nanos(5), result: ResultCode(45), values };
        assert_eq!(
            text(|line| line.enter(42, 1_000_000, &get())),
            "{\"ph\":\"B\",\"pid\":42,\"tid\":43,\"ts\":234.567,\"cat\":\"api\",\"name\":\"urIPCGetMemHandleExp\",\
             \"args\":{\"call\":17,\"via\":1,\"context\":\"0xc0de\",\"pointer\":\"0x7f00\"}}"
        );
        assert_eq!(
            text(|line| line.exit(42, 0, &exit)),
            "{\"ph\":\"E\",\"pid\":42,\"tid\":43,\"ts\":0.005,\"cat\":\"api\",\"name\":\"urIPCGetMemHandleExp\",\
             \"args\":{\"call\":17,\"result\":45,\"result_name\":\"UR_RESULT_ERROR_INVALID_ARGUMENT\",\
             \"data\":\"0x10\",\"data_size\":120,\"fingerprint\":\"0xffffffffffffffff\"}}",
            "an exit says its result twice"
        );
        let descriptors = text(|line| line.descriptors(42, 43, Nanos(1_234_567), 1_000_000, 99));
        assert_eq!(
            descriptors,
            "{\"ph\":\"C\",\"pid\":42,\"tid\":43,\"ts\":234.567,\"cat\":\"urscope\",\"name\":\"descriptors\",\
             \"args\":{\"open\":99}}"
        );
        let read = parse_json(descriptors.as_bytes(), 1_000_000);
        assert_eq!(read, Ok(Record::Descriptors(Nanos(1_234_567), 99)));
        // Perfetto cannot hold it as a number.
        let large = Enter { values: Values { size: Some(1 << 63), ..Values::default() }, ..get() };
        assert!(text(|line| line.enter(1, 0, &large)).contains(r#""size":"0x8000000000000000""#));
    }

    #[test]
    fn no_step_of_a_torn_line_ends_with_the_decimal_point() {
        let mut moved = 0;
        for pid in [1, 12, 123, 1234, 12345, 123_456, 1_234_567] {
            for time in (0..16).map(|i| 10_u64.pow(i) + 7) {
                let mut enter = get();
                enter.time = Nanos(time);
                let mut line = Line::default();
                line.enter(pid, 0, &enter);
                let bytes = line.bytes().unwrap();
                let point = bytes.iter().position(|b| *b == b'.').unwrap();
                assert_ne!(point % STEP, STEP - 1, "pid {pid}, time {time}");
                moved += usize::from(bytes.windows(2).any(|pair| pair == b" ,"));
                serde_json::from_slice::<serde_json::Value>(&bytes[2..]).unwrap();
            }
        }
        assert!(moved > 0, "no case needed the space");
    }

    #[test]
    fn the_longest_record_fits() {
        let mut values = Values::NONE;
        (0..Values::FIELDS.len()).for_each(|place| values.set(place, u64::MAX));
        let longest = *Function::ALL.iter().max_by_key(|function| function.name().len()).unwrap();
        let result = UNIFIED_RUNTIME.results.iter().max_by_key(|known| known.name.len()).unwrap().code;
        let call = u64::MAX;
        let tid = u32::MAX;
        let time = Nanos(u64::MAX);
        text(|line| line.enter(u32::MAX, 0, &Enter { function: longest, call, tid, time, values }));
        let exit = Exit { function: longest, call, tid, time, result: ResultCode(result), values };
        text(|line| line.exit(u32::MAX, 0, &exit));
    }

    #[test]
    fn the_longest_end_fits() {
        let called = |_| u64::MAX / Function::COUNT as u64;
        let totals = Totals { returned: u64::MAX, lost: u64::MAX, called: &called, kept: &[u32::MAX; 2 * MOST_KEPT] };
        let most = u64::MAX;
        let clock = Clock { base_ns: most, monotonic_ns: most, boottime_ns: most, realtime_ns: most };
        let end = End::new(u32::MAX, "quick_exit", &totals, &clock);
        assert!(end.bytes().is_some());
    }

    #[test]
    fn the_number_of_lost_records_has_always_the_same_width() {
        for (lost, shown) in [(0, 0), (7, 7), (99_999_999, 99_999_999), (u64::MAX, 99_999_999)] {
            let read: Gap = serde_json::from_slice(&gap(lost)).unwrap();
            assert_eq!(read.lost, shown);
        }
        let mut line = Line::default();
        line.gap(7, 12);
        let line: serde_json::Value = serde_json::from_slice(&line.bytes().unwrap()[2..]).unwrap();
        assert_eq!(line, json!({"ph": "M", "name": "urscope_gap", "pid": 7, "tid": 7, "args": {"lost": 12}}));
    }
}
