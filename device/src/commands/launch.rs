//! Entry points that append launches of kernels.
//!
//! All forms take the kernel's arguments when they are called, and run when it is their turn, as copies do. Must never
//! read the number of groups of an indirect launch before that.

use crate::commands::append::{append, append_calls};
use crate::commands::{list::CommandList, work::Work};
use crate::events::event::Event;
use crate::ffi::layout::{Base, Extent, LaunchCooperativeDesc};
use crate::ffi::result::{Outcome, ZeResult, call};
use crate::ffi::{Address, Argument, In, handles::Handle};
use crate::kernels::kernel::Kernel;
use crate::kernels::launch::{self, Launch};

append_calls! {
    /// `zeCommandListAppendLaunchKernel` (ze_api.h).
    kernel(list, kernel: Handle<Kernel>, groups: In<Extent>) {
        let launch = Launch::new(&kernel.get()?)?;
        Ok(Work::launch(launch, groups.read()?))
    }

    /// `zeCommandListAppendLaunchCooperativeKernel` (ze_api.h). `INVALID_ARGUMENT` for more than one group.
    cooperative_kernel(list, kernel: Handle<Kernel>, groups: In<Extent>) {
        let launch = Launch::new(&kernel.get()?)?;
        let groups = groups.read()?;
        check_cooperative(groups)?;
        Ok(Work::launch(launch, groups))
    }

    /// `zeCommandListAppendLaunchKernelWithParameters` (ze_api.h). Of the extensions, cooperative launches are known.
    kernel_with_parameters(list, kernel: Handle<Kernel>, groups: In<Extent>, extensions: In<Base>) {
        let launch = Launch::new(&kernel.get()?)?;
        let groups = groups.read()?;
        check_extensions(extensions, groups)?;
        Ok(Work::launch(launch, groups))
    }

    /// `zeCommandListAppendLaunchKernelWithArguments` (ze_api.h). Group size and arguments stay set.
    kernel_with_arguments(
        list,
        kernel: Handle<Kernel>,
        groups: Extent,
        group: Extent,
        arguments: In<In<u8>>,
        extensions: In<Base>,
    ) {
        let kernel = kernel.get()?;
        let group = [group.x, group.y, group.z];
        kernel.check_group(group)?;
        let arguments = launch::Argument::all(&kernel.info, arguments)?;
        check_extensions(extensions, groups)?;
        {
            let mut settings = kernel.settings.lock();
            settings.group = group;
            if let Some(arguments) = arguments {
                settings.arguments = arguments;
            }
        }
        Ok(Work::launch(Launch::new(&kernel)?, groups))
    }

    /// `zeCommandListAppendLaunchKernelIndirect` (ze_api.h).
    kernel_indirect(list, kernel: Handle<Kernel>, groups: Address) {
        let launch = Launch::new(&kernel.get()?)?;
        groups.check()?;
        Ok(Work::launch_indirect(vec![launch], None, groups))
    }

    /// `zeCommandListAppendLaunchMultipleKernelsIndirect` (ze_api.h).
    multiple_kernels_indirect(
        list,
        count: Argument<u32>,
        kernels: In<Handle<Kernel>>,
        actual_count: Address,
        groups: Address,
    ) {
        kernels.check()?;
        let launches = kernels.objects(count)?.iter().map(Launch::new).collect::<Outcome<Vec<_>>>()?;
        actual_count.check()?;
        groups.check()?;
        Ok(Work::launch_indirect(launches, Some(actual_count), groups))
    }
}

fn check_extensions(extensions: In<Base>, groups: Extent) -> Outcome {
    match extensions.find::<LaunchCooperativeDesc>() {
        Some(desc) if desc.read()?.is_cooperative != 0 => check_cooperative(groups),
        _ => Ok(()),
    }
}

/// The groups of a cooperative launch wait for each other, but the engine may run one after the other.
fn check_cooperative(groups: Extent) -> Outcome {
    if u64::from(groups.x) * u64::from(groups.y) * u64::from(groups.z) > 1 {
        let reason = "a cooperative launch of several groups: zeKernelSuggestMaxCooperativeGroupCount says 1";
        return Err(ZeResult::INVALID_ARGUMENT.because(|| reason));
    }
    Ok(())
}
