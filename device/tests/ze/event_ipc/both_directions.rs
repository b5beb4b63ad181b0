//! Either process signals a shared event and the other waits: on the host, in a list, asleep, and after the creator
//! exited.

use super::*;

/// This process with a new event. The other process opens it and serves.
macro_rules! shared {
    () => {{
        if role().is_some() {
            return serve();
        }
        let mut endpoint = Endpoint::new();
        endpoint.event = endpoint.setup.shared_event();
        endpoint
    }};
}

#[test]
fn an_event_is_signalled_and_waited_for_on_either_side() {
    let endpoint = shared!();
    // Signalled before it is shared: signalled in the other process too.
    ok(endpoint.execute(b's'));
    ok(endpoint.execute(b'w'));
    let mut peer = Peer::serve(this_test!(), b'e', &get(endpoint.event).data);
    peer.execute_all("qw");
    for _ in 0..3 {
        // This process signals, the other waits: on the host and in a list.
        ok(endpoint.execute(b'g'));
        assert_eq!([peer.request(b'q'), peer.request(b't')], [NOT_READY; 2]);
        peer.execute_all("d");
        assert_eq!(peer.request(b'L'), NOT_READY);
        let opened = now(endpoint.setup);
        ok(endpoint.execute(b'o'));
        peer.execute_all("wlq");
        assert!(peer.waited_until() >= opened);
        // The other process signals, this one waits.
        peer.execute_all("g");
        assert_eq!([endpoint.execute(b'q'), endpoint.execute(b't')], [NOT_READY; 2]);
        ok(endpoint.execute(b'd'));
        assert_eq!(endpoint.execute(b'L'), NOT_READY);
        let opened = now(endpoint.setup);
        peer.execute_all("o");
        assert_eq!([endpoint.execute(b'w'), endpoint.execute(b'l'), endpoint.execute(b'q')], [SUCCESS; 3]);
        assert!(endpoint.waited_until() >= opened);
    }
    peer.execute_all("c");
    peer.end();
}

#[test]
fn a_waiter_asleep_in_one_process_is_woken_by_the_other() {
    let endpoint = shared!();
    let mut peer = Peer::serve(this_test!(), b'e', &get(endpoint.event).data);
    for _ in 0..100 {
        peer.execute_all("g");
        let event = endpoint.event as usize;
        let setup = endpoint.setup;
        let waiter = thread::spawn(move || (zeEventHostSynchronize(event as Handle, FOREVER), now(setup)));
        ok(endpoint.execute(b'd'));
        let opened = now(endpoint.setup);
        peer.execute_all("o");
        let (result, returned) = waiter.join().unwrap();
        ok(result);
        ok(endpoint.execute(b'l'));
        assert!(returned >= opened && endpoint.waited_until() >= opened);
    }
    peer.end();
}

#[test]
fn a_wait_is_for_the_last_signal_before_it_began() {
    let endpoint = shared!();
    let mut peer = Peer::serve(this_test!(), b'e', &get(endpoint.event).data);
    // The first signal has completed, and the other process appends a second one: a wait here is for the second.
    ok(endpoint.execute(b's'));
    ok(endpoint.execute(b'w'));
    let done = Endpoint::new();
    let waiting = endpoint.event;
    ok(zeCommandListAppendWaitOnEvents(done.list, 1, &raw const waiting));
    ok(done.execute(b'l'));
    peer.execute_all("g");
    ok(endpoint.execute(b'd'));
    assert_eq!([endpoint.execute(b'L'), endpoint.execute(b't')], [NOT_READY; 2]);
    // A wait that began before the third signal does not wait for that one.
    let opened = now(endpoint.setup);
    peer.execute_all("o");
    ok(endpoint.execute(b'l'));
    assert!(endpoint.waited_until() >= opened);
    peer.execute_all("g");
    ok(endpoint.execute(b'L'));
    assert_eq!(endpoint.execute(b'q'), NOT_READY);
    peer.execute_all("ow");
    ok(endpoint.execute(b'q'));
    peer.end();
}

#[test]
fn an_opened_event_does_not_need_its_creator() {
    if role().is_some() {
        return serve();
    }
    let mut endpoint = Endpoint::new();
    // The other process destroys the event while it is open here.
    let mut peer = Peer::serve(this_test!(), b'm', &[]);
    let data = peer.receive();
    endpoint.event = open(endpoint.setup, IpcHandle { data });
    peer.execute_all("x");
    assert_eq!(refused(endpoint.setup, data), OUT_OF_DEVICE_MEMORY);
    assert_eq!(
        [endpoint.execute(b'g'), endpoint.execute(b'o'), endpoint.execute(b'w'), endpoint.execute(b'c')],
        [SUCCESS; 4]
    );
    peer.end();
    // The other process is killed with a signal in flight, which never arrives: waits time out, and nothing hangs.
    let mut peer = Peer::serve(this_test!(), b'm', &[]);
    let data = peer.receive();
    endpoint.event = open(endpoint.setup, IpcHandle { data });
    peer.execute_all("g");
    let waiting = Endpoint::new();
    ok(zeCommandListAppendWaitOnEvents(waiting.list, 1, &raw const endpoint.event));
    peer.process.kill().unwrap();
    peer.process.wait().unwrap();
    assert_eq!([endpoint.execute(b't'), endpoint.execute(b'q'), waiting.execute(b'L')], [NOT_READY; 3]);
    ok(zeCommandListDestroy(waiting.list));
    assert_eq!(refused(endpoint.setup, data), OUT_OF_DEVICE_MEMORY);
    // The event can still be signalled.
    assert_eq!([endpoint.execute(b's'), endpoint.execute(b'w'), endpoint.execute(b'c')], [SUCCESS; 3]);
}

#[test]
fn a_process_exits_while_a_list_waits_for_a_signal_that_never_arrives() {
    match role().as_deref() {
        Some("other") => serve(),
        Some(_) => {
            let setup = Setup::new();
            let mut peer = Peer::serve(this_test!(), b'm', &[]);
            let event = open(setup, IpcHandle { data: peer.receive() });
            peer.execute_all("g");
            peer.process.kill().unwrap();
            peer.process.wait().unwrap();
            let list = setup.immediate_list(2);
            ok(zeCommandListAppendWaitOnEvents(list, 1, &raw const event));
            ok(zeEventCounterBasedCloseIpcHandle(event));
            ok(zeCommandListDestroy(list));
            ok(zeContextDestroy(setup.context));
        }
        None => drop(run_child(child(this_test!(), "waiter", &[]))),
    }
}
