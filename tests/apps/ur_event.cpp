// Cases of reusable events and their IPC.
#include "native_event.hpp"
#include "ur_every_kind.hpp"

using namespace app;

// An event, released at the end of its case.
struct Event {
  explicit Event(Ur &ur, ur_exp_event_flags_t flags = UR_EXP_EVENT_FLAG_IPC_EXP) : ur(ur), event(ur.make_event(flags)) {}
  // Opens handle data.
  Event(Ur &ur, const Bytes &data) : ur(ur) { CHECK(open(ur, data, &event)); }
  Event(const Event &) = delete;
  ~Event() {
    if (event != nullptr) urEventRelease(event);
  }

  ur_result_t get(Data &data) { return urIPCGetEventHandleExp(event, &data.data, &data.size); }
  Data get() { return ur.get(event); }
  // The queue signals it after all that was enqueued.
  ur_result_t signal() {
    ur_event_handle_t signalled = event;
    const ur_result_t result = urEnqueueEventsWaitWithBarrierExt(ur.queue, nullptr, 0, nullptr, &signalled);
    require(result != UR_RESULT_SUCCESS || signalled == event, "another event is signalled");
    return result;
  }
  ur_result_t wait() { return urEventWait(1, &event); }
  // The queue waits for it, and the host for the queue.
  ur_result_t wait_in_queue() {
    const ur_result_t result = urEnqueueEventsWaitWithBarrierExt(ur.queue, nullptr, 1, &event, nullptr);
    return result == UR_RESULT_SUCCESS ? urQueueFinish(ur.queue) : result;
  }
  ur_result_t release() { return urEventRelease(std::exchange(event, nullptr)); }

  using Opened = ur_event_handle_t;
  static ur_result_t put(Ur &ur, const Data &data) { return urIPCPutEventHandleExp(ur.context, data.data); }
  static ur_result_t open(Ur &ur, const View &data, Opened *event) {
    return urIPCOpenEventHandleExp(ur.context, data.data(), data.size(), event);
  }
  static ur_result_t close(Ur &, Opened event) { return urEventRelease(event); }

  Ur &ur;
  ur_event_handle_t event = nullptr;
};

// Everything that is enqueued after it waits until it is opened.
struct Gate {
  explicit Gate(Ur &ur) : native(context_of(ur)) {
    const ur_event_native_properties_t kept = {UR_STRUCTURE_TYPE_EVENT_NATIVE_PROPERTIES, nullptr, false};
    const auto handle = reinterpret_cast<ur_native_handle_t>(native.get());
    CHECK(urEventCreateWithNativeHandle(handle, ur.context, &kept, &event));
    CHECK(urEnqueueEventsWaitWithBarrier(ur.queue, 1, &event, nullptr));
  }
  Gate(const Gate &) = delete;
  ~Gate() { urEventRelease(event); }

  void open() { native.signal(); }

private:
  static void *context_of(Ur &ur) {
    ur_native_handle_t context = 0;
    CHECK(urContextGetNativeHandle(ur.context, &context));
    return reinterpret_cast<void *>(context);
  }

  NativeEvent native;
  ur_event_handle_t event = nullptr;
};

using Exported = Got<Event>;

template <typename T> static ur_result_t info(ur_event_handle_t event, ur_event_info_t what, T *value) {
  return urEventGetInfo(event, what, sizeof *value, value, nullptr);
}
static std::string number(const Event &event, ur_event_info_t what) {
  uint32_t number = 0;
  const ur_result_t result = info(event.event, what, &number);
  return std::to_string(result) + " " + std::to_string(number);
}
static std::string references(const Event &event) { return number(event, UR_EVENT_INFO_REFERENCE_COUNT); }
static std::string status(const Event &event) { return number(event, UR_EVENT_INFO_COMMAND_EXECUTION_STATUS); }
static std::string context(Ur &ur, const Event &event) {
  ur_context_handle_t context = nullptr;
  const ur_result_t result = info(event.event, UR_EVENT_INFO_CONTEXT, &context);
  return std::to_string(result) + (context == ur.context ? " same" : " other");
}

// Tries to create something that must be refused; releases it if it is not.
static ur_result_t create_refused(Ur &ur, ur_exp_event_flags_t flags) {
  ur_event_handle_t event = nullptr;
  const ur_result_t result = ur.try_create(flags, &event);
  if (result == UR_RESULT_SUCCESS) urEventRelease(event);
  return result;
}

static const std::vector<Case> alone = {
    {"support", RUNS {
       for (auto what : {UR_DEVICE_INFO_REUSABLE_EVENTS_SUPPORT_EXP, UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP}) answers << ur.asked(what);
     }},
    {"create-and-release", RUNS { Event event(ur); answers << event.release(); }},
    {"create-with-profiling", RUNS { answers << create_refused(ur, UR_EXP_EVENT_FLAG_ENABLE_PROFILING); }},
    {"create-shared-with-profiling", RUNS {
       answers << create_refused(ur, UR_EXP_EVENT_FLAG_IPC_EXP | UR_EXP_EVENT_FLAG_ENABLE_PROFILING);
     }},
    {"create-with-undefined-flags", RUNS { answers << create_refused(ur, UR_EXP_EVENT_FLAGS_MASK); }},
    {"info-status", RUNS { Event event(ur); answers << status(event) << event.signal() << urQueueFinish(ur.queue) << status(event); }},
    {"info-context", RUNS { Event event(ur); answers << context(ur, event); }},
    {"info-references", RUNS {
       Event event(ur);
       answers << references(event) << urEventRetain(event.event) << references(event) << urEventRelease(event.event) << references(event);
     }},
    {"info-profiling", RUNS {
       Event event(ur);
       CHECK(event.signal());
       CHECK(event.wait());
       uint64_t value = 0;
       answers << urEventGetProfilingInfo(event.event, UR_PROFILING_INFO_COMMAND_END, sizeof value, &value, nullptr);
     }},
    {"get-of-an-unshared-event", RUNS { Event event(ur, 0); Data data; answers << event.get(data) << left(data); }},
    {"get-of-a-profiled-event", RUNS {
       ur_event_handle_t event = nullptr;
       const ur_result_t result = ur.try_create(UR_EXP_EVENT_FLAG_ENABLE_PROFILING, &event);
       if (result != UR_RESULT_SUCCESS) {
         answers << "not made" << result;
         return;
       }
       Data data;
       answers << urIPCGetEventHandleExp(event, &data.data, &data.size);
       urEventRelease(event);
     }},
    {"get-of-a-command's-event", RUNS {
       ur_event_handle_t event = nullptr;
       CHECK(urEnqueueEventsWait(ur.queue, 0, nullptr, &event));
       Data data;
       answers << urIPCGetEventHandleExp(event, &data.data, &data.size) << urEventRelease(event);
     }},
    {"get-of-an-imported-event", RUNS {
       Exported event(ur);
       Event imported(ur, event.copy());
       Data again;
       answers << imported.get(again);
     }},
    {"put-keeps-the-event", RUNS {
       Exported event(ur);
       answers << event.put() << event.signal() << event.wait() << event.get(event.data) << event.put();
     }},
    {"put-keeps-the-imported-event", RUNS {
       Exported event(ur);
       Event imported(ur, event.copy());
       answers << event.put() << event.signal() << imported.wait();
     }},
    {"open-in-the-same-process", RUNS {
       Event event(ur);
       answers << event.signal() << urQueueFinish(ur.queue);
       const Data data = event.get();
       Event imported(ur, data.copy());
       answers << (imported.event != event.event ? "two" : "one") << imported.wait() << imported.wait_in_queue() << status(imported);
       answers << imported.release() << Event::put(ur, data);
     }},
    {"open-before-the-signal", RUNS {
       Exported event(ur);
       Event imported(ur, event.copy());
       answers << status(imported) << event.signal() << imported.wait() << imported.wait_in_queue() << event.put();
     }},
    {"each-signal-is-waited-for-anew", RUNS {
       Exported event(ur);
       Event imported(ur, event.copy());
       for (int signal = 0; signal < 2; ++signal) {
         Gate gate(ur);
         CHECK(event.signal());
         answers << status(imported);
         ur_event_handle_t behind = nullptr;
         ur_queue_handle_t other = nullptr;
         CHECK(urQueueCreate(ur.context, ur.device, nullptr, &other));
         CHECK(urEnqueueEventsWait(other, 1, &imported.event, &behind));
         uint32_t now = 0;
         CHECK(info(behind, UR_EVENT_INFO_COMMAND_EXECUTION_STATUS, &now));
         answers << (now == 2 ? "pending" : "passed");
         gate.open();
         answers << urEventWait(1, &behind) << status(imported);
         CHECK(urQueueFinish(ur.queue));
         CHECK(urEventRelease(behind));
         CHECK(urQueueRelease(other));
       }
     }},
    {"both-of-two-opened-are-signalled", RUNS {
       Exported event(ur);
       Event one(ur, event.copy()), other(ur, event.copy());
       answers << event.signal() << (one.event != other.event ? "two" : "one") << one.wait() << other.wait();
       answers << one.release() << other.wait() << other.release() << event.put();
     }},
    {"sixteen-round-trips", RUNS {
       Event event(ur);
       int whole = 0;
       for (int trip = 0; trip < 16; ++trip) {
         const Data data = event.get();
         Event imported(ur, data.copy());
         CHECK(Event::put(ur, data));
         CHECK(event.signal());
         CHECK(imported.wait());
         CHECK(imported.release());
         ++whole;
       }
       answers << std::to_string(whole);
     }},
    {"imported-info", RUNS {
       Exported event(ur);
       Event imported(ur, event.copy());
       answers << context(ur, imported) << references(imported);
     }},
    {"imported-is-retained-and-released", RUNS {
       Exported event(ur);
       Event imported(ur, event.copy());
       CHECK(event.signal());
       answers << urEventRetain(imported.event) << urEventRelease(imported.event) << imported.wait();
       answers << imported.release() << event.wait() << event.put();
     }},
    {"imported-is-signalled", RUNS {
       Exported event(ur);
       Event imported(ur, event.copy());
       answers << imported.signal() << event.wait() << event.wait_in_queue() << event.put() << status(event);
     }},
    {"imported-outlives-the-event", RUNS {
       Exported event(ur);
       Event imported(ur, event.copy());
       CHECK(event.signal());
       CHECK(urQueueFinish(ur.queue));
       answers << event.put() << event.release() << imported.wait() << imported.signal() << imported.wait() << imported.release();
     }},
};

static const std::vector<CaseOfTwo> of_two = {
    {"wait-for-another-process", PARENT {
       Event imported(ur, child.receive());
       child.say("open");
       child.await("signalled");
       answers << imported.wait() << imported.wait_in_queue() << status(imported) << imported.release();
       child.say("done");
     }, CHILD {
       Exported event(ur);
       parent.send(event.copy());
       parent.await("open");
       CHECK(event.signal());
       parent.say("signalled");
       parent.await("done");
     }},
    {"wait-after-the-put-of-another-process", PARENT {
       Event imported(ur, child.receive());
       child.say("open");
       child.await("put");
       answers << imported.wait() << imported.wait_in_queue() << imported.release();
       child.say("done");
     }, CHILD {
       Exported event(ur);
       parent.send(event.copy());
       parent.await("open");
       CHECK(event.put());
       CHECK(event.signal());
       parent.say("put");
       parent.await("done");
     }},
    {"signal-for-another-process", PARENT {
       Event imported(ur, child.receive());
       answers << imported.signal();
       child.say("signalled");
       answers << child.receive_word();
     }, CHILD {
       Exported event(ur);
       parent.send(event.copy());
       parent.await("signalled");
       CHECK(event.wait());
       CHECK(event.wait_in_queue());
       parent.say("waited");
     }},
    {"imported-outlives-another-process", PARENT {
       Event imported(ur, child.receive());
       child.say("end");
       child.await_end();
       answers << imported.wait() << imported.signal() << imported.wait() << imported.release();
     }, CHILD {
       Event event(ur);
       CHECK(event.signal());
       CHECK(event.wait());
       parent.send(event.get().copy());
       parent.await("end");
     }},
};

// Results that nobody reads.
static Data data;
static ur_event_handle_t opened;

static const ur_exp_event_desc_t shared = {UR_STRUCTURE_TYPE_EXP_EVENT_DESC, nullptr, UR_EXP_EVENT_FLAG_IPC_EXP};

static const std::vector<Case> apart = {
    {"get-null-event", RUNS { answers << urIPCGetEventHandleExp(nullptr, &data.data, &data.size); }},
    {"get-null-data", RUNS { answers << urIPCGetEventHandleExp(Event(ur).event, nullptr, &data.size); }},
    {"get-null-size", RUNS { answers << urIPCGetEventHandleExp(Event(ur).event, &data.data, nullptr); }},
    NULL_CASE(Event, "put-null-context", urIPCPutEventHandleExp(nullptr, data.data)),
    {"put-null-data", RUNS { answers << urIPCPutEventHandleExp(ur.context, nullptr); }},
    NULL_CASE(Event, "open-null-context", urIPCOpenEventHandleExp(nullptr, data.data, data.size, &opened)),
    NULL_CASE(Event, "open-null-data", urIPCOpenEventHandleExp(ur.context, nullptr, data.size, &opened)),
    NULL_CASE(Event, "open-null-result", urIPCOpenEventHandleExp(ur.context, data.data, data.size, nullptr)),
    {"create-null-context", RUNS { answers << urEventCreateExp(nullptr, ur.device, &shared, &opened); }},
    {"create-null-device", RUNS { answers << urEventCreateExp(ur.context, nullptr, &shared, &opened); }},
    {"create-null-description", RUNS { answers << urEventCreateExp(ur.context, ur.device, nullptr, &opened); }},
    {"create-null-result", RUNS { answers << urEventCreateExp(ur.context, ur.device, &shared, nullptr); }},
    {"wait-null", RUNS { answers << urEventWait(1, nullptr); }},
    NULL_CASE(Event, "wait-for-none", urEventWait(0, &object.event)),
    {"retain-null", RUNS { answers << urEventRetain(nullptr); }},
    {"release-null", RUNS { answers << urEventRelease(nullptr); }},
};

int main(int argc, char **argv) {
  const Cases cases = {both(alone_of_every_kind<Event>(), alone), both(of_two_of_every_kind<Event>(), of_two), apart,
                       misuse_of_every_kind<Event>()};
  return run_cases(argc, argv, cases);
}
