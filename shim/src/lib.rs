//! The witness of urscope: stands between a SYCL program and its Unified Runtime adapter.
