// What the device reports that it can share, and the results for events; with "other", those of every function for the
// first device of any type, which refuses what it is passed.
//
// Each line is the ur_result_t of a call, and the value that a query returned.
#include "ur_app.hpp"

using namespace app;

static void answer(const char *what, ur_result_t result) { print(std::string(what) + ": " + std::to_string(result)); }

static void share_events(const Ur &ur) {
  ur_event_handle_t event = nullptr, opened = nullptr;
  Data data;
  const ur_result_t created = ur.try_create(UR_EXP_EVENT_FLAG_IPC_EXP, &event);
  // If none can be created, that of a command, and arbitrary bytes.
  if (created != UR_RESULT_SUCCESS) CHECK(urEnqueueEventsWait(ur.queue, 0, nullptr, &event));
  const ur_result_t got = urIPCGetEventHandleExp(event, &data.data, &data.size);
  const bool none = got != UR_RESULT_SUCCESS;
  const Bytes sent = none ? Bytes(128) : data.copy();
  const ur_result_t open = urIPCOpenEventHandleExp(ur.context, sent.data(), sent.size(), &opened);
  const auto text = [](ur_result_t result) { return std::to_string(result); };
  print("an event: " + text(created) + ", its get: " + text(got) + ", its open: " + text(open));
  if (open == UR_RESULT_SUCCESS) CHECK(urEventRelease(opened));
  if (!none) CHECK(urIPCPutEventHandleExp(ur.context, data.data));
  CHECK(urEventRelease(event));
}

static void be_refused(const Ur &ur) {
  void *memory = nullptr, *opened = nullptr;
  Data data;
  Bytes bytes(120);
  CHECK(urUSMHostAlloc(ur.context, nullptr, nullptr, 4096, &memory));
  answer("get memory", urIPCGetMemHandleExp(ur.context, memory, &data.data, &data.size));
  answer("put memory", urIPCPutMemHandleExp(ur.context, bytes.data()));
  answer("open memory", ur.try_open(bytes, &opened));
  answer("close memory", urIPCCloseMemHandleExp(ur.context, memory));
  CHECK(urUSMFree(ur.context, memory));

  ur_physical_mem_handle_t physical = nullptr;
  answer("open physical memory", urIPCOpenPhysMemHandleExp(ur.context, ur.device, bytes.data(), 16, &physical));
  answer("put physical memory", urIPCPutPhysMemHandleExp(ur.context, bytes.data()));

  ur_event_handle_t event = nullptr;
  answer("make an event", ur.try_create(UR_EXP_EVENT_FLAG_IPC_EXP, &event));
  answer("open an event", urIPCOpenEventHandleExp(ur.context, bytes.data(), 64, &event));
  answer("put an event", urIPCPutEventHandleExp(ur.context, bytes.data()));
}

int main(int argc, char **) {
  return guarded([=] {
    const bool other = argc > 1;
    const Ur ur(other ? UR_DEVICE_TYPE_ALL : UR_DEVICE_TYPE_GPU);
    print("memory: " + ur.asked(UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP));
    print("physical memory: " + ur.asked(UR_DEVICE_INFO_IPC_PHYSICAL_MEMORY_SUPPORT_EXP));
    print("reusable events: " + ur.asked(UR_DEVICE_INFO_REUSABLE_EVENTS_SUPPORT_EXP));
    print("events: " + ur.asked(UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP));
    (other ? be_refused : share_events)(ur);
  });
}
