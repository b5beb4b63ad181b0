// A correct program whose get or open fails: the result, and the values left in its variables.
//
// "get": the driver refuses the get. Without an argument: the producer of the opened memory was killed.
#include "ur_app.hpp"

using namespace app;

static void *const before = reinterpret_cast<void *>(0x5eed);

static void print_answer(const char *call, ur_result_t result, void *place) {
  print(std::string(call) + " answered " + std::to_string(result) + (place == before ? ", nothing" : ", something"));
}

static void *allocate(Ur &ur) {
  void *memory = nullptr;
  CHECK(urUSMDeviceAlloc(ur.context, ur.device, nullptr, nullptr, 8 << 20, &memory));
  return memory;
}

static void producer(Peer &consumer) {
  Ur ur;
  void *data = nullptr, *memory = allocate(ur);
  size_t size = 0;
  CHECK(urIPCGetMemHandleExp(ur.context, memory, &data, &size));
  const auto *bytes = static_cast<const std::byte *>(data);
  consumer.send(Bytes(bytes, bytes + size));
  consumer.receive_word(); // No message ever arrives: the process is killed here.
}

static void consumer(Peer &producer) {
  Ur ur;
  Bytes data = producer.receive();
  producer.kill();
  producer.wait_for_end();
  void *memory = before;
  print_answer("open", urIPCOpenMemHandleExp(ur.context, ur.device, data.data(), data.size(), &memory), memory);
}

static void get() {
  Ur ur;
  void *data = before, *memory = allocate(ur);
  size_t size = 0;
  print_answer("get", urIPCGetMemHandleExp(ur.context, memory, &data, &size), data);
  CHECK(urUSMFree(ur.context, memory));
}

int main(int argc, char **argv) {
  if (argc == 2 && argv[1] == std::string("get")) return run_alone(get);
  return run(argc, argv, consumer, producer, false);
}
