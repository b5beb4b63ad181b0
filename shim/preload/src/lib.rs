//! `liburscope.so`: the library that `LD_PRELOAD` names.
//!
//! It contains only symbols and the constructor: the exports of the function table, the trampoline of `dlsym`,
//! `_exit`, the `exec` functions, the unwinder, functions of older C libraries, and the suppressions for
//! ThreadSanitizer. They call the shim. No crate may depend on this one.

use std::arch::{global_asm, naked_asm};
use std::ffi::{c_char, c_int, c_void};

use urscope_schema::api::Function;
use urscope_schema::{cu_functions, ur_functions};
use urscope_shim::entry::exec::{self, CFunction, ExecArguments};
use urscope_shim::entry::{dlsym::intercept, exported};
use urscope_shim::interface::unified_runtime::xpti;
use urscope_shim::raw::symbols::{copies, real_dlsym::NEXT_DLSYM};
use urscope_shim::raw::{errno, late_functions, memory::reserve::Allocator, processes::process, signals::signal_stack};
use urscope_shim::{backend::level_zero::without_adapter, chain, late_functions, note_caller};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

#[ctor::ctor(unsafe)]
fn start() {
    copies::note_first(first_copy()());
    urscope_shim::start();
}

/// Exports functions, for programs that link them.
macro_rules! exports {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident $(, $twin:ident)?;)*) => {
        $(
            exports!(@one $name, exported::number(Function::$name));
            $(exports!(@one $twin, exported::twin(Function::$name));)?
        )*
    };
    (@one $name:ident, $number:expr) => {
        /// # Safety
        ///
        /// The arguments are those of the function of this name (`ur_api.h`, `cuda.h`).
        // SAFETY: the symbol of this name that comes after this one is called.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!("jmp {to}", to = sym exported::function::<{ $number }>)
        }
    };
}

ur_functions!(exports);
cu_functions!(exports);
exports!(@one cuGetProcAddress, exported::getter(Function::cuMemAlloc_v2.interface_number(), 0));
exports!(@one cuGetProcAddress_v2, exported::getter(Function::cuMemAlloc_v2.interface_number(), 1));

/// For `liburscope_ipc.so`, whose callers have handles of Level Zero only: gives the context and the device of
/// Unified Runtime that wrap them, so that the recorded functions can be called. Returns 1, or 0 if no adapter that
/// uses urscope's backend has them.
///
/// # Safety
///
/// `ze_context` and `ze_device` are live handles; `context` and `device` can be written.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_handles_around(
    ze_context: *mut c_void,
    ze_device: *mut c_void,
    context: *mut *mut c_void,
    device: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some((around_context, around_device)) = (unsafe { without_adapter::adapter_handles(ze_context, ze_device) })
    else {
        return 0;
    };
    // SAFETY: the caller's promise.
    unsafe {
        context.write(around_context);
        device.write(around_device);
    }
    1
}

/// Tells the copies of this library in a process apart: each calls the first one's, and compares the result with its
/// own.
// SAFETY: only other copies define the name.
#[unsafe(no_mangle)]
pub extern "C" fn urscope_copy() -> usize {
    copies::own()
}

/// The `urscope_copy` that the dynamic loader finds first. The compiler would call the one above.
#[unsafe(naked)]
extern "C" fn first_copy() -> extern "C" fn() -> usize {
    naked_asm!("mov rax, qword ptr [rip + {copy}@GOTPCREL]", "ret", copy = sym urscope_copy)
}

/// The dispatcher of XPTI calls it for each stream if `XPTI_SUBSCRIBERS` names this library.
///
/// # Safety
///
/// The arguments are those of the function of this name (`xpti_data_types.h`).
// SAFETY: it is looked up in this library only.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn xptiTraceInit() {
    note_caller!(xpti::trace_init)
}

/// The dispatcher of XPTI calls it at the end of a stream, and requires it.
// SAFETY: as for `xptiTraceInit`.
#[unsafe(no_mangle)]
pub extern "C" fn xptiTraceFinish(_stream: *const c_char) {}

/// `dlsym(3)`: returns the shim's result if it has one, and otherwise jumps to the real function. A jump keeps the
/// caller's return address, which `RTLD_NEXT` depends on.
///
/// # Safety
///
/// As for dlsym(3).
// SAFETY: the real symbol comes after this one and is found by its version.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    naked_asm!(
        "push rdi",
        "push rsi",
        "mov rdx, rsp",
        "sub rsp, 8",
        "call {intercept}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jne 2f",
        "mov rax, [rip + {real}]",
        "jmp rax",
        "2: ret",
        intercept = sym intercept,
        real = sym NEXT_DLSYM,
    )
}

/// The functions of the unwinder, and those that glibc before 2.34 has in other libraries, for this library only. A
/// jump keeps the caller's frame, from which the unwinder begins and `dlopen` takes the namespace.
macro_rules! late {
    ($($number:literal $symbol:literal $name:literal $version:literal $library:literal;)*) => {$(
        global_asm!(
            concat!(".hidden ", $symbol),
            concat!(".globl ", $symbol),
            concat!(".type ", $symbol, ", @function"),
            concat!($symbol, ":"),
            "mov rax, qword ptr [rip + {found} + 8 * {number}]",
            "test rax, rax",
            "jne 2f",
            "push rdi",
            "push rsi",
            "push rdx",
            "push rcx",
            "sub rsp, 8",
            "mov edi, {number}",
            "call {find}",
            "add rsp, 8",
            "pop rcx",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            "2: jmp rax",
            found = sym late_functions::FOUND,
            find = sym late_functions::find,
            number = const $number,
        );
    )*};
}

late_functions!(late);

/// Suppressions for ThreadSanitizer, if the program is built with it and defines no function of this name
/// (`sanitizer/tsan_interface.h`): accesses by functions of the C library that this library calls. ThreadSanitizer
/// sees these, but not the atomic instructions and locks that order them, and would report false races.
// SAFETY: ThreadSanitizer's own function of this name is weak and returns an empty text.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_default_suppressions() -> *const c_char {
    c"called_from_lib:liburscope.so\n".as_ptr()
}

extern "C" fn end_now(status: c_int) -> ! {
    chain::end("_exit");
    process::exit_now(status)
}

/// `_exit(2)`: closes the trace, then ends the process. Most forked children end this way.
// SAFETY: it replaces the C library's function and also ends the process.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    signal_stack::on_large_stack(end_now, status)
}

/// `_Exit(3)`: `_exit` under its C name.
// SAFETY: as for `_exit`.
#[unsafe(no_mangle)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    signal_stack::on_large_stack(end_now, status)
}

type Text = *const c_char;
type Texts = *const Text;

macro_rules! execs {
    ($($(#[$doc:meta])* fn $name:ident($($param:ident: $type:ty),*) = $real:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// As for the function of the C library.
        // SAFETY: the real function, which comes after this one, is called.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($param: $type),*) -> c_int {
            let Some(real) = function_of_c(&exec::$real) else { return -1 };
            // SAFETY: the C library's function of this name has this signature.
            let real = unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> c_int>(real) };
            // SAFETY: the caller's promise.
            exec::record_exec(|| unsafe { real($($param),*) })
        }
    )*};
}

execs! {
    /// `execv(3)`: notes it in the trace.
    fn execv(path: Text, argv: Texts) = EXECV;
    /// `execve(2)`: notes it in the trace.
    fn execve(path: Text, argv: Texts, envp: Texts) = EXECVE;
    /// `execvp(3)`: notes it in the trace.
    fn execvp(file: Text, argv: Texts) = EXECVP;
    /// `execvpe(3)`: notes it in the trace.
    fn execvpe(file: Text, argv: Texts, envp: Texts) = EXECVPE;
    /// `execveat(2)`: notes it in the trace.
    fn execveat(folder: c_int, path: Text, argv: Texts, envp: Texts, flags: c_int) = EXECVEAT;
    /// `fexecve(3)`: notes it in the trace.
    fn fexecve(descriptor: c_int, argv: Texts, envp: Texts) = FEXECVE;
}

/// The C library's function; `None`, with errno set, if it has none.
fn function_of_c(of: &CFunction) -> Option<*mut c_void> {
    let address = of.address();
    if address.is_null() {
        errno::set_unsupported();
    }
    (!address.is_null()).then_some(address)
}

/// Defines a variadic function. It passes the path, the arguments in registers and those on the stack to `with`.
macro_rules! variadic {
    ($($(#[$doc:meta])* fn $name:ident = $with:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// As for the function of the C library.
        // SAFETY: it replaces the C library's function and calls its equivalent through `with`.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name(path: Text, first: Text) -> c_int {
            naked_asm!(
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "mov rsi, rsp",
                "lea rdx, [rsp + 48]",
                "call {with}",
                "add rsp, 40",
                "ret",
                with = sym $with,
            )
        }
    )*};
}

variadic! {
    /// `execl(3)`: notes it in the trace.
    fn execl = execl_with;
    /// `execlp(3)`: notes it in the trace.
    fn execlp = execlp_with;
    /// `execle(3)`: notes it in the trace.
    fn execle = execle_with;
}

/// The arguments after the path: five are in registers, the others on the stack.
///
/// # Safety
///
/// They end with a null pointer.
unsafe fn collect(registers: Texts, stack: Texts) -> (ExecArguments, impl Fn(usize) -> Text) {
    const REGISTERS: usize = 5;
    // SAFETY: the caller's promise.
    let argument = move |index: usize| unsafe {
        if index < REGISTERS { *registers.add(index) } else { *stack.add(index - REGISTERS) }
    };
    (ExecArguments::collect(argument), argument)
}

unsafe extern "C" fn execl_with(path: Text, registers: Texts, stack: Texts) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { execv(path, collect(registers, stack).0.array()) }
}

unsafe extern "C" fn execlp_with(file: Text, registers: Texts, stack: Texts) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { execvp(file, collect(registers, stack).0.array()) }
}

unsafe extern "C" fn execle_with(path: Text, registers: Texts, stack: Texts) -> c_int {
    // SAFETY: the caller's promise.
    let (all, argument) = unsafe { collect(registers, stack) };
    // SAFETY: the caller's promise; the environment follows the null pointer.
    unsafe { execve(path, all.array(), argument(all.next_index()).cast()) }
}
