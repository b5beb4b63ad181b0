//! Finds adapters that a loader used without urscope, when the process ends, so that the verdict mentions them.
//!
//! A loader that was opened by `dlmopen` has its own C library. One that was opened with `RTLD_DEEPBIND` binds to the
//! C library before the preloaded one. A program, or a preceding library, may export a `dlsym` that does not call
//! urscope's. In all three cases the loader asks its adapter for tables by another `dlsym`.
//!
//! It makes no system call.

use urscope_schema::trace::records::{EntryPoint, UNSEEN_ADAPTER};

use super::{ddi, xpti};
use crate::knobs::{self, Entry};
use crate::raw::symbols::namespaces::{self, Placed};
use crate::raw::symbols::real_dlsym;

/// The prefix of the file names of Unified Runtime adapters.
const ADAPTER: &str = "libur_adapter_";

/// Reports the loaded adapters whose tables were not asked for through urscope, together for each kind of namespace.
pub fn report() {
    let (mut near, far): (Vec<_>, Vec<_>) =
        namespaces::loaded(ADAPTER).into_iter().partition(|placed| placed.of_program);
    // With XPTI, the calls of all adapters are seen; an adapter may have had none.
    near.retain(|placed| !ddi::is_known(&placed.module) && !xpti::is_subscribed());
    for unseen in [near, far] {
        let Some(Placed { module, of_program }) = unseen.first() else { continue };
        let names: Vec<_> = unseen.iter().map(|placed| placed.module.file_name()).collect();
        ddi::report(&EntryPoint {
            kind: UNSEEN_ADAPTER.into(),
            library: names.join(", "),
            directory: module.directory(),
            problem: reason(*of_program),
            ..EntryPoint::default()
        });
    }
}

fn reason(of_program: bool) -> String {
    if !of_program {
        return "it was loaded into a namespace of its own (dlmopen), which a preloaded library does not reach".into();
    }
    if knobs::read().entry == Entry::Xpti {
        return "URSCOPE_ENTRY=xpti is set, and XPTI shows urscope no calls: start the program with `urscope run`, or with \
                XPTI_TRACE_ENABLE=1, XPTI_FRAMEWORK_DISPATCHER=libxptifw.so with its path, XPTI_SUBSCRIBERS=liburscope.so with its path, and \
                UR_ENABLE_LAYERS=UR_LAYER_TRACING"
            .into();
    }
    match real_dlsym::preceding() {
        Some(other) => format!("{} exports a dlsym that stands before urscope's", other.path.display()),
        None => {
            "its loader did not use urscope's dlsym, as after dlopen with RTLD_DEEPBIND, or it was not asked for any \
                 table"
                .into()
        }
    }
}
