// For the programs without SYCL: they link the UR loader and call it through its C interface.
#pragma once

#include "peer.hpp"

#include <stdbool.h> // ur_api.h uses bool without including it.
#include <ur_api.h>

namespace app {

inline void check(ur_result_t result, const char *call) {
  require(result == UR_RESULT_SUCCESS, std::string(call) + " answered " + std::to_string(result));
}
#define CHECK(call) check(call, #call)

// The first GPU of any adapter, and a context and a queue on it.
struct Ur {
  std::vector<ur_adapter_handle_t> adapters;
  ur_device_handle_t device = nullptr;
  ur_context_handle_t context = nullptr;
  ur_queue_handle_t queue = nullptr;

  Ur() {
    CHECK(urLoaderInit(0, nullptr));
    uint32_t count = 0;
    CHECK(urAdapterGet(0, nullptr, &count));
    adapters.resize(count);
    CHECK(urAdapterGet(count, adapters.data(), nullptr));
    for (auto *adapter : adapters) find_gpu(adapter);
    require(device != nullptr, "no adapter has a GPU");
    CHECK(urContextCreate(1, &device, nullptr, &context));
    CHECK(urQueueCreate(context, device, nullptr, &queue));
  }

  ~Ur() {
    urQueueRelease(queue);
    urContextRelease(context);
    urDeviceRelease(device);
    for (auto *adapter : adapters) urAdapterRelease(adapter);
    urLoaderTearDown();
  }

private:
  void find_gpu(ur_adapter_handle_t adapter) {
    uint32_t count = 0;
    CHECK(urPlatformGet(adapter, 0, nullptr, &count));
    std::vector<ur_platform_handle_t> platforms(count);
    if (count > 0) CHECK(urPlatformGet(adapter, count, platforms.data(), nullptr));
    for (auto *platform : platforms) {
      if (device != nullptr) return;
      uint32_t gpus = 0;
      if (urDeviceGet(platform, UR_DEVICE_TYPE_GPU, 0, nullptr, &gpus) != UR_RESULT_SUCCESS || gpus == 0) continue;
      CHECK(urDeviceGet(platform, UR_DEVICE_TYPE_GPU, 1, &device, nullptr));
    }
  }
};

} // namespace app
