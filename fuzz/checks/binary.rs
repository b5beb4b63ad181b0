//! A binary trace: whatever words follow each other in a file of whole chunks, it is judged or refused, and what is
//! said can be shown.

use std::fs;

use urscope_schema::trace::fxt::{CHUNK_BYTES, MAGIC, UNWRITTEN};

use crate::judgement;

/// The most chunks of a file.
const CHUNKS: u64 = 4;

/// Checks one input: the words of a file, as far as it was written to.
pub(crate) fn check(data: &[u8]) {
    let mut bytes = data.to_vec();
    bytes.truncate((CHUNKS * CHUNK_BYTES) as usize);
    bytes.truncate(bytes.len() - bytes.len() % size_of::<u64>());
    // Other files are the business of another target.
    if bytes.is_empty() {
        bytes.extend(MAGIC.to_le_bytes());
    }
    bytes[..size_of::<u64>()].copy_from_slice(&MAGIC.to_le_bytes());
    while !(bytes.len() as u64).is_multiple_of(CHUNK_BYTES) {
        bytes.extend(UNWRITTEN.to_le_bytes());
    }
    let path = judgement::FOLDER.path().join("urscope-b-1-1.fxt");
    fs::write(&path, bytes).expect("a file in memory is written");
    judgement::check_files(&[path]);
}
