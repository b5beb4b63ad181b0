use urscope_schema::trace::Record;
use urscope_schema::trace::fxt::hole;
use urscope_schema::trace::fxt::read::{Before, Item, Strings, next};

use super::*;

/// The contents of each chunk of a file without unwritten words, with the number of its lane.
fn contents(path: &Path) -> Vec<(u32, Vec<Item>)> {
    let bytes = std::fs::read(path).unwrap();
    let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let mut strings = Strings::default();
    let mut before = Before::default();
    words
        .chunks(CHUNK)
        .map(|chunk| {
            let mut lane = u32::MAX;
            let mut items = Vec::new();
            let mut at = 0;
            while at < chunk.len() {
                let (item, count) = next(chunk, at, 0, &mut strings, &mut before);
                match item {
                    Item::Head(number) => lane = number,
                    Item::Unwritten | Item::Other | Item::Thread(_) => {}
                    item => items.push(item),
                }
                at += count;
            }
            (lane, items)
        })
        .filter(|(_, items)| !items.is_empty())
        .collect()
}

/// One test, because the chunk of a thread belongs to one file at a time.
#[test]
fn every_record_of_every_thread_is_in_the_file_whole() {
    const THREADS: u32 = 4;
    const RECORDS: u32 = 20_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    let mut chunks = Chunks::create(&path).unwrap();
    chunks.name.publish().unwrap();
    let chunks = std::sync::Mutex::new(chunks);
    chunks.lock().unwrap().renew(1, 1, &write::beginning(1, "app")).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let chunks = &chunks;
            scope.spawn(move || {
                for number in 0..RECORDS {
                    let name = "x".repeat(number as usize % 50);
                    let mut words = vec![write::thread_name(thread, number, &name, &mut write::Measure)];
                    write::thread_name(thread, number, &name, &mut words);
                    while append(&words) != Appended::Yes {
                        chunks.lock().unwrap().renew(1, thread, &[]).unwrap();
                    }
                }
                chunks.lock().unwrap().leave_chunk();
            });
        }
    });
    let contents = contents(&path);
    let mut lanes: Vec<u32> = contents.iter().map(|(lane, _)| *lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    assert!(lanes.len() <= THREADS as usize + 1, "{lanes:?}");
    let mut counts = vec![0_u32; RECORDS as usize];
    for item in contents.iter().flat_map(|(_, items)| items) {
        match item {
            Item::Record(Record::ThreadName(number, name)) => {
                assert_eq!(name.len(), *number as usize % 50);
                counts[*number as usize] += 1;
            }
            item => assert_eq!(*item, Item::Record(Record::ProcessName("app".into()))),
        }
    }
    assert!(counts.iter().all(|count| *count == THREADS));

    let mut chunks = chunks.into_inner().unwrap();
    chunks.close().unwrap();
    let size = std::fs::metadata(&path).unwrap().len();
    assert_eq!(size % CHUNK_BYTES, 0);
    assert_eq!(append(&[hole(CHUNK), 0]), Appended::Never);
    forget();
    assert_eq!(append(&[UNWRITTEN]), Appended::NoRoom, "the file is another process's");
    chunks.renew(1, 1, &[]).unwrap();
    assert_eq!(append(&[UNWRITTEN]), Appended::Yes);
    assert!(std::fs::metadata(&path).unwrap().len() > size);
}
