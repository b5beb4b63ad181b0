//! The work of a command.
//!
//! The append calls create it from their arguments, and the thread of a stream performs it. Work on memory of the
//! device holds a reference to it, so that a free that comes too early cannot unmap it. Must never access memory before
//! it is performed, except for a fill pattern, the arguments of kernels and the descriptions of regions, which the
//! caller may change once the append call has returned.

use std::{ops::Range, ptr, slice, sync::Arc};

use crate::commands::observer::{self, Access};
use crate::events::event::{self, Event};
use crate::ffi::layout::{CopyRegion, Extent, KernelTimestampResult};
use crate::ffi::result::{Outcome, ZeResult};
use crate::ffi::{Address, Argument, HostFunction, In, UserData, handles::Handle};
use crate::kernels::launch::{Given, Launch};
use crate::memory::{self, Retained};
use crate::platform::clock;

/// What a command does, on memory that a C caller has named.
#[derive(Clone)]
pub struct Work {
    action: Action,
    /// The call of the observer that it comes from; 0 for none.
    call: u64,
}

#[derive(Clone)]
enum Action {
    /// A barrier, a signal or a wait.
    Nothing,
    /// Copies `length` bytes. The ranges may overlap.
    Copy { to: Location, from: Location, length: usize },
    /// Repeats a pattern in `length` bytes. It is empty only if `length` is 0. The last repetition may be cut.
    Fill { to: Location, pattern: Vec<u8>, length: usize },
    /// Copies a box of bytes, row by row: width in bytes, height in rows, depth in slices.
    CopyRegion { to: Grid, from: Grid, extent: [usize; 3] },
    /// Writes the time of the device: 8 bytes, in nanoseconds.
    Timestamp { to: Location },
    /// Writes the timestamps of events, each at an offset in bytes.
    EventTimestamps { to: Location, events: Vec<(Arc<Event>, usize)> },
    /// Runs a kernel.
    Launch { launch: Launch, groups: Extent },
    /// Runs kernels whose numbers of groups are in memory. The number of kernels is in memory, too; without
    /// it, one runs.
    LaunchIndirect { launches: Vec<Launch>, count: Option<Location>, groups: Location },
    /// Resets an event.
    Reset(Arc<Event>),
    /// Calls a function of the application.
    Call { function: HostFunction, data: UserData },
}

/// An address, and a reference that keeps memory of the device mapped. Other memory is the application's
/// responsibility.
#[derive(Clone)]
struct Location {
    address: usize,
    retained: Option<Retained>,
}

/// A location in rows and slices.
#[derive(Clone)]
struct Grid {
    first: Location,
    /// Bytes from one row to the next.
    row_pitch: usize,
    /// Bytes from one slice to the next.
    slice_pitch: usize,
}

/// A region of the source or the destination of a copy, as `zeCommandListAppendMemoryCopyRegion` takes it.
pub struct Region {
    grid: Grid,
    extent: [usize; 3],
}

impl Region {
    /// The region at `address`, with pitches in bytes: `INVALID_NULL_POINTER` without a description. With a slice pitch
    /// of 0, a slice has as many rows as the region; a depth of 0 means 1.
    pub(crate) fn new(
        address: Address,
        region: In<CopyRegion>,
        pitch: Argument<u32>,
        slice_pitch: Argument<u32>,
    ) -> Outcome<Self> {
        let CopyRegion { origin_x, origin_y, origin_z, width, height, depth } = region.read()?;
        let row_pitch = pitch.value() as usize;
        let slice_pitch = match slice_pitch.value() as usize {
            0 => row_pitch * height as usize,
            given => given,
        };
        let [origin, extent] = [[origin_x, origin_y, origin_z], [width, height, depth.max(1)]];
        let [origin, extent] = [origin, extent].map(|numbers| numbers.map(|number| number as usize));
        // SAFETY: ze_api.h promises this for the arguments of the same call.
        Ok(unsafe { Self::at(address, origin, extent, [row_pitch, slice_pitch]) })
    }

    /// A region of memory at `address`: where it begins, and its extent, in bytes, rows and slices; and the bytes from
    /// one row to the next, and from one slice to the next.
    ///
    /// # Safety
    /// As for [`Address::new`], for all of the region.
    pub unsafe fn at(address: Address, origin: [usize; 3], extent: [usize; 3], pitches: [usize; 2]) -> Self {
        let [x, y, z] = origin;
        let [row_pitch, slice_pitch] = pitches;
        let offset = x.wrapping_add(y.wrapping_mul(row_pitch)).wrapping_add(z.wrapping_mul(slice_pitch));
        let first = Location::new(address);
        let first = Location { address: first.address.wrapping_add(offset), ..first };
        Self { grid: Grid { first, row_pitch, slice_pitch }, extent }
    }
}

impl Work {
    fn new(action: Action) -> Self {
        Self { action, call: 0 }
    }

    /// With the call of the observer that this thread is in.
    fn observed(action: Action) -> Self {
        Self { action, call: observer::current_call() }
    }

    /// No work: for barriers, signals and waits.
    pub(crate) fn nothing() -> Self {
        Self::new(Action::Nothing)
    }

    /// Copies `length` bytes, which may overlap.
    pub fn copy(to: Address, from: Address, length: Argument<usize>) -> Self {
        Self::observed(Action::Copy { to: Location::new(to), from: Location::new(from), length: length.value() })
    }

    /// Fills `length` bytes with a pattern of any size: `INVALID_NULL_POINTER` without one, `INVALID_SIZE` for a size
    /// of 0.
    pub(crate) fn fill(
        to: Address,
        pattern: In<u8>,
        pattern_size: Argument<usize>,
        length: Argument<usize>,
    ) -> Outcome<Self> {
        pattern.check()?;
        if pattern_size.value() == 0 {
            return Err(ZeResult::INVALID_SIZE);
        }
        // Only the beginning of a pattern that is longer than the memory is read. The rest need not exist.
        Ok(Self::repeat(to, pattern.array(pattern_size.at_most(length))?, length))
    }

    /// Repeats a pattern in `length` bytes; the last repetition may be cut. An empty pattern changes nothing.
    pub fn repeat(to: Address, pattern: Vec<u8>, length: Argument<usize>) -> Self {
        let length = if pattern.is_empty() { 0 } else { length.value() };
        Self::observed(Action::Fill { to: Location::new(to), pattern, length })
    }

    /// Copies a box of bytes. The size of the box is that of the destination region.
    pub fn copy_region(to: Region, from: Region) -> Self {
        Self::observed(Action::CopyRegion { to: to.grid, from: from.grid, extent: to.extent })
    }

    pub(crate) fn timestamp(to: Address) -> Self {
        Self::new(Action::Timestamp { to: Location::new(to) })
    }

    /// Writes the timestamps of `count` events, at offsets in bytes. Without offsets the results follow one another.
    pub(crate) fn event_timestamps(
        to: Address,
        events: In<Handle<Event>>,
        offsets: In<usize>,
        count: Argument<u32>,
    ) -> Outcome<Self> {
        let events = events.objects(count)?;
        let offsets = if offsets.is_null() {
            (0..events.len()).map(|index| index * size_of::<KernelTimestampResult>()).collect()
        } else {
            offsets.array(count)?
        };
        Ok(Self::new(Action::EventTimestamps {
            to: Location::new(to),
            events: events.into_iter().zip(offsets).collect(),
        }))
    }

    pub(crate) fn launch(launch: Launch, groups: Extent) -> Self {
        Self::observed(Action::Launch { launch, groups })
    }

    /// Runs the first `count` of these kernels, without a count all. Their number and those of their groups are read
    /// when they run.
    pub(crate) fn launch_indirect(launches: Vec<Launch>, count: Option<Address>, groups: Address) -> Self {
        let groups = Location::new(groups);
        Self::observed(Action::LaunchIndirect { launches, count: count.map(Location::new), groups })
    }

    /// Calls a function of the application: `INVALID_ARGUMENT` if it is NULL.
    pub fn host_function(function: HostFunction, data: UserData) -> Outcome<Self> {
        function.check()?;
        Ok(Self::new(Action::Call { function, data }))
    }

    /// Whether it counts as work in a graph: a list must not append work after it has joined its parent.
    /// Barriers, signals, waits, resets and writes of timestamps do not count.
    pub(super) fn counts_as_work(&self) -> bool {
        use Action::{EventTimestamps, Nothing, Reset, Timestamp};
        !matches!(self.action, Nothing | Reset(_) | Timestamp { .. } | EventTimestamps { .. })
    }

    /// A copy of this work, with other events in place of those whose timestamps it writes.
    pub(super) fn with_events(&self, other: impl Fn(&Arc<Event>) -> Arc<Event>) -> Self {
        if let Action::EventTimestamps { to, events } = &self.action {
            let events = events.iter().map(|(event, offset)| (other(event), *offset)).collect();
            return Self::new(Action::EventTimestamps { to: to.clone(), events });
        }
        self.clone()
    }

    pub(super) fn resets(&self) -> Option<&Event> {
        if let Action::Reset(event) = &self.action { Some(event) } else { None }
    }

    /// The address ranges that it accesses. For a kernel, one byte at each pointer argument: which other
    /// memory it accesses is not known.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let of = |location: &Location, length: usize| location.address..location.address.saturating_add(length);
        let launches = match &self.action {
            Action::Launch { launch, .. } => slice::from_ref(launch),
            Action::LaunchIndirect { launches, .. } => launches,
            _ => &[],
        };
        let named = launches.iter().flat_map(Launch::pointers).map(|address| address..address.saturating_add(1));
        let ranges = match &self.action {
            Action::Nothing | Action::Reset(_) | Action::Launch { .. } | Action::Call { .. } => [None, None],
            Action::LaunchIndirect { launches, count, groups } => [
                count.as_ref().map(|count| of(count, size_of::<u32>())),
                Some(of(groups, launches.len() * size_of::<Extent>())),
            ],
            Action::Copy { to, from, length } => [Some(of(to, *length)), Some(of(from, *length))],
            Action::Fill { to, length, .. } => [Some(of(to, *length)), None],
            Action::CopyRegion { to, from, extent } => {
                [to, from].map(|grid| Some(of(&grid.first, grid.length(*extent))))
            }
            Action::Timestamp { to } => [Some(of(to, size_of::<u64>())), None],
            Action::EventTimestamps { to, events } => {
                let ends = events.iter().map(|(_, offset)| offset + size_of::<KernelTimestampResult>());
                [Some(of(to, ends.max().unwrap_or(0))), None]
            }
        };
        ranges.into_iter().flatten().chain(named).filter(|range| !range.is_empty())
    }

    pub(super) fn runs_kernels(&self) -> bool {
        matches!(self.action, Action::Launch { .. } | Action::LaunchIndirect { .. })
    }

    /// Whether it runs code of the application, which may need more of a stack than copies do.
    pub(super) fn runs_foreign_code(&self) -> bool {
        self.runs_kernels() || matches!(self.action, Action::Call { .. })
    }

    /// The kernel that it launches once, and with how many groups. `None` for other work and for indirect launches.
    pub(super) fn launched(&self) -> Option<(&Launch, Extent)> {
        if let Action::Launch { launch, groups } = &self.action { Some((launch, *groups)) } else { None }
    }

    /// Whether a launch has all that it needs.
    pub(super) fn can_run(&self) -> bool {
        self.launched().is_none_or(|(launch, _)| launch.can_run())
    }

    /// Whether it accesses memory of the application.
    pub(super) fn accesses_memory(&self) -> bool {
        !matches!(self.action, Action::Nothing | Action::Reset(_))
    }

    /// Resets an event, which must not be counter-based.
    pub(crate) fn reset(event: Arc<Event>) -> Self {
        Self::new(Action::Reset(event))
    }

    pub(super) fn perform(&self) {
        match &self.action {
            Action::Nothing => {}
            Action::Copy { to, from, length } => copy(to.at(0), from.at(0), *length),
            Action::Fill { to, pattern, length } => fill(to, pattern, *length),
            Action::CopyRegion { to, from, extent: [width, height, depth] } => {
                for slice in 0..*depth {
                    for row in 0..*height {
                        let at = |grid: &Grid| grid.first.at(slice * grid.slice_pitch + row * grid.row_pitch);
                        copy(at(to), at(from), *width);
                    }
                }
            }
            Action::Timestamp { to } => to.write(0, clock::now()),
            Action::EventTimestamps { to, events } => {
                for (event, offset) in events {
                    if let Some(result) = event::kernel_timestamps(event) {
                        to.write(*offset, result);
                    }
                }
            }
            Action::Launch { launch, groups } => launch.run([groups.x, groups.y, groups.z]),
            Action::LaunchIndirect { launches, count, groups } => {
                let count = count.as_ref().map_or(launches.len(), |count| count.read::<u32>(0) as usize);
                for (index, launch) in launches.iter().take(count).enumerate() {
                    launch.run(groups.read(index * size_of::<Extent>()));
                }
            }
            Action::Reset(event) => event.signal.perform_reset(),
            Action::Call { function, data } => function.call(*data),
        }
    }

    /// Whether the observer is told of it if it accesses memory that processes share.
    pub(super) fn is_observed(&self) -> bool {
        use Action::{Copy, CopyRegion, Fill, Launch, LaunchIndirect};
        matches!(self.action, Copy { .. } | Fill { .. } | CopyRegion { .. } | Launch { .. } | LaunchIndirect { .. })
    }

    /// Tells the observer which shared memory it has accessed since `begin`.
    pub(super) fn tell(&self, begin: u64) {
        let end = clock::monotonic();
        self.each_shared(|access| observer::tell(&Access { begin, end, ..access }));
    }

    /// Whether it is a copy, fill or kernel, and given memory that other processes may have.
    pub(super) fn uses_shared_memory(&self) -> bool {
        let mut uses = false;
        self.each_shared(|_| uses = true);
        uses
    }

    /// The accesses of a copy, fill or kernel to memory that other processes may have, without times. A kernel may
    /// access what is behind its pointer arguments, up to the end of the memory; what it reaches by other pointers is
    /// not known.
    fn each_shared(&self, mut with: impl FnMut(Access)) {
        let mut tell = |first: &Location, at: usize, [width, pitch, rows]: [usize; 3], writes: bool| {
            if width == 0 || rows == 0 {
                return;
            }
            let hull = (rows - 1).saturating_mul(pitch).saturating_add(width);
            let [width, pitch, rows] = if pitch <= width { [hull, hull, 1] } else { [width, pitch, rows] };
            let shared = first.retained.as_ref().and_then(|memory| memory.shared_at(first.address + at, hull));
            if let Some((memory, offset)) = shared {
                let [length, pitch, rows] = [width, pitch, rows].map(|number| number as u64);
                let call = self.call;
                let access = writes.into();
                with(Access { call, begin: 0, end: 0, memory, offset, length, pitch, rows, access });
            }
        };
        match &self.action {
            Action::Copy { to, from, length } => {
                tell(to, 0, [*length, 0, 1], true);
                tell(from, 0, [*length, 0, 1], false);
            }
            Action::Fill { to, length, .. } => tell(to, 0, [*length, 0, 1], true),
            Action::CopyRegion { to, from, extent: [width, height, depth] } => {
                for (grid, writes) in [(to, true), (from, false)] {
                    if grid.slice_pitch == height * grid.row_pitch {
                        tell(&grid.first, 0, [*width, grid.row_pitch, height * depth], writes);
                        continue;
                    }
                    for slice in 0..*depth {
                        tell(&grid.first, slice * grid.slice_pitch, [*width, grid.row_pitch, *height], writes);
                    }
                }
            }
            Action::Launch { launch, .. } => self.each_given(slice::from_ref(launch), with),
            Action::LaunchIndirect { launches, .. } => self.each_given(launches, with),
            _ => {}
        }
    }

    /// What kernels are given of memory that other processes may have, without times.
    fn each_given(&self, launches: &[Launch], mut with: impl FnMut(Access)) {
        for Given { address, memory, writes } in launches.iter().flat_map(|launch| &launch.given) {
            if let Some((memory, offset, length)) = memory.shared_from(*address) {
                let call = self.call;
                let access = 2 + u64::from(*writes);
                with(Access { call, begin: 0, end: 0, memory, offset, length, pitch: length, rows: 1, access });
            }
        }
    }
}

impl Grid {
    /// The bytes from the first to the last one of a box.
    fn length(&self, [width, height, depth]: [usize; 3]) -> usize {
        if width == 0 || height == 0 || depth == 0 {
            return 0;
        }
        let rows = (height - 1).saturating_mul(self.row_pitch);
        (depth - 1).saturating_mul(self.slice_pitch).saturating_add(rows).saturating_add(width)
    }
}

impl Location {
    fn new(address: Address) -> Self {
        let address = address.number();
        Self { address, retained: memory::retain(address) }
    }

    fn at(&self, offset: usize) -> *mut u8 {
        (self.address + offset) as *mut u8
    }

    fn read<T: Copy>(&self, offset: usize) -> T {
        // SAFETY: as for copy; the address need not be aligned. Only numbers are read, for which all bytes are valid.
        unsafe { ptr::read_unaligned(self.at(offset).cast()) }
    }

    fn write<T>(&self, offset: usize, value: T) {
        // SAFETY: as for copy; the address need not be aligned.
        unsafe { ptr::write_unaligned(self.at(offset).cast(), value) };
    }
}

fn copy(to: *mut u8, from: *const u8, length: usize) {
    // SAFETY: the addresses and the length are arguments of an append call, for which ze_api.h promises ranges of this
    // length that stay valid until the command has completed. The work holds a reference to ranges of the device. The
    // ranges may overlap.
    unsafe { ptr::copy(from, to, length) };
}

/// Writes the pattern once, and then copies what is there, twice as much every time.
fn fill(to: &Location, pattern: &[u8], length: usize) {
    if let [byte] = pattern {
        // SAFETY: as for copy.
        unsafe { ptr::write_bytes(to.at(0), *byte, length) };
        return;
    }
    let mut done = pattern.len().min(length);
    copy(to.at(0), pattern.as_ptr(), done);
    while done < length {
        let step = done.min(length - done);
        copy(to.at(done), to.at(0), step);
        done += step;
    }
}
