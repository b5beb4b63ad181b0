//! The calls of a scenario by the functions of other interfaces than Unified Runtime.

use urscope_schema::api::cuda::constants::EVENT_INTERPROCESS;
use urscope_schema::api::unified_runtime::constants::UR_EXP_EVENT_FLAG_IPC_EXP;
use urscope_schema::api::{CUDA, Effect, Function, Interface};
use urscope_schema::call::Values;
use urscope_schema::handle::{Kind, descriptor_data};

/// The number of the descriptor with the address of a name.
pub(super) const fn descriptor_of(address: u64) -> u32 {
    (address >> 24) as u32
}

/// The first function of an interface that does the same; the function itself if there is none.
fn in_interface(interface: &Interface, function: Function) -> Function {
    let ends = |effect: Effect| match effect {
        Effect::Destroys(kind) => Effect::Releases(kind),
        other => other,
    };
    let does_the_same = |other: &&Function| {
        other.interface() == interface
            && ends(other.effect()) == ends(function.effect())
            && (interface.usm_types.is_empty() || other.usm_type() == function.usm_type())
    };
    Function::ALL.iter().find(does_the_same).copied().unwrap_or(function)
}

/// The same call by the function of another interface. A handle has no size there; in CUDA it is known by its bytes,
/// and what is made belongs to the current context.
pub(super) fn by_interface(
    interface: Option<&Interface>,
    (function, enter, exit): (Function, Values, Values),
) -> (Function, Values, Values) {
    let Some(interface) = interface else { return (function, enter, exit) };
    let is_cuda = interface == &CUDA;
    let of_interface = in_interface(interface, function);
    let [enter, exit] = [enter, exit].map(|values| Values { data_size: None, ..values });
    if !is_cuda {
        return (of_interface, enter, exit);
    }
    let is_shareable = enter.flags.is_some_and(|flags| flags & u64::from(UR_EXP_EVENT_FLAG_IPC_EXP) != 0);
    let flags = match of_interface.effect() {
        Effect::Enqueues(_) | Effect::Migrates(_) => enter.flags,
        _ => enter.flags.map(|_| if is_shareable { EVENT_INTERPROCESS } else { 0 }),
    };
    let has_context = matches!(
        of_interface.effect(),
        Effect::Allocates(_) | Effect::Opens(_) | Effect::Creates(_) | Effect::Releases(Kind::Context)
    );
    let [enter, exit] = [enter, exit].map(|values| {
        let data = match of_interface.effect() {
            Effect::Exports(Kind::PhysicalMem) => values.data.map(|data| descriptor_data(descriptor_of(data))),
            _ => values.data.and(values.fingerprint),
        };
        Values {
            context: values.context.filter(|_| has_context),
            device: None,
            count: None,
            value: None,
            data,
            ..values
        }
    });
    match of_interface {
        // It is asked for by an address.
        Function::cuMemRetainAllocationHandle => (of_interface, Values::NONE, enter),
        _ => (of_interface, Values { flags, ..enter }, exit),
    }
}
