//! The law of urscope: the life of a handle, and what is a sin.
