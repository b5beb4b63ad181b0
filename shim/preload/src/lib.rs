//! The library that `LD_PRELOAD` names.
