// What the device reports that it can share, and the results for events.
//
// Each line is the ur_result_t of a call, and the value that a query returned.
#include "ur_app.hpp"

using namespace app;

int main() {
  return run_alone([] {
    Ur ur;
    print("memory: " + ur.asked(UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP));
    print("physical memory: " + ur.asked(UR_DEVICE_INFO_IPC_PHYSICAL_MEMORY_SUPPORT_EXP));
    print("reusable events: " + ur.asked(UR_DEVICE_INFO_REUSABLE_EVENTS_SUPPORT_EXP));
    print("events: " + ur.asked(UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP));

    ur_event_handle_t event = nullptr, opened = nullptr;
    void *data = nullptr;
    size_t size = 0;
    const ur_result_t created = ur.try_create(UR_EXP_EVENT_FLAG_IPC_EXP, &event);
    // If none can be created, that of a command, and arbitrary bytes.
    if (created != UR_RESULT_SUCCESS) CHECK(urEnqueueEventsWait(ur.queue, 0, nullptr, &event));
    const ur_result_t got = urIPCGetEventHandleExp(event, &data, &size);
    const Bytes bytes(128);
    const bool none = got != UR_RESULT_SUCCESS;
    const ur_result_t open = urIPCOpenEventHandleExp(ur.context, none ? bytes.data() : data, none ? bytes.size() : size, &opened);
    print("an event: " + std::to_string(created) + ", its get: " + std::to_string(got) + ", its open: " + std::to_string(open));
    if (open == UR_RESULT_SUCCESS) CHECK(urEventRelease(opened));
    if (!none) CHECK(urIPCPutEventHandleExp(ur.context, data));
    CHECK(urEventRelease(event));
  });
}
