//! Writes synthetic traces with any number of hosts, processes and calls, in the format of the shim.
//!
//! In each cycle, each process of a host allocates memory, gets a handle, puts it and frees the memory. The next
//! process opens and closes the handle in between. Addresses are reused, as by an allocator. `--leak` and `--double`
//! add violations, so that a large run has a known number of findings.

mod output;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use clap::Parser;
use urscope_schema::api::{Function, ResultCode};
use urscope_schema::call::{Enter, Exit, Nanos, Values};
use urscope_schema::handle::fingerprint;
use urscope_schema::trace::chrome::write::{End, Totals};
use urscope_schema::trace::records::{Clock, EntryPoint, Header, Hex, Rights, Stack};
use urscope_schema::trace::{FORMAT_VERSION, Form, file_name};

use output::Output;

/// Write synthetic traces of a run.
#[derive(Parser)]
#[command(name = "trace-generator")]
pub(crate) struct Generator {
    /// The output directory. It contains one directory per host if there are several.
    directory: PathBuf,
    /// The number of hosts.
    #[arg(long, default_value_t = 1)]
    hosts: u32,
    /// The number of processes on each host.
    #[arg(long, default_value_t = 4)]
    ranks: u32,
    /// How often each process shares memory. Each time takes 12 records.
    #[arg(long, default_value_t = 1000)]
    cycles: u64,
    /// The number of different addresses that each process uses in turn.
    #[arg(long, default_value_t = 16)]
    live: u64,
    /// The number of handles that each process never puts and whose memory it never frees.
    #[arg(long, default_value_t = 0)]
    leak: u64,
    /// The number of mappings that each process closes twice.
    #[arg(long, default_value_t = 0)]
    double: u64,
    /// The number of call stacks of each process.
    #[arg(long, default_value_t = 4)]
    stacks: u64,
    /// End as if all processes were killed: the files have no footer, and room after the last record.
    #[arg(long)]
    killed: bool,
    /// Write the binary form.
    #[arg(long)]
    binary: bool,
}

/// The time between two records of a host, in nanoseconds.
const TICK: u64 = 400;

/// When the first host begins, in nanoseconds of `CLOCK_REALTIME`.
const START: u64 = 1_790_000_000_000_000_000;

/// How much later each host begins, in nanoseconds.
const LATER: u64 = 1_000_000;

impl Generator {
    /// Writes the traces.
    pub(crate) fn generate(&self) -> io::Result<()> {
        for host in 0..self.hosts {
            let directory = match self.hosts {
                1 => self.directory.clone(),
                _ => self.directory.join(format!("node{host:03}")),
            };
            fs::create_dir_all(&directory)?;
            self.host(host, &directory)?;
        }
        Ok(())
    }

    fn host(&self, host: u32, directory: &Path) -> io::Result<()> {
        // Hosts boot at different times, so their monotonic clocks differ.
        let mut now = 1_000_000_000_000 + u64::from(host) * 77_000_000_000;
        let mut ranks =
            (0..self.ranks).map(|rank| self.start(host, rank, now, directory)).collect::<io::Result<Vec<_>>>()?;
        for cycle in 0..self.cycles {
            let leaks = cycle < self.leak;
            let doubles = cycle >= self.leak && cycle < self.leak + self.double;
            let slot = if leaks { self.live + cycle } else { cycle % self.live };
            let mut shared = Vec::new();
            for rank in &mut ranks {
                shared.push(rank.share(&mut now, slot, cycle)?);
            }
            for (rank, (_, bytes)) in shared.iter().enumerate() {
                let next = (rank + 1) % ranks.len();
                if let Some(consumer) = ranks.get_mut(next) {
                    consumer.borrow(&mut now, slot, *bytes, doubles)?;
                }
            }
            if !leaks {
                for (rank, (pointer, _)) in ranks.iter_mut().zip(&shared) {
                    rank.unshare(&mut now, *pointer)?;
                }
            }
        }
        ranks.into_iter().try_for_each(|rank| if self.killed { rank.file.kill() } else { rank.end(now) })
    }

    fn start(&self, host: u32, rank: u32, now: u64, directory: &Path) -> io::Result<Rank> {
        let pid = 4000 + rank;
        let form = if self.binary { Form::Binary } else { Form::Chrome };
        let file = File::create(directory.join(file_name(form, "generator", pid, 100, 0)))?;
        let header = Header {
            format: FORMAT_VERSION,
            urscope: env!("CARGO_PKG_VERSION").into(),
            run: "generator".into(),
            host: format!("node{host:03}"),
            boot_id: format!("00000000-0000-0000-0000-{host:012}"),
            time_namespace: 1,
            pid_namespace: 1,
            pid,
            start: 100,
            parent: 1,
            forked: false,
            forked_ns: None,
            fork_returned_ns: None,
            uid: 1000,
            rights: Rights::default(),
            executable: "/opt/generator/generator".into(),
            command: vec!["generator".into()],
            rank: Some(rank),
            ranks_elsewhere: None,
            ranks: String::new(),
            late: false,
            clock: Clock {
                base_ns: Clock::base(Nanos(now)),
                monotonic_ns: now,
                boottime_ns: now,
                realtime_ns: START + u64::from(host) * LATER,
            },
        };
        let entry_point = EntryPoint {
            kind: "adapter-table".into(),
            via: 1,
            library: "libur_adapter_level_zero_v2.so.0".into(),
            slots: 30,
            ipc_slots: 11,
            ..EntryPoint::default()
        };
        let mut file = Output::begin(form, file, pid)?;
        file.record(&header)?;
        file.record(&entry_point)?;
        for stack in 1..=self.stacks.max(4) {
            let frames = (1..=6).map(|frame| Hex(0x5555_0000 + stack * 0x100 + frame * 8)).collect();
            file.record(&Stack { stack, frames, python: Vec::new() })?;
        }
        Ok(Rank { pid, file, called: [0; Function::COUNT], call: 0 })
    }
}

/// A process and its trace.
struct Rank {
    pid: u32,
    file: Output,
    called: [u64; Function::COUNT],
    call: u64,
}

impl Rank {
    fn share(&mut self, now: &mut u64, slot: u64, cycle: u64) -> io::Result<(u64, u64)> {
        let pointer = Some(0x7f00_0000_0000 + slot * 0x20_0000);
        let context = Some(0x5581_0000_1000);
        let size = Some(0x20_0000);
        let asked = Values { via: Some(1), context, device: Some(0x5581_2000), size, stack: Some(1), ..Values::NONE };
        self.call(now, Function::urUSMDeviceAlloc, asked, Values { pointer, ..Values::NONE })?;
        let data = Some(0x5581_9000_0000 + slot * 0x90);
        let bytes = fingerprint(&[u64::from(self.pid).to_le_bytes(), cycle.to_le_bytes()].concat());
        let asked = Values { via: Some(1), context, pointer, stack: Some(2), ..Values::NONE };
        let got = Values { data, data_size: Some(120), fingerprint: Some(bytes), ..Values::NONE };
        self.call(now, Function::urIPCGetMemHandleExp, asked, got)?;
        Ok((slot, bytes))
    }

    fn borrow(&mut self, now: &mut u64, slot: u64, bytes: u64, twice: bool) -> io::Result<()> {
        let context = Some(0x5581_0000_1000);
        let pointer = Some(0x7e00_0000_0000 + slot * 0x20_0000);
        let asked = Values {
            via: Some(1),
            context,
            device: Some(0x5581_2000),
            data: Some(0x7ffd_1234_5678),
            data_size: Some(120),
            fingerprint: Some(bytes),
            stack: Some(3),
            ..Values::NONE
        };
        self.call(now, Function::urIPCOpenMemHandleExp, asked, Values { pointer, ..Values::NONE })?;
        let asked = Values { via: Some(1), context, pointer, stack: Some(4), ..Values::NONE };
        for _ in 0..=u64::from(twice) {
            self.call(now, Function::urIPCCloseMemHandleExp, asked, Values::NONE)?;
        }
        Ok(())
    }

    fn unshare(&mut self, now: &mut u64, slot: u64) -> io::Result<()> {
        let context = Some(0x5581_0000_1000);
        let data = Some(0x5581_9000_0000 + slot * 0x90);
        let asked = Values { via: Some(1), context, data, stack: Some(2), ..Values::NONE };
        self.call(now, Function::urIPCPutMemHandleExp, asked, Values::NONE)?;
        let pointer = Some(0x7f00_0000_0000 + slot * 0x20_0000);
        let asked = Values { via: Some(1), context, pointer, stack: Some(1), ..Values::NONE };
        self.call(now, Function::urUSMFree, asked, Values::NONE)
    }

    fn call(&mut self, now: &mut u64, function: Function, asked: Values, answered: Values) -> io::Result<()> {
        self.call += 1;
        if let Some(called) = self.called.get_mut(function as usize) {
            *called += 1;
        }
        let call = self.call;
        let tid = self.pid;
        *now += TICK;
        let enter = Enter { function, call, tid, time: Nanos(*now), values: asked };
        *now += TICK;
        let exit = Exit { function, call, tid, time: Nanos(*now), result: ResultCode(0), values: answered };
        self.file.enter(&enter)?;
        self.file.exit(&exit)
    }

    fn end(self, now: u64) -> io::Result<()> {
        let called = |function: Function| self.called.get(function as usize).copied().unwrap_or_default();
        let totals = Totals { returned: self.call, lost: 0, called: &called, kept: &[] };
        let clock = Clock { base_ns: 0, monotonic_ns: now, boottime_ns: now, realtime_ns: START };
        let end = End::new(self.pid, "exit", &totals, &clock);
        self.file.end(&end)
    }
}
