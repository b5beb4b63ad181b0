// The producer must not be traced, and the consumer has no right to trace any process: the kernel refuses the descriptor that
// the handle data names.
#include "ur_cases.hpp"

using namespace app;

static void producer(Peer &consumer) {
  const Untraceable untraceable;
  Ur ur;
  void *memory = nullptr;
  CHECK(urUSMDeviceAlloc(ur.context, ur.device, nullptr, nullptr, 8 << 20, &memory));
  Data got;
  CHECK(urIPCGetMemHandleExp(ur.context, memory, &got.data, &got.size));
  consumer.send(got.copy());
  consumer.await("done");
  CHECK(urIPCPutMemHandleExp(ur.context, got.data));
  CHECK(urUSMFree(ur.context, memory));
}

static void consumer(Peer &producer) {
  give_up_the_right_to_trace();
  Ur ur;
  Bytes data = producer.receive();
  void *memory = nullptr;
  const ur_result_t result = urIPCOpenMemHandleExp(ur.context, ur.device, data.data(), data.size(), &memory);
  print("open answered " + std::to_string(result) + (memory == nullptr ? ", nothing" : ""));
  // With another size it is refused because of the size.
  const ur_result_t shorter = urIPCOpenMemHandleExp(ur.context, ur.device, data.data(), data.size() - 1, &memory);
  print("a byte less answered " + std::to_string(shorter));
  producer.say("done");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
