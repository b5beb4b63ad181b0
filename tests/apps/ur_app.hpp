// For the programs without SYCL: they link the UR loader and call it through its C interface.
#pragma once

#include "peer.hpp"

#include <cstring>
#include <stdbool.h> // ur_api.h uses bool without including it.
#include <ur_api.h>

namespace app {

inline void check(ur_result_t result, const char *call) {
  require(result == UR_RESULT_SUCCESS, std::string(call) + " answered " + std::to_string(result));
}
#define CHECK(call) check(call, #call)

// The result of a get.
struct Data {
  void *data = nullptr;
  size_t size = 0;

  // What another process receives.
  Bytes copy() const {
    const auto *bytes = static_cast<const std::byte *>(data);
    return Bytes(bytes, bytes + size);
  }
};

// The first GPU of any adapter, and a context and a queue on it.
struct Ur {
  std::vector<ur_adapter_handle_t> adapters;
  ur_device_handle_t device = nullptr;
  ur_context_handle_t context = nullptr;
  ur_queue_handle_t queue = nullptr;

  Ur(ur_device_type_t type = UR_DEVICE_TYPE_GPU) {
    CHECK(urLoaderInit(0, nullptr));
    uint32_t count = 0;
    CHECK(urAdapterGet(0, nullptr, &count));
    adapters.resize(count);
    CHECK(urAdapterGet(count, adapters.data(), nullptr));
    for (auto *adapter : adapters) find_device(adapter, type);
    require(device != nullptr, "no adapter has such a device");
    CHECK(urContextCreate(1, &device, nullptr, &context));
    CHECK(urQueueCreate(context, device, nullptr, &queue));
  }
  Ur(const Ur &) = delete;
  ~Ur() {
    urQueueRelease(queue);
    urContextRelease(context);
    urDeviceRelease(device);
    for (auto *adapter : adapters) urAdapterRelease(adapter);
    urLoaderTearDown();
  }

  void *allocate(size_t size) const {
    void *memory = nullptr;
    CHECK(urUSMDeviceAlloc(context, device, nullptr, nullptr, size, &memory));
    return memory;
  }
  Data get(void *memory) const {
    Data got;
    CHECK(urIPCGetMemHandleExp(context, memory, &got.data, &got.size));
    return got;
  }
  void put(const Data &got) const { CHECK(urIPCPutMemHandleExp(context, got.data)); }
  // An adapter may write into the bytes.
  ur_result_t try_open(Bytes bytes, void **memory) const {
    return urIPCOpenMemHandleExp(context, device, bytes.data(), bytes.size(), memory);
  }
  void *open(const Bytes &bytes) const {
    void *memory = nullptr;
    CHECK(try_open(bytes, &memory));
    return memory;
  }
  void close(void *memory) const { CHECK(urIPCCloseMemHandleExp(context, memory)); }
  void free(void *memory) const { CHECK(urUSMFree(context, memory)); }

  // Copies to or from memory that the device can access.
  void copy(void *to, const void *from, size_t size) const { CHECK(urEnqueueUSMMemcpy(queue, true, to, from, size, 0, nullptr, nullptr)); }
  bool supports(ur_device_info_t what) const { return asked(what) == "0 yes"; }
  // The result of the query, and its value if there is one.
  std::string asked(ur_device_info_t what) const {
    ur_bool_t value = 2;
    const ur_result_t result = urDeviceGetInfo(device, what, sizeof value, &value, nullptr);
    const char *const words[] = {" no", " yes", ""};
    return std::to_string(result) + words[value];
  }

  size_t granularity() const {
    size_t size = 0;
    CHECK(urVirtualMemGranularityGetInfo(context, device, 1, UR_VIRTUAL_MEM_GRANULARITY_INFO_RECOMMENDED, sizeof size, &size, nullptr));
    return size;
  }
  ur_result_t try_create(size_t size, ur_physical_mem_flags_t flags, ur_physical_mem_handle_t *memory) const {
    const ur_physical_mem_properties_t properties = {UR_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES, nullptr, flags};
    return urPhysicalMemCreate(context, device, size, &properties, memory);
  }
  // Physical memory of one granule, unless a size is given.
  ur_physical_mem_handle_t make_memory(ur_physical_mem_flags_t flags = UR_PHYSICAL_MEM_FLAG_ENABLE_IPC, size_t size = 0) const {
    ur_physical_mem_handle_t memory = nullptr;
    CHECK(try_create(size > 0 ? size : granularity(), flags, &memory));
    return memory;
  }
  Data get(ur_physical_mem_handle_t memory) const {
    Data got;
    CHECK(urIPCGetPhysMemHandleExp(context, memory, &got.data, &got.size));
    return got;
  }
  // Maps it at an address of its own.
  void *map(ur_physical_mem_handle_t memory, size_t size) const {
    void *start = nullptr;
    CHECK(urVirtualMemReserve(context, nullptr, size, &start));
    CHECK(urVirtualMemMap(context, start, size, memory, 0, UR_VIRTUAL_MEM_ACCESS_FLAG_READ_WRITE));
    return start;
  }

  ur_result_t try_create(ur_exp_event_flags_t flags, ur_event_handle_t *event) const {
    const ur_exp_event_desc_t desc = {UR_STRUCTURE_TYPE_EXP_EVENT_DESC, nullptr, flags};
    return urEventCreateExp(context, device, &desc, event);
  }
  ur_event_handle_t make_event(ur_exp_event_flags_t flags = UR_EXP_EVENT_FLAG_IPC_EXP) const {
    ur_event_handle_t event = nullptr;
    CHECK(try_create(flags, &event));
    return event;
  }
  Data get(ur_event_handle_t event) const {
    Data got;
    CHECK(urIPCGetEventHandleExp(event, &got.data, &got.size));
    return got;
  }

private:
  void find_device(ur_adapter_handle_t adapter, ur_device_type_t type) {
    uint32_t count = 0;
    CHECK(urPlatformGet(adapter, 0, nullptr, &count));
    std::vector<ur_platform_handle_t> platforms(count);
    if (count > 0) CHECK(urPlatformGet(adapter, count, platforms.data(), nullptr));
    for (auto *platform : platforms) {
      uint32_t devices = 0;
      if (device != nullptr) return;
      if (urDeviceGet(platform, type, 0, nullptr, &devices) != UR_RESULT_SUCCESS || devices == 0) continue;
      CHECK(urDeviceGet(platform, type, 1, &device, nullptr));
    }
  }
};

} // namespace app
