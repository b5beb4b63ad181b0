// Properties and behaviour of a device of another adapter: the first that the loader finds, of any type.
//
// Each line is the ur_result_t of a call, and the value that a query returned.
#include "ur_app.hpp"

using namespace app;

static void answer(const char *what, ur_result_t result) { print(std::string(what) + ": " + std::to_string(result)); }

int main() {
  return run_alone([] {
    Ur ur(UR_DEVICE_TYPE_ALL);
    const auto device = ur.device;
    const auto context = ur.context;
    print("memory: " + ur.asked(UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP));
    print("physical memory: " + ur.asked(UR_DEVICE_INFO_IPC_PHYSICAL_MEMORY_SUPPORT_EXP));
    print("events: " + ur.asked(UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP));

    void *memory = nullptr, *opened = nullptr, *data = nullptr;
    size_t size = 0;
    Bytes bytes(120);
    CHECK(urUSMHostAlloc(context, nullptr, nullptr, 4096, &memory));
    answer("get memory", urIPCGetMemHandleExp(context, memory, &data, &size));
    answer("put memory", urIPCPutMemHandleExp(context, bytes.data()));
    answer("open memory", urIPCOpenMemHandleExp(context, device, bytes.data(), bytes.size(), &opened));
    answer("close memory", urIPCCloseMemHandleExp(context, memory));
    CHECK(urUSMFree(context, memory));

    ur_physical_mem_handle_t physical = nullptr;
    answer("open physical memory", urIPCOpenPhysMemHandleExp(context, device, bytes.data(), 16, &physical));
    answer("put physical memory", urIPCPutPhysMemHandleExp(context, bytes.data()));

    ur_event_handle_t event = nullptr;
    answer("make an event", ur.try_create(UR_EXP_EVENT_FLAG_IPC_EXP, &event));
    answer("open an event", urIPCOpenEventHandleExp(context, bytes.data(), 64, &event));
    answer("put an event", urIPCPutEventHandleExp(context, bytes.data()));
  });
}
