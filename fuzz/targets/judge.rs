//! The judge as a whole: the files of a run, whatever they hold, are judged or refused, and what is said can be shown.

#![no_main]

#[path = "../checks/judge.rs"]
mod judge;
#[path = "../checks/judgement.rs"]
mod judgement;

libfuzzer_sys::fuzz_target!(|data: &[u8]| judge::check(data));
