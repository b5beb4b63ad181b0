//! The result codes of Unified Runtime (`ur_result_t` of `ur_api.h`, release 2026.2) and of Level Zero (`ze_result_t`
//! of `ze_api.h`, 1.17).
//!
//! This is the only table of result codes; `schema/tests/schema/header.rs` compares every row of Unified Runtime's
//! with the header. Only 0 (success) and 0x7ffffffe (unknown) mean the same in both.

use super::Function;

/// The result of a function. It may be a number that no header defines.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UrResult(pub u32);

macro_rules! results {
    (unified_runtime { $($name:ident = $code:literal,)* } level_zero { $($ze:ident = $ze_code:literal as $same:ident,)* }) => {
        impl UrResult {
            /// `UR_RESULT_SUCCESS`
            pub const SUCCESS: Self = Self(0);
            $(
                #[doc = concat!("`UR_RESULT_ERROR_", stringify!($name), "`")]
                pub const $name: Self = Self($code);
            )*

            /// Every code of Unified Runtime with its name in the header.
            pub const NAMED: &'static [(u32, &'static str)] =
                &[(0, "UR_RESULT_SUCCESS"), $(($code, concat!("UR_RESULT_ERROR_", stringify!($name))),)*];

            /// The name in the header; `None` for a number that the header does not define.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    0 => Some("UR_RESULT_SUCCESS"),
                    $($code => Some(concat!("UR_RESULT_ERROR_", stringify!($name))),)*
                    $($ze_code => Some(concat!("ZE_RESULT_ERROR_", stringify!($ze))),)*
                    _ => None,
                }
            }

            /// The code of Unified Runtime with the meaning of one of Level Zero; any other code unchanged.
            #[must_use]
            pub const fn unified(self) -> Self {
                match self.0 {
                    $($ze_code => Self::$same,)*
                    _ => self,
                }
            }

            /// The code of Level Zero with the meaning of one of Unified Runtime; `ZE_RESULT_ERROR_UNKNOWN` if there is
            /// none.
            #[must_use]
            pub const fn level_zero(self) -> Self {
                $(if self.0 == Self::$same.0 {
                    return Self($ze_code);
                })*
                if self.is_success() { self } else { Self::UNKNOWN }
            }
        }
    };
}

impl UrResult {
    /// Whether the call succeeded.
    pub const fn is_success(self) -> bool {
        self.0 == 0
    }

    /// The name in the header of the function that returned it; `None` for a number that no header defines.
    pub const fn name_of(self, function: Function) -> Option<&'static str> {
        if self.is_success() && function.is_level_zero() { Some("ZE_RESULT_SUCCESS") } else { self.name() }
    }

    /// The name in the header of the function that returned it, with the number.
    pub fn text_of(self, function: Function) -> String {
        match self.name_of(function) {
            Some(name) if self.is_success() => format!("{name} (0)"),
            _ => self.to_string(),
        }
    }
}

impl std::fmt::Display for UrResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name() {
            Some(name) if name.starts_with("UR_") => write!(f, "{name} ({})", self.0),
            Some(name) => write!(f, "{name} ({:#x})", self.0),
            None => write!(f, "unknown result {:#x}", self.0),
        }
    }
}

#[rustfmt::skip]
results! {
    unified_runtime {
        INVALID_OPERATION = 1,
        INVALID_QUEUE_PROPERTIES = 2,
        INVALID_QUEUE = 3,
        INVALID_VALUE = 4,
        INVALID_CONTEXT = 5,
        INVALID_PLATFORM = 6,
        INVALID_BINARY = 7,
        INVALID_PROGRAM = 8,
        INVALID_SAMPLER = 9,
        INVALID_BUFFER_SIZE = 10,
        INVALID_MEM_OBJECT = 11,
        INVALID_EVENT = 12,
        INVALID_EVENT_WAIT_LIST = 13,
        MISALIGNED_SUB_BUFFER_OFFSET = 14,
        INVALID_WORK_GROUP_SIZE = 15,
        COMPILER_NOT_AVAILABLE = 16,
        PROFILING_INFO_NOT_AVAILABLE = 17,
        DEVICE_NOT_FOUND = 18,
        INVALID_DEVICE = 19,
        DEVICE_LOST = 20,
        DEVICE_REQUIRES_RESET = 21,
        DEVICE_IN_LOW_POWER_STATE = 22,
        DEVICE_PARTITION_FAILED = 23,
        INVALID_DEVICE_PARTITION_COUNT = 24,
        INVALID_WORK_ITEM_SIZE = 25,
        INVALID_WORK_DIMENSION = 26,
        INVALID_KERNEL_ARGS = 27,
        INVALID_KERNEL = 28,
        INVALID_KERNEL_NAME = 29,
        INVALID_KERNEL_ARGUMENT_INDEX = 30,
        INVALID_KERNEL_ARGUMENT_SIZE = 31,
        INVALID_KERNEL_ATTRIBUTE_VALUE = 32,
        INVALID_IMAGE_SIZE = 33,
        INVALID_IMAGE_FORMAT_DESCRIPTOR = 34,
        MEM_OBJECT_ALLOCATION_FAILURE = 35,
        INVALID_PROGRAM_EXECUTABLE = 36,
        UNINITIALIZED = 37,
        OUT_OF_HOST_MEMORY = 38,
        OUT_OF_DEVICE_MEMORY = 39,
        OUT_OF_RESOURCES = 40,
        PROGRAM_BUILD_FAILURE = 41,
        PROGRAM_LINK_FAILURE = 42,
        UNSUPPORTED_VERSION = 43,
        UNSUPPORTED_FEATURE = 44,
        INVALID_ARGUMENT = 45,
        INVALID_NULL_HANDLE = 46,
        HANDLE_OBJECT_IN_USE = 47,
        INVALID_NULL_POINTER = 48,
        INVALID_SIZE = 49,
        UNSUPPORTED_SIZE = 50,
        UNSUPPORTED_ALIGNMENT = 51,
        INVALID_SYNCHRONIZATION_OBJECT = 52,
        INVALID_ENUMERATION = 53,
        UNSUPPORTED_ENUMERATION = 54,
        UNSUPPORTED_IMAGE_FORMAT = 55,
        INVALID_NATIVE_BINARY = 56,
        INVALID_GLOBAL_NAME = 57,
        FUNCTION_ADDRESS_NOT_AVAILABLE = 58,
        INVALID_GROUP_SIZE_DIMENSION = 59,
        INVALID_GLOBAL_WIDTH_DIMENSION = 60,
        PROGRAM_UNLINKED = 61,
        OVERLAPPING_REGIONS = 62,
        INVALID_HOST_PTR = 63,
        INVALID_USM_SIZE = 64,
        OBJECT_ALLOCATION_FAILURE = 65,
        ADAPTER_SPECIFIC = 66,
        LAYER_NOT_PRESENT = 67,
        IN_EVENT_LIST_EXEC_STATUS = 68,
        DEVICE_NOT_AVAILABLE = 69,
        INVALID_SPEC_ID = 70,
        INVALID_GRAPH = 71,
        GRAPH_CAPTURE_UNSUPPORTED = 72,
        GRAPH_CAPTURE_INVALIDATED = 73,
        GRAPH_CAPTURE_MERGE_ATTEMPT = 74,
        COMMAND_LIST_NOT_CAPTURING = 75,
        GRAPH_UNJOINED_FORKS = 76,
        GRAPH_INTERNAL_EVENT = 77,
        INVALID_COMMAND_BUFFER_EXP = 0x1000,
        INVALID_COMMAND_BUFFER_SYNC_POINT_EXP = 0x1001,
        INVALID_COMMAND_BUFFER_SYNC_POINT_WAIT_LIST_EXP = 0x1002,
        INVALID_COMMAND_BUFFER_COMMAND_HANDLE_EXP = 0x1003,
        UNKNOWN = 0x7fff_fffe,
    }
    level_zero {
        DEVICE_LOST = 0x7000_0001 as DEVICE_LOST,
        OUT_OF_HOST_MEMORY = 0x7000_0002 as OUT_OF_HOST_MEMORY,
        OUT_OF_DEVICE_MEMORY = 0x7000_0003 as OUT_OF_DEVICE_MEMORY,
        DEVICE_REQUIRES_RESET = 0x7000_0006 as DEVICE_REQUIRES_RESET,
        DEVICE_IN_LOW_POWER_STATE = 0x7000_0007 as DEVICE_IN_LOW_POWER_STATE,
        INSUFFICIENT_PERMISSIONS = 0x7001_0000 as INVALID_OPERATION,
        NOT_AVAILABLE = 0x7001_0001 as INVALID_OPERATION,
        UNINITIALIZED = 0x7800_0001 as UNINITIALIZED,
        UNSUPPORTED_VERSION = 0x7800_0002 as UNSUPPORTED_VERSION,
        UNSUPPORTED_FEATURE = 0x7800_0003 as UNSUPPORTED_FEATURE,
        INVALID_ARGUMENT = 0x7800_0004 as INVALID_ARGUMENT,
        INVALID_NULL_HANDLE = 0x7800_0005 as INVALID_NULL_HANDLE,
        HANDLE_OBJECT_IN_USE = 0x7800_0006 as HANDLE_OBJECT_IN_USE,
        INVALID_NULL_POINTER = 0x7800_0007 as INVALID_NULL_POINTER,
        INVALID_SIZE = 0x7800_0008 as INVALID_SIZE,
        UNSUPPORTED_SIZE = 0x7800_0009 as UNSUPPORTED_SIZE,
        UNSUPPORTED_ALIGNMENT = 0x7800_000a as UNSUPPORTED_ALIGNMENT,
        INVALID_ENUMERATION = 0x7800_000c as INVALID_ENUMERATION,
        UNSUPPORTED_ENUMERATION = 0x7800_000d as UNSUPPORTED_ENUMERATION,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_shown_with_its_name_and_number() {
        assert_eq!(UrResult(45).to_string(), "UR_RESULT_ERROR_INVALID_ARGUMENT (45)");
        assert_eq!(UrResult(0x1234_5678).to_string(), "unknown result 0x12345678");
        assert!(UrResult::SUCCESS.is_success() && !UrResult(1).is_success());
        assert_eq!(UrResult::UNSUPPORTED_FEATURE.name(), Some("UR_RESULT_ERROR_UNSUPPORTED_FEATURE"));
    }

    #[test]
    fn a_success_has_the_name_of_its_function() {
        assert_eq!(UrResult::SUCCESS.text_of(Function::zeMemFree), "ZE_RESULT_SUCCESS (0)");
        assert_eq!(UrResult::SUCCESS.text_of(Function::urUSMFree), "UR_RESULT_SUCCESS (0)");
    }

    #[test]
    fn a_code_of_level_zero_has_its_own_name_and_one_of_unified_runtime() {
        let invalid = UrResult(0x7800_0004);
        assert_eq!(invalid.to_string(), "ZE_RESULT_ERROR_INVALID_ARGUMENT (0x78000004)");
        assert_eq!((invalid.unified(), UrResult::INVALID_ARGUMENT.level_zero()), (UrResult::INVALID_ARGUMENT, invalid));
        assert_eq!(UrResult::INVALID_KERNEL_ARGS.level_zero(), UrResult::UNKNOWN);
        assert_eq!(
            (UrResult::SUCCESS.unified(), UrResult::SUCCESS.level_zero()),
            (UrResult::SUCCESS, UrResult::SUCCESS)
        );
    }
}
