//! What the writer wrote, the reader reads: whole, cut short at any byte, and mixed with what is not ours.

use std::io::BufReader;

use proptest::prelude::*;
use urscope_schema::api::{Function, ResultCode};
use urscope_schema::call::{Access, Enter, Executed, Exit, Nanos, Rows, SyncKind, Synchronization, Values};
use urscope_schema::trace::chrome::read::Reader;
use urscope_schema::trace::chrome::write::{self, CLOSE, End, Line, Totals};
use urscope_schema::trace::records::{
    Clock, Device, EntryPoint, Footer, Found, Header, Hex, Module, PythonFrame, Rights, Stack,
};
use urscope_schema::trace::{Record, Skipped, Why};

fn read(bytes: &[u8]) -> Vec<Result<Record, Skipped>> {
    // A small buffer, so that lines cross its edges.
    Reader::new(BufReader::with_capacity(61, bytes)).map(|item| item.expect("memory does not fail")).collect()
}

fn lines(records: &[Record], base: u64) -> Vec<Vec<u8>> {
    records
        .iter()
        .map(|record| {
            let mut line = Line::default();
            match record {
                Record::Enter(enter) => line.enter(42, base, enter),
                Record::Exit(exit) => line.exit(42, base, exit),
                Record::InnerEnter(enter) => line.inner_enter(42, base, enter),
                Record::InnerExit(exit) => line.inner_exit(42, base, exit),
                Record::Header(header) => return write::record(42, &**header),
                Record::EntryPoint(entry_point) => return write::record(42, &**entry_point),
                Record::Device(device) => return write::record(42, &**device),
                Record::Module(module) => return write::record(42, &**module),
                Record::Stack(stack) => return write::record(42, &**stack),
                Record::Gap(gap) => return write::record(42, gap),
                Record::Exec(exec) => return write::record(42, exec),
                Record::Footer(footer) => {
                    let called = |function: Function| footer.per_function.get(function.name()).copied().unwrap_or(0);
                    let returned = footer.returned;
                    let lost = footer.lost;
                    let totals = Totals { returned, lost, called: &called, kept: &footer.kept };
                    let end = End::new(42, &footer.how, &totals, &footer.clock);
                    return end.bytes().expect("an end fits").strip_suffix(CLOSE.as_bytes()).unwrap().to_vec();
                }
                Record::ThreadName(tid, name) => return write::thread_name(42, *tid, name),
                Record::Descriptors(time, open) => line.descriptors(42, 42, *time, base, *open),
                Record::Executed(executed) => line.executed(42, base, executed),
                Record::Synchronization(by) => line.synchronization(42, base, by),
                Record::Note(time, text) => return write::note(42, 42, *time, base, text),
                Record::Finding(time, found) => return write::finding(42, 42, *time, base, found),
                Record::ProcessName(name) => return write::start(42, name, "run"),
                Record::Foreign => unreachable!("not written by us"),
            }
            line.bytes().expect("a call record fits").to_vec()
        })
        .collect()
}

fn synchronization(base: u64, kind: SyncKind, [queue, event]: [Option<u64>; 2]) -> Synchronization {
    Synchronization { tid: 43, time: Nanos(base + 1_002_000), kind, queue, event }
}

fn sample_trace() -> (u64, Vec<Record>) {
    let base = Clock::GRID;
    let header = Header {
        format: 1,
        executable: "/opt/app \"x\"\\".into(),
        rights: Rights { ptrace_scope: Some(1), dumpable: Some(false), ..Rights::default() },
        clock: Clock { base_ns: base, ..Clock::default() },
        ..Header::default()
    };
    let values = Values { context: Some(1), pointer: Some(0xffff_8000_0000_0000), via: Some(0), ..Values::default() };
    let enter =
        Enter { function: Function::urIPCGetMemHandleExp, call: 1, tid: 43, time: Nanos(base + 1_000_001), values };
    let answer = Values { data: Some(0x5555), data_size: Some(120), fingerprint: Some(u64::MAX), ..Values::default() };
    let exit = Exit {
        function: enter.function,
        call: 1,
        tid: 43,
        time: Nanos(base + 1_000_999),
        result: ResultCode::SUCCESS,
        values: answer,
    };
    let python = PythonFrame { function: "f".into(), file: "/ä\".py".into(), ..PythonFrame::default() };
    let entry_point = EntryPoint { kind: "adapter-table".into(), slots: 4, ..EntryPoint::default() };
    let records = vec![
        Record::ProcessName("app".into()),
        Record::Header(Box::new(header)),
        Record::ThreadName(43, "wörker\n".into()),
        Record::EntryPoint(Box::new(entry_point)),
        Record::Device(Box::new(Device {
            via: 1,
            device: Hex(0xd0),
            native: Some(Hex(0xd1)),
            index: Some(3),
            name: "Software Device".into(),
        })),
        Record::Device(Box::new(Device { device: Hex(0xd1), ..Device::default() })),
        Record::Module(Box::new(Module { path: "/opt/app".into(), start: Hex(1 << 63), ..Module::default() })),
        Record::Stack(Box::new(Stack { stack: 1, frames: vec![Hex(0x1234), Hex(u64::MAX)], python: vec![python] })),
        Record::Enter(enter),
        Record::Exit(exit),
        Record::Descriptors(Nanos(base + 1_001_000), 17),
        Record::Executed(Executed {
            call: 1,
            tid: 44,
            begin: Nanos(base + 1_001_001),
            end: Nanos(base + 1_001_999),
            memory: 7,
            rows: Rows { offset: 100, length: 16, pitch: 64, count: 3 },
            access: Access::MayWrite,
        }),
        Record::Synchronization(synchronization(base, SyncKind::Signals, [Some(u64::MAX), Some(1)])),
        Record::Synchronization(synchronization(base, SyncKind::Completed, [None, Some(2)])),
        Record::Synchronization(synchronization(base, SyncKind::NotFollowed, [None; 2])),
        Record::Note(Nanos(base + 2_000_000), "said \"so\"".into()),
        Record::Finding(
            Nanos(base + 2_000_001),
            Box::new(Found { rule: "double-put".into(), severity: "error".into(), message: "put \"again\"".into() }),
        ),
        Record::Footer(Box::new(Footer {
            how: "exit".into(),
            calls: 12,
            returned: 11,
            lost: 1,
            per_function: [("urIPCGetMemHandleExp".into(), 10), ("urUSMFree".into(), 2)].into(),
            kept: vec![0, 17, u32::MAX],
            clock: Clock { base_ns: base, monotonic_ns: base + 7, boottime_ns: base + 8, realtime_ns: u64::MAX },
        })),
    ];
    (base, records)
}

#[test]
fn a_whole_trace_is_read_as_it_was_written() {
    let (base, records) = sample_trace();
    let mut bytes = lines(&records, base).concat();
    bytes.extend_from_slice(CLOSE.as_bytes());
    serde_json::from_slice::<Vec<serde_json::Value>>(&bytes).expect("a closed trace is strict JSON");

    let mut reader = Reader::new(&bytes[..]);
    let back: Vec<_> = reader.by_ref().map(|item| item.unwrap().unwrap()).collect();
    assert_eq!(back, records);
    assert!(reader.closed());
    assert_eq!(reader.offset(), bytes.len() as u64);
}

#[test]
fn a_trace_cut_at_any_byte_keeps_every_whole_record() {
    let (base, records) = sample_trace();
    let lines = lines(&records, base);
    let bytes = lines.concat();
    for cut in 0..=bytes.len() {
        let mut padded = bytes[..cut].to_vec();
        padded.resize(bytes.len() + 4096, b' ');
        let mut end = 0;
        let whole = lines
            .iter()
            .take_while(|line| {
                end += line.len();
                end <= cut
            })
            .count();
        let back = read(&padded);
        let good: Vec<_> = back.iter().filter_map(|item| item.as_ref().ok()).cloned().collect();
        assert_eq!(good, records[..whole], "cut at {cut}");
        for bad in back.iter().filter_map(|item| item.as_ref().err()) {
            assert_eq!(bad.why, Why::Torn, "cut at {cut}");
        }
        assert!(back.len() <= whole + 1, "cut at {cut}");
    }
}

#[test]
fn what_is_not_ours_is_skipped_and_reported_with_its_position() {
    let (base, records) = sample_trace();
    let good = lines(&records[..2], base).concat();
    let bad = [
        &b"\n,{\"ph\":\"X\",\"name\":\"somebody else\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":2}"[..],
        b"\n,garbage",
        b"\n,{\"ph\":\"B\",\"cat\":\"api\",\"name\":\"urIPCGetMemHandleExp\",\"pid\":1,\"tid\":-1,\"ts\":1,\"args\":{\"call\":1}}",
        b"\n,{\"ph\":\"E\",\"cat\":\"api\",\"name\":\"urUSMFree\",\"pid\":1,\"tid\":1,\"ts\":1,\"args\":{\"call\":1}}",
        b"\n,\xff\xfe",
        b"\n\0\0\0",
        b"\n",
    ];
    let mut bytes = good.clone();
    bytes.extend(bad.concat());
    let back = read(&bytes);
    assert_eq!(back[2], Ok(Record::Foreign));
    let skipped: Vec<_> = back[3..].iter().map(|item| item.as_ref().expect_err("bad").clone()).collect();
    assert_eq!(skipped.len(), 5);
    assert_eq!(skipped[0].offset, (good.len() + bad[0].len() + 1) as u64);
    assert_eq!(skipped[0].line, 5);
    assert!(matches!(skipped[1].why, Why::Unfit(_)) && matches!(skipped[2].why, Why::Unfit(_)), "{skipped:?}");
    assert!(matches!(skipped[4].why, Why::Damaged(_)), "{skipped:?}");
}

/// White space counts where something stands behind it: left out, it would make one number of two.
#[test]
fn white_space_inside_a_line_is_kept_in_whatever_pieces_the_file_is_read() {
    let spaces = " ".repeat(200);
    let event = format!("{{\"ph\":\"M\",\"name\":\"process_name\",\"args\":{{\"name\":\"a{spaces}b\"}}}}{spaces}\n");
    let bytes = format!("[\n{event},{{\"ph\":\"M\",\"tid\":1{spaces}2}}\n{spaces}");
    assert_eq!(read(bytes.as_bytes())[0], Ok(Record::ProcessName(format!("a{spaces}b"))));
    let whole: Vec<_> = Reader::new(bytes.as_bytes()).map(Result::unwrap).collect();
    assert_eq!(read(bytes.as_bytes()), whole);
}

#[test]
fn a_line_without_end_does_not_fill_the_memory() {
    let mut bytes = b"[\n".to_vec();
    bytes.resize(3 << 20, b'x');
    bytes.extend(b"\n,{\"ph\":\"M\",\"name\":\"process_name\",\"args\":{\"name\":\"a\"}}");
    let back = read(&bytes);
    assert!(matches!(back[0], Err(Skipped { why: Why::TooLong, line: 2, .. })));
    assert_eq!(back[1], Ok(Record::ProcessName("a".into())));
}

proptest! {
    #[test]
    fn any_call_comes_back_as_it_was(
        row in 0..Function::COUNT, call in 1_u64.., tid: u32, time in 0_u64..1 << 53,
        result: u32, words: [Option<u64>; 19],
    ) {
        let mut values = Values::NONE;
        for (place, word) in words.into_iter().enumerate() {
            if let Some(word) = word {
                values.set(place, word);
            }
        }
        let function = Function::ALL[row];
        let enter = Enter { function, call, tid, time: Nanos(time), values };
        let exit = Exit { function, call, tid, time: Nanos(time), result: ResultCode(result), values };
        let records = [Record::Enter(enter), Record::InnerEnter(enter), Record::InnerExit(exit), Record::Exit(exit)];
        let bytes = lines(&records, 0).concat();
        let back: Vec<_> = read(&bytes).into_iter().map(Result::unwrap).collect();
        prop_assert_eq!(&back[..], &records[..]);
    }

    #[test]
    fn no_input_ends_the_reading(bytes: Vec<u8>) {
        for _ in read(&bytes) {}
    }
}
