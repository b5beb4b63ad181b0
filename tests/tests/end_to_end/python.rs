//! The Python package: exchange of memory between Python processes.
