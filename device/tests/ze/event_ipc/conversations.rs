//! Either side of a shared event signals, and the other waits: on the host, in a list, asleep; also when its maker is gone.

use super::*;

#[test]
fn an_event_is_signalled_and_waited_for_on_either_side() {
    const NAME: &str = "event_ipc::conversations::an_event_is_signalled_and_waited_for_on_either_side";
    if role().is_some() {
        return converse();
    }
    let mut side = Side::new();
    side.event = side.stage.shared_event();
    // Signalled before it is shared: complete on the other side.
    ok(side.act(b's'));
    ok(side.act(b'w'));
    let mut peer = Peer::converse(NAME, b'e', &get(side.event).data);
    peer.does("qw");
    for _ in 0..3 {
        // Here signals, there waits: not yet, then on the host and in a list.
        ok(side.act(b'g'));
        assert_eq!([peer.answers(b'q'), peer.answers(b't')], [NOT_READY; 2]);
        peer.does("d");
        assert_eq!(peer.answers(b'L'), NOT_READY);
        ok(side.act(b'o'));
        peer.does("wlq");
        // There signals, here waits.
        peer.does("g");
        assert_eq!([side.act(b'q'), side.act(b't')], [NOT_READY; 2]);
        ok(side.act(b'd'));
        assert_eq!(side.act(b'L'), NOT_READY);
        peer.does("o");
        assert_eq!([side.act(b'w'), side.act(b'l'), side.act(b'q')], [SUCCESS; 3]);
    }
    peer.does("c");
    peer.end();
    ok(zeEventDestroy(side.event));
}

#[test]
fn a_waiter_asleep_in_one_process_is_woken_by_the_other() {
    const NAME: &str = "event_ipc::conversations::a_waiter_asleep_in_one_process_is_woken_by_the_other";
    if role().is_some() {
        return converse();
    }
    let mut side = Side::new();
    side.event = side.stage.shared_event();
    let mut peer = Peer::converse(NAME, b'e', &get(side.event).data);
    for _ in 0..100 {
        peer.does("g");
        let event = side.event as usize;
        let waiter = thread::spawn(move || zeEventHostSynchronize(event as Handle, FOREVER));
        ok(side.act(b'd'));
        peer.does("o");
        ok(waiter.join().unwrap());
        ok(side.act(b'l'));
    }
    peer.end();
    ok(zeEventDestroy(side.event));
}

#[test]
fn a_wait_is_for_what_was_signalled_last_when_it_began() {
    const NAME: &str = "event_ipc::conversations::a_wait_is_for_what_was_signalled_last_when_it_began";
    if role().is_some() {
        return converse();
    }
    let mut side = Side::new();
    side.event = side.stage.shared_event();
    let mut peer = Peer::converse(NAME, b'e', &get(side.event).data);
    // The first signal is done, a second one is appended there: a wait here is for the second.
    ok(side.act(b's'));
    ok(side.act(b'w'));
    let (done, waiting) = (Side::new(), side.event);
    ok(zeCommandListAppendWaitOnEvents(done.list, 1, &raw const waiting));
    ok(done.act(b'l'));
    peer.does("g");
    ok(side.act(b'd'));
    assert_eq!([side.act(b'L'), side.act(b't')], [NOT_READY; 2]);
    // A wait that began before the third signal does not wait for it.
    peer.does("o");
    ok(side.act(b'l'));
    peer.does("g");
    ok(side.act(b'L'));
    assert_eq!(side.act(b'q'), NOT_READY);
    peer.does("ow");
    ok(side.act(b'q'));
    peer.end();
    ok(zeEventDestroy(side.event));
}

#[test]
fn who_opened_an_event_needs_its_maker_no_more() {
    const NAME: &str = "event_ipc::conversations::who_opened_an_event_needs_its_maker_no_more";
    if role().is_some() {
        return converse();
    }
    let mut side = Side::new();
    // Destroyed there while it is open here.
    let mut peer = Peer::converse(NAME, b'm', &[]);
    let data = peer.receive();
    side.event = open(side.stage, IpcEventCounterBasedHandle { data });
    peer.does("x");
    assert_eq!(refused(side.stage, data), OUT_OF_DEVICE_MEMORY);
    assert_eq!([side.act(b'g'), side.act(b'o'), side.act(b'w'), side.act(b'c')], [SUCCESS; 4]);
    peer.end();
    // Killed with a signal under way, which never comes: waits say so in time, and nothing hangs.
    let mut peer = Peer::converse(NAME, b'm', &[]);
    let data = peer.receive();
    side.event = open(side.stage, IpcEventCounterBasedHandle { data });
    peer.does("g");
    let waiting = Side::new();
    ok(zeCommandListAppendWaitOnEvents(waiting.list, 1, &raw const side.event));
    peer.process.kill().unwrap();
    peer.process.wait().unwrap();
    assert_eq!([side.act(b't'), side.act(b'q'), waiting.act(b'L')], [NOT_READY; 3]);
    ok(zeCommandListDestroy(waiting.list));
    assert_eq!(refused(side.stage, data), OUT_OF_DEVICE_MEMORY);
    // It can still be signalled anew.
    assert_eq!([side.act(b's'), side.act(b'w'), side.act(b'c')], [SUCCESS; 3]);
}

#[test]
fn a_process_ends_while_a_list_waits_for_what_never_comes() {
    const NAME: &str = "event_ipc::conversations::a_process_ends_while_a_list_waits_for_what_never_comes";
    match role().as_deref() {
        Some("other") => converse(),
        Some(_) => {
            let stage = Stage::new();
            let mut peer = Peer::converse(NAME, b'm', &[]);
            let event = open(stage, IpcEventCounterBasedHandle { data: peer.receive() });
            peer.does("g");
            peer.process.kill().unwrap();
            peer.process.wait().unwrap();
            let list = stage.immediate_list(2);
            ok(zeCommandListAppendWaitOnEvents(list, 1, &raw const event));
            ok(zeEventCounterBasedCloseIpcHandle(event));
            ok(zeCommandListDestroy(list));
            ok(zeContextDestroy(stage.context));
        }
        None => drop(run(actor(NAME, "waiter", &[]))),
    }
}
