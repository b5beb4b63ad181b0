//! The arguments of kernels that are launched by the CUDA driver.
//!
//! A launch passes the address of each argument, and neither number, sizes nor types; or the address of a buffer with
//! all of them. The driver knows the sizes (`cuFuncGetParamInfo` and `cuKernelGetParamInfo`, since CUDA 12.4). It is
//! asked at the first launch of a kernel: the answer is kept until code is unloaded. An argument may be a structure
//! with pointers in it, so that each aligned word may be one.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null_mut, with_exposed_provenance};
use std::sync::atomic::{AtomicPtr, AtomicU16, AtomicU32, AtomicUsize, Ordering, fence};

use crate::raw::memory::checked::{read, words};

type ParamInfo = unsafe extern "C" fn(usize, usize, *mut usize, *mut usize) -> c_int;

/// The driver's functions that tell the size of a parameter: of a `CUfunction`, and of a `CUkernel`, which libcudart
/// passes to a launch in the place of a `CUfunction`. Each refuses the other kind of handle.
pub(super) const PARAM_INFO: [&CStr; 2] = [c"cuFuncGetParamInfo", c"cuKernelGetParamInfo"];

/// `CUDA_ERROR_INVALID_VALUE`: the kernel has no parameter with this number.
const INVALID_VALUE: c_int = 1;

/// `CUDA_ERROR_NOT_FOUND`: the driver has no such function.
const NOT_FOUND: c_int = 500;

/// What a list of options in the place of the addresses says (`CU_LAUNCH_PARAM_*`): its end, the buffer of the
/// arguments, and the address of the buffer's size.
const END: usize = 0;
const BUFFER: usize = 1;
const BUFFER_SIZE: usize = 2;

/// The functions of [`PARAM_INFO`]; null where the driver has none.
static FUNCTIONS: [AtomicPtr<c_void>; 2] = [const { AtomicPtr::new(null_mut()) }; 2];

/// Makes functions of the driver known, where it has them. A library in front of the driver has none.
///
/// # Safety
///
/// Each is null or the function of this name in [`PARAM_INFO`] (`cuda.h`).
pub(super) unsafe fn set_param_info(functions: [*mut c_void; 2]) {
    for (known, function) in FUNCTIONS.iter().zip(functions).filter(|(_, function)| !function.is_null()) {
        known.store(function, Ordering::Release);
    }
}

/// The most parameters of a kernel that is looked into.
const MAX_PARAMETERS: usize = 120;

/// More bytes than the arguments of a kernel may have (CUDA C++ Programming Guide: 32,764).
const MAX_BUFFER: usize = 1 << 15;

/// The size of a word.
const SIZE: usize = size_of::<u64>();

/// At how many places the sizes of a kernel may be kept.
const PROBES: usize = 4;

/// The sizes of the parameters of one kernel. Threads read and write it without a lock.
struct Kept {
    /// Odd while a thread writes.
    sequence: AtomicU32,
    /// The [`LOADED`] with which it was written.
    loaded: AtomicU32,
    kernel: AtomicUsize,
    count: AtomicUsize,
    /// How many words each parameter has.
    words: [AtomicU16; MAX_PARAMETERS],
}

static KEPT: [Kept; 1024] = [const {
    Kept {
        sequence: AtomicU32::new(0),
        loaded: AtomicU32::new(0),
        kernel: AtomicUsize::new(0),
        count: AtomicUsize::new(0),
        words: [const { AtomicU16::new(0) }; MAX_PARAMETERS],
    }
}; 1024];

/// How often code was unloaded, from 1 on.
static LOADED: AtomicU32 = AtomicU32::new(1);

/// Forgets all kernels, because code is about to be unloaded: later kernels may have the same handles.
#[cold]
pub(super) fn forget_kernels() {
    LOADED.fetch_add(1, Ordering::AcqRel);
}

/// The number of whole words of each parameter of a kernel.
struct Parameters {
    count: usize,
    /// As many are set as `count` says.
    words: [MaybeUninit<u16>; MAX_PARAMETERS],
}

impl Parameters {
    const fn none() -> Self {
        Self { count: 0, words: [const { MaybeUninit::uninit() }; MAX_PARAMETERS] }
    }

    fn words(&self) -> &[u16] {
        let set = self.words.get(..self.count).unwrap_or_default();
        // SAFETY: so many are set.
        unsafe { set.assume_init_ref() }
    }
}

impl Kept {
    /// The places at which a kernel may be kept.
    fn places(kernel: usize) -> impl Iterator<Item = &'static Self> {
        // Handles are addresses of objects of some 64 bytes and more.
        let first = (kernel >> 6 ^ kernel >> 14) % KEPT.len();
        (0..PROBES).filter_map(move |probe| KEPT.get((first + probe) % KEPT.len()))
    }

    /// Whether a kernel is kept here since code was last unloaded; if so, `parameters` are its own.
    fn read(&self, kernel: usize, parameters: &mut Parameters) -> bool {
        let before = self.sequence.load(Ordering::Acquire);
        let is_its = self.kernel.load(Ordering::Relaxed) == kernel
            && self.loaded.load(Ordering::Relaxed) == LOADED.load(Ordering::Acquire);
        if !is_its || before % 2 == 1 {
            return false;
        }
        let count = self.count.load(Ordering::Relaxed).min(MAX_PARAMETERS);
        for (words, kept) in parameters.words.iter_mut().zip(&self.words).take(count) {
            words.write(kept.load(Ordering::Relaxed));
        }
        parameters.count = count;
        fence(Ordering::Acquire);
        self.sequence.load(Ordering::Relaxed) == before
    }

    /// Keeps the parameters of a kernel, unless another thread writes here. `loaded` was read before the driver was
    /// asked.
    fn write(&self, kernel: usize, loaded: u32, parameters: &Parameters) {
        let before = self.sequence.load(Ordering::Relaxed) & !1;
        if self.sequence.compare_exchange(before, before + 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return;
        }
        fence(Ordering::Release);
        self.kernel.store(kernel, Ordering::Relaxed);
        self.loaded.store(loaded, Ordering::Relaxed);
        self.count.store(parameters.count, Ordering::Relaxed);
        let kept = self.words.iter().zip(parameters.words());
        kept.for_each(|(kept, words)| kept.store(*words, Ordering::Relaxed));
        self.sequence.store(before.wrapping_add(2), Ordering::Release);
    }
}

/// The size of a kernel's parameter in bytes. The error is that of the driver: for the other kind of handle, or behind
/// the last parameter.
fn size(of: &AtomicPtr<c_void>, kernel: usize, index: usize) -> Result<usize, c_int> {
    let function = of.load(Ordering::Acquire);
    if function.is_null() {
        return Err(NOT_FOUND);
    }
    let mut offset = 0;
    let mut size = 0;
    // SAFETY: the stored function has this signature. The caller of the launch passes the kernel to the driver, which
    // refuses an index that it does not have.
    let result = unsafe {
        let function = std::mem::transmute::<*mut c_void, ParamInfo>(function);
        function(kernel, index, &raw mut offset, &raw mut size)
    };
    if result == 0 { Ok(size) } else { Err(result) }
}

/// Finds the parameters of a kernel, as they are kept or as the driver tells. It is false if the driver does not tell,
/// and of a kernel with too many.
fn find(kernel: usize, parameters: &mut Parameters) -> bool {
    Kept::places(kernel).any(|place| place.read(kernel, parameters)) || ask(kernel, parameters)
}

#[cold]
fn ask(kernel: usize, parameters: &mut Parameters) -> bool {
    let loaded = LOADED.load(Ordering::Acquire);
    if !FUNCTIONS.iter().any(|of| is_told(of, kernel, parameters)) {
        return false;
    }
    let is_old = |place: &&Kept| place.loaded.load(Ordering::Relaxed) != loaded;
    let place = Kept::places(kernel).find(is_old).or_else(|| Kept::places(kernel).next());
    place.inspect(|place| place.write(kernel, loaded, parameters));
    true
}

/// Whether a function of the driver tells the parameters of a kernel.
fn is_told(of: &AtomicPtr<c_void>, kernel: usize, parameters: &mut Parameters) -> bool {
    parameters.count = 0;
    for index in 0.. {
        match size(of, kernel, index) {
            Ok(size) => {
                let Some(words) = parameters.words.get_mut(index) else { return false };
                words.write((size / SIZE) as u16);
                parameters.count = index + 1;
            }
            Err(INVALID_VALUE) => break,
            Err(_) => return false,
        }
    }
    true
}

/// The word at an address of the caller's.
///
/// # Safety
///
/// The caller passes it to the driver, which is about to read it.
unsafe fn word(address: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { with_exposed_provenance::<usize>(address).read_unaligned() }
}

/// Address and size of the buffer that a list of options names; `None` if it has options that this does not know, or
/// cannot be read.
fn buffer(extra: usize) -> Option<(usize, usize)> {
    let mut address = 0;
    let mut size = 0;
    for place in (extra..).step_by(2 * SIZE) {
        let value = || read::<usize>(place + SIZE);
        match read(place)? {
            END => break,
            BUFFER => address = value()?,
            BUFFER_SIZE => size = read(value()?)?,
            _ => return None,
        }
    }
    (address != 0).then_some((address, size))
}

/// Shows `visit` the aligned words of the arguments of a launch of `kernel`; false if it is not known where they are.
/// `params` is 0 or the address of the list of their addresses, and `extra` is 0 or that of a list of options.
pub(super) fn each_word(kernel: usize, params: usize, extra: usize, visit: &mut dyn FnMut(u64)) -> bool {
    if params != 0 {
        let mut parameters = Parameters::none();
        if !find(kernel, &mut parameters) {
            return false;
        }
        let words = parameters.words().iter().enumerate().filter(|(_, words)| **words > 0);
        for (index, words) in words {
            // SAFETY: the driver knows the kernel, and is about to read the address of each argument in the list, and
            // as many words there.
            unsafe {
                let from = word(params + index * SIZE);
                (0..usize::from(*words)).for_each(|at| visit(word(from + at * SIZE) as u64));
            }
        }
    } else if extra != 0 {
        let Some((buffer, size)) = buffer(extra).filter(|(_, size)| *size <= MAX_BUFFER) else { return false };
        let read = words(buffer, size / SIZE).map(|word| visit(word as u64)).count();
        return read == size / SIZE;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often the driver was asked.
    static ASKED: AtomicUsize = AtomicUsize::new(0);

    /// A kernel with parameters of 4, 24, 8 and 12 bytes, whose handle is `known`.
    ///
    /// # Safety
    ///
    /// `size` is a variable.
    unsafe fn param_info(known: usize, kernel: usize, index: usize, size: *mut usize) -> c_int {
        ASKED.fetch_add(1, Ordering::Relaxed);
        if kernel != known {
            return 400; // INVALID_HANDLE
        }
        let Some(bytes) = [4, 24, 8, 12].get(index) else { return INVALID_VALUE };
        // SAFETY: the caller's promise.
        unsafe { *size = *bytes };
        0
    }

    unsafe extern "C" fn of_function(kernel: usize, index: usize, _offset: *mut usize, size: *mut usize) -> c_int {
        // SAFETY: as there.
        unsafe { param_info(7, kernel, index, size) }
    }

    unsafe extern "C" fn of_kernel(kernel: usize, index: usize, _offset: *mut usize, size: *mut usize) -> c_int {
        // SAFETY: as there.
        unsafe { param_info(8, kernel, index, size) }
    }

    fn found(kernel: usize, params: usize, extra: usize) -> Option<Vec<u64>> {
        let mut all = vec![];
        each_word(kernel, params, extra, &mut |word| all.push(word)).then_some(all)
    }

    /// The address of words that are read behind it.
    fn address_of<T>(all: &[T]) -> usize {
        all.as_ptr().expose_provenance()
    }

    /// One test, because the driver's functions are those of the process.
    #[test]
    fn each_word_of_each_argument_may_be_a_pointer() {
        let number = [1_u32];
        let structure = [2_u64, 3, 4];
        let pointer = [5_u64];
        let odd = [6_u32, 0, 7];
        let addresses = [address_of(&number), address_of(&structure), address_of(&pointer), address_of(&odd)];
        let list = address_of(&addresses);
        assert_eq!(found(7, list, 0), None, "the sizes are not known");
        // SAFETY: they have that signature; null changes nothing.
        unsafe {
            set_param_info([of_function as *mut c_void, null_mut()]);
            set_param_info([null_mut(); 2]);
        }
        let all = Some(vec![2, 3, 4, 5, 6]);
        assert_eq!((found(7, list, 0), found(8, list, 0)), (all.clone(), None));
        // SAFETY: as above.
        unsafe { set_param_info([null_mut(), of_kernel as *mut c_void]) };
        assert_eq!([7, 8].map(|kernel| found(kernel, list, 0)), [all.clone(), all.clone()]);
        let asked = ASKED.load(Ordering::Relaxed);
        assert_eq!([7, 8].map(|kernel| found(kernel, list, 0)), [all.clone(), all.clone()]);
        assert_eq!(ASKED.load(Ordering::Relaxed), asked, "the sizes are kept");
        forget_kernels();
        assert_eq!(found(7, list, 0), all);
        assert_eq!(ASKED.load(Ordering::Relaxed), asked + 5, "code was unloaded");
        assert_eq!((found(9, list, 0), found(7, 0, 0)), (None, Some(vec![])));
    }

    #[test]
    fn arguments_in_a_buffer_are_words_of_it() {
        let arguments = [1_u64, 2, 3];
        let size = [20_usize];
        let options = [BUFFER_SIZE, address_of(&size), BUFFER, address_of(&arguments), END];
        assert_eq!(found(7, 0, address_of(&options)), Some(vec![1, 2]));
        assert_eq!(found(7, 0, address_of(&[BUFFER, address_of(&arguments), 3, 0, END])), None, "an unknown option");
        assert_eq!(found(7, 0, address_of(&[END])), None);
    }

    #[test]
    fn of_more_kernels_than_there_is_room_the_latest_are_kept() {
        let of = |kernel: usize| {
            let mut parameters = Parameters::none();
            parameters.words[0].write(kernel as u16);
            Parameters { count: 1, ..parameters }
        };
        let place = Kept::places(0x1000).next().unwrap();
        let read = |kernel| {
            let mut parameters = of(0);
            place.read(kernel, &mut parameters).then(|| parameters.words()[0])
        };
        place.write(0x1000, LOADED.load(Ordering::Relaxed), &of(1));
        assert_eq!(read(0x1000), Some(1));
        place.write(0x2000, LOADED.load(Ordering::Relaxed), &of(2));
        assert_eq!((read(0x1000), read(0x2000)), (None, Some(2)));
        place.write(0x3000, 0, &of(3));
        assert_eq!(read(0x3000), None, "code was unloaded while the driver was asked");
    }
}
