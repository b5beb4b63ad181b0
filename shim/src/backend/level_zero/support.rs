//! What the backend supports on a device, tried once per device.
//!
//! A loader has functions that its driver lacks, so each is tried. A trial ends everything that it makes.

use urscope_schema::api::role::{Device, IpcProperty, OutBool};
use urscope_schema::api::{Function, ResultCode, unified_runtime::constants};

use super::driver::{Driver, ZeHandle, driver};
use super::{LevelZero, physical, result};
use crate::backend::{Family, adapter};
use crate::raw::args::caller::{Query, receive_bool};
use crate::raw::{args::Arg, memory::hash_map::HashMap, processes::fork_reset::ForkReset, threads::mutex::Mutex};

static SUPPORT_CACHE: ForkReset<Mutex<HashMap<(ZeHandle, u32), bool>>> = ForkReset::new(Mutex::default);

/// Forgets the results of the trials.
pub(crate) fn after_fork_in_child() {
    SUPPORT_CACHE.reset(Mutex::default());
}

/// `urDeviceGetInfo`
pub(crate) fn get_info(
    at: LevelZero,
    device: Arg<Device>,
    property: Arg<IpcProperty>,
    query: Query<OutBool>,
) -> Result<(), ResultCode> {
    let asked = property.get().0;
    let family = match asked {
        constants::UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP => Some(Family::Memory),
        constants::UR_DEVICE_INFO_IPC_PHYSICAL_MEMORY_SUPPORT_EXP => Some(Family::PhysicalMem),
        constants::UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP => Some(Family::Event),
        _ => None,
    };
    if asked == constants::UR_DEVICE_INFO_REUSABLE_EVENTS_SUPPORT_EXP
        && Family::Event.uses_level_zero(at.via)
        && !adapter::has(at.via, Function::urEventCreateExp)
    {
        return query.answer(&[u8::from(at.shares_events())]);
    }
    let Some(family) = family.filter(|family| family.uses_level_zero(at.via)) else {
        let ask = adapter::urDeviceGetInfo(at.via);
        return result::done(ask(device, property, query.size, query.value, query.size_ret));
    };
    let ze_device = at.device(device)?;
    let key = (ze_device, asked);
    let known = SUPPORT_CACHE.get().lock().get(&key).copied();
    let supported = known.unwrap_or_else(|| supports(driver(), ze_device, family) && is_usable(at, device, family));
    SUPPORT_CACHE.get().lock().insert(key, supported);
    query.answer(&[u8::from(supported)])
}

/// Whether the adapter can use the object: its events must be reusable.
fn is_usable(at: LevelZero, device: Arg<Device>, family: Family) -> bool {
    if family == Family::Event && !adapter::has(at.via, Function::urEventCreateExp) {
        return at.shares_events();
    }
    // SAFETY: a property is a number, and any may be asked for.
    let property = unsafe { Arg::new(IpcProperty(constants::UR_DEVICE_INFO_REUSABLE_EVENTS_SUPPORT_EXP)) };
    let ask = adapter::urDeviceGetInfo(at.via);
    family != Family::Event || receive_bool(|query| ask(device, property, query.size, query.value, query.size_ret))
}

fn supports(driver: &Driver, device: ZeHandle, family: Family) -> bool {
    match family {
        Family::Memory => driver.shares_memory(),
        Family::PhysicalMem => {
            driver.in_a_context(device, |context| physical::can_be_shared(driver, context, device)).is_ok()
        }
        Family::Event => {
            let shared = |context| {
                let event = driver.make_event(context, device, true)?;
                let handle = driver.export_event(event);
                driver.end_event(event);
                handle.map(drop)
            };
            driver.in_a_context(device, shared).is_ok()
        }
    }
}
