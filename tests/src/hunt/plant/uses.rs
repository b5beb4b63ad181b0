//! A use of shared memory by one process that does not wait for that by another one.

use super::super::draft::Draft;
use super::super::mistake::Mistake;
use super::super::sharing::{Opening, Sharing, inside};

/// Plants one of these mistakes. Returns false for another one.
pub(super) fn plant(draft: &mut Draft, sharing: &Sharing, mistake: Mistake) -> bool {
    let Opening { place: reader, object, open, close, .. } = sharing.openings[0];
    let writer = sharing.owner;
    let data = draft.register();
    let part = inside(sharing.offset);
    let write = format!("write m{}{part} seed {data} in c{}", sharing.object, writer.context);
    let read = format!("read m{object} -> d{data} sized 512 in c{}", reader.context);
    // What the others read is written before.
    let uses = sharing.openings.iter().flat_map(|opening| &opening.uses);
    let before: Vec<_> = uses.copied().chain([open, sharing.written]).collect();
    let (first, second, late, end) = match mistake {
        Mistake::ToldFirst => {
            let write = draft.add(writer.process, format!("{write} queued"), &before);
            let read = draft.add(reader.process, read, &[open]);
            let read_waited = draft.add(reader.process, "host-waits".into(), &[read]);
            draft.order(read_waited, close);
            (write, read, writer.process, sharing.end)
        }
        Mistake::Overwritten => {
            let read = draft.add(reader.process, read, &before);
            let write = draft.add(writer.process, write, &[sharing.written]);
            draft.order(write, sharing.end);
            (read, write, reader.process, close)
        }
        _ => return false,
    };
    // No other step waits for the first command meanwhile.
    draft.glue(first, second);
    let waited = draft.add(late, "host-waits".into(), &[second]);
    draft.order(waited, end);
    // What was enqueued first may begin last.
    draft.expect("error race", [first, second], [first, second]);
    true
}
