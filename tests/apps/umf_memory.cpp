// Two processes share memory with libumf alone, as a program or a library does that has no part of Unified Runtime in it. The argument
// names what is right or wrong with it; "list" prints the names.
//
// libumf puts a handle when its memory is freed, and closes a mapping when its pool is destroyed.
#include "witness.hpp"
#include "ze_app.hpp"

#include <umf.h>
#include <umf/ipc.h>
#include <umf/pools/pool_proxy.h>
#include <umf/providers/provider_level_zero.h>

#include <optional>

using namespace app;

static constexpr size_t SIZE = 1 << 16;

static void check(umf_result_t result, const std::string &what) {
  require(result == UMF_RESULT_SUCCESS, what + " returned " + std::to_string(result));
}

// A pool of the memory of the first device.
class Pool {
public:
  explicit Pool(const Ze &ze) {
    umf_level_zero_memory_provider_params_handle_t params = nullptr;
    check(umfLevelZeroMemoryProviderParamsCreate(&params), "umfLevelZeroMemoryProviderParamsCreate");
    const auto context = reinterpret_cast<ze_context_handle_t>(ze.context);
    check(umfLevelZeroMemoryProviderParamsSetContext(params, context), "setting the context");
    const auto device = reinterpret_cast<ze_device_handle_t>(ze.device);
    check(umfLevelZeroMemoryProviderParamsSetDevice(params, device), "setting the device");
    check(umfLevelZeroMemoryProviderParamsSetMemoryType(params, UMF_MEMORY_TYPE_DEVICE), "setting the kind of memory");
    check(umfMemoryProviderCreate(umfLevelZeroMemoryProviderOps(), params, &provider), "umfMemoryProviderCreate");
    umfLevelZeroMemoryProviderParamsDestroy(params);
    check(umfPoolCreate(umfProxyPoolOps(), provider, nullptr, 0, &pool), "umfPoolCreate");
  }
  Pool(const Pool &) = delete;
  ~Pool() {
    umfPoolDestroy(pool);
    umfMemoryProviderDestroy(provider);
  }

  char *allocate() const {
    void *memory = umfPoolMalloc(pool, SIZE);
    require(memory != nullptr, "umfPoolMalloc gave no memory");
    return static_cast<char *>(memory);
  }
  char *open(Bytes handle) const {
    umf_ipc_handler_handle_t opener = nullptr;
    check(umfPoolGetIPCHandler(pool, &opener), "umfPoolGetIPCHandler");
    void *memory = nullptr;
    check(umfOpenIPCHandle(opener, reinterpret_cast<umf_ipc_handle_t>(handle.data()), &memory), "umfOpenIPCHandle");
    return static_cast<char *>(memory);
  }

private:
  umf_memory_provider_handle_t provider = nullptr;
  umf_memory_pool_handle_t pool = nullptr;
};

static void end_copy(const HeldCopy &copy) {
  copy.let_go();
  copy.wait();
}

static void producer(Peer &consumer, const std::string &what) {
  const Ze ze;
  const Witness witness;
  static char other[SIZE];
  std::optional<HeldCopy> copy;
  {
    const Pool pool(ze);
    char *memory = pool.allocate();
    std::memset(memory, 42, SIZE);
    umf_ipc_handle_t handle = nullptr;
    size_t size = 0;
    check(umfGetIPCHandle(memory, &handle, &size), "umfGetIPCHandle");
    const auto *bytes = reinterpret_cast<const std::byte *>(handle);
    consumer.send(Bytes(bytes, bytes + size));
    consumer.await("closed");
    check(umfPutIPCHandle(handle), "umfPutIPCHandle");
    if (what == "freed-while-copied") copy.emplace(ze, memory, other, SIZE);
    check(umfFree(memory), "umfFree");
    if (copy) end_copy(*copy);
  }
}

static void consumer(Peer &producer, const std::string &what) {
  const Ze ze;
  const Witness witness;
  static char other[SIZE];
  std::optional<HeldCopy> copy;
  {
    std::optional<Pool> pool(std::in_place, ze);
    char *memory = pool->open(producer.receive());
    print(memory[0] == 42 && memory[SIZE - 1] == 42 ? "right" : "wrong");
    if (what == "destroyed-while-copied") copy.emplace(ze, other, memory, SIZE);
    check(umfCloseIPCHandle(memory), "umfCloseIPCHandle");
    pool.reset();
    if (copy) end_copy(*copy);
  }
  producer.say("closed");
}

int main(int argc, char **argv) {
  for (const char *what : {"right", "destroyed-while-copied", "freed-while-copied"})
    modes().emplace_back(
        what, [=](Peer &other) { producer(other, what); }, [=](Peer &other) { consumer(other, what); });
  return run_modes(argc, argv);
}
