// Cases of reusable events and their IPC.
#include "native_event.hpp"
#include "ur_every_kind.hpp"

using namespace app;

static ur_result_t create(Ur &ur, ur_exp_event_flags_t flags, ur_event_handle_t *event) {
  const ur_exp_event_desc_t desc = {UR_STRUCTURE_TYPE_EXP_EVENT_DESC, nullptr, flags};
  return urEventCreateExp(ur.context, ur.device, &desc, event);
}

// An event, released at the end of its case.
struct Event {
  explicit Event(Ur &ur, ur_exp_event_flags_t flags = UR_EXP_EVENT_FLAG_IPC_EXP) : ur(ur) {
    CHECK(create(ur, flags, &event));
  }
  // Opens handle data.
  Event(Ur &ur, const Bytes &data) : ur(ur) {
    CHECK(open(ur, data, &event));
  }
  Event(const Event &) = delete;
  ~Event() {
    if (event != nullptr) urEventRelease(event);
  }

  ur_result_t get(Data &data) { return urIPCGetEventHandleExp(event, &data.data, &data.size); }
  Data get() {
    Data data;
    CHECK(get(data));
    return data;
  }
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

constexpr auto put = Event::put;

template <typename T> static ur_result_t info(ur_event_handle_t event, ur_event_info_t what, T *value) {
  return urEventGetInfo(event, what, sizeof *value, value, nullptr);
}
static void add_number(Answers &answers, const Event &event, ur_event_info_t what) {
  uint32_t number = 0;
  answers << info(event.event, what, &number) << std::to_string(number);
}
static void add_references(Answers &answers, const Event &event) {
  add_number(answers, event, UR_EVENT_INFO_REFERENCE_COUNT);
}
static void add_status(Answers &answers, const Event &event) {
  add_number(answers, event, UR_EVENT_INFO_COMMAND_EXECUTION_STATUS);
}

// Tries to create something that must be refused; releases it if it is not.
static void create_refused(Ur &ur, Answers &answers, ur_exp_event_flags_t flags) {
  ur_event_handle_t event = nullptr;
  const ur_result_t result = create(ur, flags, &event);
  answers << result;
  if (result == UR_RESULT_SUCCESS) urEventRelease(event);
}

static const std::vector<Case> alone = {
    {"support",
     [](Ur &ur, Answers &answers) {
       for (auto what : {UR_DEVICE_INFO_REUSABLE_EVENTS_SUPPORT_EXP, UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP}) {
         ur_bool_t value = 0;
         answers << urDeviceGetInfo(ur.device, what, sizeof value, &value, nullptr) << (value ? "yes" : "no");
       }
     }},
    {"create-and-release",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       answers << event.release();
     }},
    {"create-with-profiling",
     [](Ur &ur, Answers &answers) { create_refused(ur, answers, UR_EXP_EVENT_FLAG_ENABLE_PROFILING); }},
    {"create-shared-with-profiling",
     [](Ur &ur, Answers &answers) {
       create_refused(ur, answers, UR_EXP_EVENT_FLAG_IPC_EXP | UR_EXP_EVENT_FLAG_ENABLE_PROFILING);
     }},
    {"create-with-undefined-flags",
     [](Ur &ur, Answers &answers) { create_refused(ur, answers, UR_EXP_EVENT_FLAGS_MASK); }},
    {"info-status",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       add_status(answers, event);
       answers << event.signal() << urQueueFinish(ur.queue);
       add_status(answers, event);
     }},
    {"info-context",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       ur_context_handle_t context = nullptr;
       answers << info(event.event, UR_EVENT_INFO_CONTEXT, &context) << (context == ur.context ? "same" : "other");
     }},
    {"info-references",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       add_references(answers, event);
       answers << urEventRetain(event.event);
       add_references(answers, event);
       answers << urEventRelease(event.event);
       add_references(answers, event);
     }},
    {"info-profiling",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       CHECK(event.signal());
       CHECK(event.wait());
       uint64_t value = 0;
       answers << urEventGetProfilingInfo(event.event, UR_PROFILING_INFO_COMMAND_END, sizeof value, &value, nullptr);
     }},
    {"get-of-an-unshared-event",
     [](Ur &ur, Answers &answers) {
       Event event(ur, 0);
       Data data;
       answers << event.get(data) << (data.data == nullptr && data.size == 0 ? "untouched" : "touched");
     }},
    {"get-of-a-profiled-event",
     [](Ur &ur, Answers &answers) {
       ur_event_handle_t event = nullptr;
       const ur_result_t result = create(ur, UR_EXP_EVENT_FLAG_ENABLE_PROFILING, &event);
       if (result != UR_RESULT_SUCCESS) {
         answers << "not made" << result;
         return;
       }
       Data data;
       answers << urIPCGetEventHandleExp(event, &data.data, &data.size);
       urEventRelease(event);
     }},
    {"get-of-a-command's-event",
     [](Ur &ur, Answers &answers) {
       ur_event_handle_t event = nullptr;
       CHECK(urEnqueueEventsWait(ur.queue, 0, nullptr, &event));
       Data data;
       answers << urIPCGetEventHandleExp(event, &data.data, &data.size) << urEventRelease(event);
     }},
    {"get-of-an-imported-event",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       const Data data = event.get();
       Event imported(ur, data.copy());
       Data again;
       answers << imported.get(again);
       CHECK(put(ur, data));
     }},
    {"put-keeps-the-event",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       answers << put(ur, event.get()) << event.signal() << event.wait();
       Data data;
       answers << event.get(data) << put(ur, data);
     }},
    {"put-keeps-the-imported-event",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       const Data data = event.get();
       Event imported(ur, data.copy());
       answers << put(ur, data) << event.signal() << imported.wait();
     }},
    {"open-in-the-same-process",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       answers << event.signal() << urQueueFinish(ur.queue);
       const Data data = event.get();
       Event imported(ur, data.copy());
       answers << (imported.event != event.event ? "two" : "one") << imported.wait() << imported.wait_in_queue();
       add_status(answers, imported);
       answers << imported.release() << put(ur, data);
     }},
    {"open-before-the-signal",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       const Data data = event.get();
       Event imported(ur, data.copy());
       add_status(answers, imported);
       answers << event.signal() << imported.wait() << imported.wait_in_queue() << put(ur, data);
     }},
    {"each-signal-is-waited-for-anew",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       const Data data = event.get();
       Event imported(ur, data.copy());
       for (int signal = 0; signal < 2; ++signal) {
         Gate gate(ur);
         CHECK(event.signal());
         add_status(answers, imported);
         ur_event_handle_t behind = nullptr;
         ur_queue_handle_t other = nullptr;
         CHECK(urQueueCreate(ur.context, ur.device, nullptr, &other));
         CHECK(urEnqueueEventsWait(other, 1, &imported.event, &behind));
         uint32_t status = 0;
         CHECK(info(behind, UR_EVENT_INFO_COMMAND_EXECUTION_STATUS, &status));
         answers << (status == 2 ? "pending" : "passed");
         gate.open();
         answers << urEventWait(1, &behind);
         add_status(answers, imported);
         CHECK(urQueueFinish(ur.queue));
         CHECK(urEventRelease(behind));
         CHECK(urQueueRelease(other));
       }
       CHECK(put(ur, data));
     }},
    {"both-of-two-opened-are-signalled",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       const Data data = event.get();
       Event one(ur, data.copy()), other(ur, data.copy());
       answers << event.signal() << (one.event != other.event ? "two" : "one") << one.wait() << other.wait();
       answers << one.release() << other.wait() << other.release() << put(ur, data);
     }},
    {"sixteen-round-trips",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       int whole = 0;
       for (int trip = 0; trip < 16; ++trip) {
         const Data data = event.get();
         Event imported(ur, data.copy());
         CHECK(put(ur, data));
         CHECK(event.signal());
         CHECK(imported.wait());
         CHECK(imported.release());
         ++whole;
       }
       answers << std::to_string(whole);
     }},
    {"imported-info",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       const Data data = event.get();
       Event imported(ur, data.copy());
       ur_context_handle_t context = nullptr;
       answers << info(imported.event, UR_EVENT_INFO_CONTEXT, &context) << (context == ur.context ? "same" : "other");
       add_references(answers, imported);
       CHECK(put(ur, data));
     }},
    {"imported-is-retained-and-released",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       const Data data = event.get();
       Event imported(ur, data.copy());
       CHECK(event.signal());
       answers << urEventRetain(imported.event) << urEventRelease(imported.event) << imported.wait();
       answers << imported.release() << event.wait() << put(ur, data);
     }},
    {"imported-is-signalled",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       const Data data = event.get();
       Event imported(ur, data.copy());
       answers << imported.signal() << event.wait() << event.wait_in_queue() << put(ur, data);
       add_status(answers, event);
     }},
    {"imported-outlives-the-event",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       const Data data = event.get();
       Event imported(ur, data.copy());
       CHECK(event.signal());
       CHECK(urQueueFinish(ur.queue));
       answers << put(ur, data) << event.release() << imported.wait();
       answers << imported.signal() << imported.wait() << imported.release();
     }},
};

static const std::vector<CaseOfTwo> of_two = {
    {"wait-for-another-process",
     [](Ur &ur, Peer &child, Answers &answers) {
       Event imported(ur, child.receive());
       child.say("open");
       child.await("signalled");
       answers << imported.wait() << imported.wait_in_queue();
       add_status(answers, imported);
       answers << imported.release();
       child.say("done");
     },
     [](Ur &ur, Peer &parent, Answers &) {
       Event event(ur);
       const Data data = event.get();
       parent.send(data.copy());
       parent.await("open");
       CHECK(event.signal());
       parent.say("signalled");
       parent.await("done");
       CHECK(put(ur, data));
     }},
    {"wait-after-the-put-of-another-process",
     [](Ur &ur, Peer &child, Answers &answers) {
       Event imported(ur, child.receive());
       child.say("open");
       child.await("put");
       answers << imported.wait() << imported.wait_in_queue() << imported.release();
       child.say("done");
     },
     [](Ur &ur, Peer &parent, Answers &) {
       Event event(ur);
       const Data data = event.get();
       parent.send(data.copy());
       parent.await("open");
       CHECK(put(ur, data));
       CHECK(event.signal());
       parent.say("put");
       parent.await("done");
     }},
    {"signal-for-another-process",
     [](Ur &ur, Peer &child, Answers &answers) {
       Event imported(ur, child.receive());
       answers << imported.signal();
       child.say("signalled");
       answers << child.receive_word();
     },
     [](Ur &ur, Peer &parent, Answers &) {
       Event event(ur);
       const Data data = event.get();
       parent.send(data.copy());
       parent.await("signalled");
       CHECK(event.wait());
       CHECK(event.wait_in_queue());
       parent.say("waited");
       CHECK(put(ur, data));
     }},
    {"imported-outlives-another-process",
     [](Ur &ur, Peer &child, Answers &answers) {
       Event imported(ur, child.receive());
       child.say("end");
       child.await_end();
       answers << imported.wait() << imported.signal() << imported.wait() << imported.release();
     },
     [](Ur &ur, Peer &parent, Answers &) {
       Event event(ur);
       CHECK(event.signal());
       CHECK(event.wait());
       parent.send(event.get().copy());
       parent.await("end");
     }},
};

static const std::vector<Case> apart = {
    {"get-null-event",
     [](Ur &, Answers &answers) {
       Data data;
       answers << urIPCGetEventHandleExp(nullptr, &data.data, &data.size);
     }},
    {"get-null-data",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       Data data;
       answers << urIPCGetEventHandleExp(event.event, nullptr, &data.size);
     }},
    {"get-null-size",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       Data data;
       answers << urIPCGetEventHandleExp(event.event, &data.data, nullptr);
     }},
    {"put-null-context",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       answers << urIPCPutEventHandleExp(nullptr, event.get().data);
     }},
    {"put-null-data", [](Ur &ur, Answers &answers) { answers << urIPCPutEventHandleExp(ur.context, nullptr); }},
    {"open-null-context",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       const Data data = event.get();
       ur_event_handle_t imported = nullptr;
       answers << urIPCOpenEventHandleExp(nullptr, data.data, data.size, &imported);
     }},
    {"open-null-data",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       ur_event_handle_t imported = nullptr;
       answers << urIPCOpenEventHandleExp(ur.context, nullptr, event.get().size, &imported);
     }},
    {"open-null-result",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       const Data data = event.get();
       answers << urIPCOpenEventHandleExp(ur.context, data.data, data.size, nullptr);
     }},
    {"create-null-context",
     [](Ur &ur, Answers &answers) {
       const ur_exp_event_desc_t desc = {UR_STRUCTURE_TYPE_EXP_EVENT_DESC, nullptr, UR_EXP_EVENT_FLAG_IPC_EXP};
       ur_event_handle_t event = nullptr;
       answers << urEventCreateExp(nullptr, ur.device, &desc, &event);
     }},
    {"create-null-device",
     [](Ur &ur, Answers &answers) {
       const ur_exp_event_desc_t desc = {UR_STRUCTURE_TYPE_EXP_EVENT_DESC, nullptr, UR_EXP_EVENT_FLAG_IPC_EXP};
       ur_event_handle_t event = nullptr;
       answers << urEventCreateExp(ur.context, nullptr, &desc, &event);
     }},
    {"create-null-description",
     [](Ur &ur, Answers &answers) {
       ur_event_handle_t event = nullptr;
       answers << urEventCreateExp(ur.context, ur.device, nullptr, &event);
     }},
    {"create-null-result",
     [](Ur &ur, Answers &answers) { answers << create(ur, UR_EXP_EVENT_FLAG_IPC_EXP, nullptr); }},
    {"wait-null", [](Ur &, Answers &answers) { answers << urEventWait(1, nullptr); }},
    {"wait-for-none",
     [](Ur &ur, Answers &answers) {
       Event event(ur);
       answers << urEventWait(0, &event.event);
     }},
    {"retain-null", [](Ur &, Answers &answers) { answers << urEventRetain(nullptr); }},
    {"release-null", [](Ur &, Answers &answers) { answers << urEventRelease(nullptr); }},
};

int main(int argc, char **argv) {
  return run_cases(argc, argv,
                  {both(alone_of_every_kind<Event>(), alone), both(of_two_of_every_kind<Event>(), of_two), apart,
                   misuse_of_every_kind<Event>()});
}
