//! Measures the CPU time of following a run that grows by 1,000 calls per second, and that of a whole analysis.
//!
//! The trace is synthetic and names this process as the traced one. One line is printed for each length of the run.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::{error::Error, path::Path};

use rustix::time::{ClockId, clock_gettime};
use urscope_analyzer::Options;
use urscope_command::view::model::{Follow, Model};
use urscope_schema::api::{Function, ResultCode};
use urscope_schema::call::{Enter, Exit, Nanos, Values};
use urscope_schema::trace::chrome::write::{self, Line};
use urscope_schema::trace::records::{Clock, Header};
use urscope_schema::trace::{FORMAT_VERSION, Form, file_name};
use urscope_schema::{handle::fingerprint, host::proc_stat::ProcStat};

/// The number of new calls per second.
const PACE: u64 = 1000;

/// The number of simulated seconds.
const SECONDS: u64 = 20;

/// The time between two records, in nanoseconds.
const TICK: u64 = 500;

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A trace that grows.
struct Trace {
    file: BufWriter<File>,
    base: u64,
    now: u64,
    calls: u64,
}

impl Trace {
    fn begin(folder: &Path, calls: u64) -> Result<Self, Box<dyn Error>> {
        let stat = fs::read_to_string("/proc/self/stat")?;
        let start = ProcStat::parse(&stat).ok_or("/proc/self/stat cannot be read")?.start;
        let pid = std::process::id();
        // All records are old enough that the analysis does not hold them back.
        let now = nanos(ClockId::Monotonic).saturating_sub(2 * TICK * (calls + PACE * SECONDS) + 60_000_000_000);
        let base = Clock::base(Nanos(now));
        let header = Header {
            format: FORMAT_VERSION,
            host: "bench".into(),
            boot_id: fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned(),
            pid,
            start,
            executable: "/opt/bench".into(),
            clock: Clock { base_ns: base, monotonic_ns: now, ..Clock::default() },
            ..Header::default()
        };
        let mut file = BufWriter::new(File::create(folder.join(file_name(Form::Chrome, "bench", pid, start, 0)))?);
        file.write_all(&write::start(pid, "bench", "run"))?;
        file.write_all(&write::record(pid, &header))?;
        Ok(Self { file, base, now, calls: 0 })
    }

    /// Writes `calls` calls, alternately a get and a put of handle data.
    fn grow(&mut self, calls: u64) -> io::Result<()> {
        let pointer = Some(0x7f00_0000_0000);
        let context = Some(0x5581_0000);
        for _ in 0..calls / 2 {
            let data = Some(0x5581_9000_0000 + self.calls % 64 * 0x90);
            let bytes = Some(fingerprint(&(self.calls % 64).to_le_bytes()));
            let got = Values { data, data_size: Some(120), fingerprint: bytes, ..Values::NONE };
            self.call(Function::urIPCGetMemHandleExp, Values { context, pointer, ..Values::NONE }, got)?;
            self.call(Function::urIPCPutMemHandleExp, Values { context, data, ..Values::NONE }, Values::NONE)?;
        }
        self.file.flush()
    }

    fn call(&mut self, function: Function, asked: Values, answered: Values) -> io::Result<()> {
        let pid = std::process::id();
        let tid = std::process::id();
        self.calls += 1;
        let call = self.calls;
        let time = Nanos(self.now);
        let mut line = Line::default();
        line.enter(pid, self.base, &Enter { function, call, tid, time, values: asked });
        self.file.write_all(line.bytes().unwrap_or_default())?;
        let time = Nanos(self.now + TICK);
        let result = ResultCode::SUCCESS;
        let mut line = Line::default();
        line.exit(pid, self.base, &Exit { function, call, tid, time, result, values: answered });
        self.file.write_all(line.bytes().unwrap_or_default())?;
        self.now += 2 * TICK;
        Ok(())
    }
}

fn measured<A, E>(work: impl FnOnce() -> Result<A, E>) -> Result<(A, f64), E> {
    let before = nanos(ClockId::ProcessCPUTime);
    let made = work()?;
    Ok((made, (nanos(ClockId::ProcessCPUTime) - before) as f64 / 1e9))
}

fn bench(calls: u64) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut trace = Trace::begin(folder.path(), calls)?;
    trace.grow(calls)?;
    let paths = [folder.path().to_owned()];
    let options = Options::default();
    let mut follow = Follow::default();
    let (_, first) = measured(|| follow.model(&paths, &options))?;
    let mut seconds = Vec::new();
    for _ in 0..SECONDS {
        trace.grow(PACE)?;
        let (model, second) = measured(|| follow.model(&paths, &options))?;
        if model.judgement.calls.values().sum::<u64>() != trace.calls {
            return Err("not all calls were analyzed".into());
        }
        seconds.push(second);
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds.get(seconds.len() / 2);
    let worst = seconds.last();
    let median = median.copied().unwrap_or_default();
    let worst = worst.copied().unwrap_or_default();
    let (_, whole) = measured(|| Model::analyze(&paths, &options))?;
    let mut out = io::stdout();
    writeln!(
        out,
        "{calls:>9} calls: {:.1} ms of CPU a second of following (at most {:.1}), first analysis {first:.2} s, \
         whole analysis {whole:.2} s, ratio {:.0}",
        median * 1e3,
        worst * 1e3,
        whole / median
    )?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let lengths: Vec<u64> = std::env::args().skip(1).map(|length| length.parse()).collect::<Result<_, _>>()?;
    let lengths = if lengths.is_empty() { vec![100_000, 5_000_000] } else { lengths };
    lengths.into_iter().try_for_each(bench)
}
