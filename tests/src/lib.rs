//! The trial of urscope: real SYCL programs, one sin or one saint each.
