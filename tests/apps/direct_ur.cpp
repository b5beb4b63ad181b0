// A saint that knows no SYCL: it links the UR loader itself and calls urIPC* through the C interface.
#include "peer.hpp"

#include <stdbool.h> // ur_api.h uses bool and does not say so.
#include <ur_api.h>

using namespace app;

static void check(ur_result_t result, const char *call) {
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

constexpr size_t size = 1 << 20;

static std::string first_word(const std::vector<uint64_t> &data) { return std::to_string(data.front()); }

static void producer(Peer &consumer) {
  Ur ur;
  void *memory = nullptr;
  CHECK(urUSMDeviceAlloc(ur.context, ur.device, nullptr, nullptr, size, &memory));
  const std::vector<uint64_t> data(size / sizeof(uint64_t), 42);
  CHECK(urEnqueueUSMMemcpy(ur.queue, true, memory, data.data(), size, 0, nullptr, nullptr));

  void *handle = nullptr;
  size_t handle_size = 0;
  CHECK(urIPCGetMemHandleExp(ur.context, memory, &handle, &handle_size));
  const auto *bytes = static_cast<std::byte *>(handle);
  consumer.send(Bytes(bytes, bytes + handle_size));
  print("producer wrote " + first_word(data));
  consumer.await("closed");
  CHECK(urIPCPutMemHandleExp(ur.context, handle));
  CHECK(urUSMFree(ur.context, memory));
}

static void consumer(Peer &producer) {
  Ur ur;
  Bytes handle = producer.receive();
  void *memory = nullptr;
  CHECK(urIPCOpenMemHandleExp(ur.context, ur.device, handle.data(), handle.size(), &memory));
  std::vector<uint64_t> data(size / sizeof(uint64_t));
  CHECK(urEnqueueUSMMemcpy(ur.queue, true, data.data(), memory, size, 0, nullptr, nullptr));
  print("consumer read " + first_word(data));
  CHECK(urIPCCloseMemHandleExp(ur.context, memory));
  producer.say("closed");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
