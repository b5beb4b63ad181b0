//! The words of urscope: what a call is, and what a trace record is.
