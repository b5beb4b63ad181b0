//! A Level Zero device in software.
