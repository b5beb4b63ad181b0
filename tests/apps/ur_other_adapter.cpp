// Properties and behaviour of a device of another adapter: the first that the loader finds, of any type.
//
// Each line is the ur_result_t of a call, and the value that a query returned.
#include "ur_app.hpp"

using namespace app;

// The first device of any adapter.
static ur_device_handle_t find_device(std::vector<ur_adapter_handle_t> &adapters) {
  uint32_t count = 0;
  CHECK(urAdapterGet(0, nullptr, &count));
  adapters.resize(count);
  CHECK(urAdapterGet(count, adapters.data(), nullptr));
  for (auto *adapter : adapters) {
    CHECK(urPlatformGet(adapter, 0, nullptr, &count));
    std::vector<ur_platform_handle_t> platforms(count);
    if (count > 0) CHECK(urPlatformGet(adapter, count, platforms.data(), nullptr));
    for (auto *platform : platforms) {
      ur_device_handle_t device = nullptr;
      if (urDeviceGet(platform, UR_DEVICE_TYPE_ALL, 1, &device, nullptr) == UR_RESULT_SUCCESS) return device;
    }
  }
  require(false, "no adapter has a device");
  return nullptr;
}

static std::string asked(ur_device_handle_t device, ur_device_info_t property) {
  ur_bool_t value = 2;
  const ur_result_t result = urDeviceGetInfo(device, property, sizeof value, &value, nullptr);
  const char *const words[] = {" no", " yes", ""};
  return std::to_string(result) + words[value];
}

static void answer(const char *what, ur_result_t result) { print(std::string(what) + ": " + std::to_string(result)); }

int main() {
  return run_alone([] {
    CHECK(urLoaderInit(0, nullptr));
    std::vector<ur_adapter_handle_t> adapters;
    ur_device_handle_t device = find_device(adapters);
    print("memory: " + asked(device, UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP));
    print("physical memory: " + asked(device, UR_DEVICE_INFO_IPC_PHYSICAL_MEMORY_SUPPORT_EXP));
    print("events: " + asked(device, UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP));

    ur_context_handle_t context = nullptr;
    CHECK(urContextCreate(1, &device, nullptr, &context));
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

    const ur_exp_event_desc_t desc = {UR_STRUCTURE_TYPE_EXP_EVENT_DESC, nullptr, UR_EXP_EVENT_FLAG_IPC_EXP};
    ur_event_handle_t event = nullptr;
    answer("make an event", urEventCreateExp(context, device, &desc, &event));
    answer("open an event", urIPCOpenEventHandleExp(context, bytes.data(), 64, &event));
    answer("put an event", urIPCPutEventHandleExp(context, bytes.data()));

    CHECK(urContextRelease(context));
    CHECK(urDeviceRelease(device));
    for (auto *adapter : adapters) CHECK(urAdapterRelease(adapter));
    CHECK(urLoaderTearDown());
  });
}
