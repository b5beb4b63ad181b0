// A clean program without SYCL: it links the UR loader and calls urIPC* through the C interface.
#include "ur_app.hpp"

using namespace app;

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
  print("producer wrote " + first_word(data));
  consumer.send(Bytes(bytes, bytes + handle_size));
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
