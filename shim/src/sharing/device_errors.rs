//! The first call that reports the failure of a device, such as an access to memory that is not there.
//!
//! Most of these calls are waits, which are not recorded otherwise. From then on nothing that the process does with the
//! device can succeed.

use std::sync::atomic::{AtomicBool, Ordering};

use urscope_schema::api::{Function, ResultCode};
use urscope_schema::{api::demand::Nulls, call::Values};

use super::commands;
use crate::{chain, knobs, stacks};

/// Whether such a call was recorded.
static IS_KNOWN: AtomicBool = AtomicBool::new(false);

/// Records a call that was not recorded and has failed, if it is the first of a process that shares memory which
/// reports the failure of a device.
#[cold]
pub(crate) fn note(function: Function, result: ResultCode) {
    let is_new = commands::are_recorded()
        && result.meaning_of(function) == ResultCode::DEVICE_LOST
        && !IS_KNOWN.swap(true, Ordering::Relaxed);
    if is_new {
        let hot = knobs::hot();
        let values = Values { stack: stacks::current(hot), ..Values::NONE };
        let entered = chain::enter::<false>(hot, function, &values, &Nulls::default());
        chain::exit::<false>(hot, function, entered.call, result, None);
    }
}
