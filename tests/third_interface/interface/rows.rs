//! The rows of the third interface.

/// Passes all rows to the macro `$sink`, in one call.
#[macro_export]
#[rustfmt::skip]
macro_rules! third_functions {
    ($($sink:ident)::+) => {
        third_functions! { @rows [$($sink)::+] }
    };
    (@rows [$($sink:tt)*] $($front:tt)*) => {
        $($sink)*! {
            $($front)*
            /// Gets handle data of memory.
            fn thirdExport(context: Context, pointer: Pointer, data: OutData, data_size: OutDataSize) in Third[0] Exports Usm;
            /// Opens handle data.
            fn thirdOpen(context: Context, data: OpenedData, data_size: DataSize, pointer: OutPointer) in Third[1] Opens Usm;
            /// Closes a mapping.
            fn thirdClose(context: Context, pointer: Pointer) in Third[2] Closes Usm;
        }
    };
}

/// The table.
#[macro_export]
macro_rules! third_tables {
    (@rows [$($sink:tt)*] $($front:tt)*) => {
        $($sink)*! {
            $($front)*
            third {
                Third "third_dditable_t" "thirdGetProcAddrTable";
            }
        }
    };
}
