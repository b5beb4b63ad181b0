//! The stand-in loader.
