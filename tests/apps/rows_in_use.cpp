// The violation: the consumer closes memory of which rows are still copied, and tells the producer, which uses the memory for something
// else. With the argument "mended" the consumer waits for the copy first. Its device is slowed, so that the copy always comes late.
#include "ur_app.hpp"

#include <cstdlib>

using namespace app;

constexpr size_t row = 256, rows = 64, size = row * rows;

static Bytes filled(unsigned char value) { return Bytes(size, std::byte{value}); }

static void producer(Peer &consumer, const std::string &mode) {
  consumer.say(mode);
  Ur ur;
  void *memory = nullptr;
  CHECK(urUSMDeviceAlloc(ur.context, ur.device, nullptr, nullptr, size, &memory));
  const Bytes first = filled(41), second = filled(42);
  CHECK(urEnqueueUSMMemcpy(ur.queue, true, memory, first.data(), size, 0, nullptr, nullptr));
  void *handle = nullptr;
  size_t handle_size = 0;
  CHECK(urIPCGetMemHandleExp(ur.context, memory, &handle, &handle_size));
  const auto *bytes = static_cast<std::byte *>(handle);
  consumer.send(Bytes(bytes, bytes + handle_size));
  consumer.await("closed");
  CHECK(urEnqueueUSMMemcpy2D(ur.queue, true, memory, row, second.data(), row, row, rows, 0, nullptr, nullptr));
  // No adapter need have this one; a fill of rows is recorded all the same.
  const unsigned char pattern = 42;
  urEnqueueUSMFill2D(ur.queue, memory, row, 1, &pattern, row, rows, 0, nullptr, nullptr);
  CHECK(urQueueFinish(ur.queue));
  consumer.say("used again");
  CHECK(urIPCPutMemHandleExp(ur.context, handle));
  CHECK(urUSMFree(ur.context, memory));
}

static void consumer(Peer &producer) {
  const bool waits = producer.receive_word() == "mended";
  setenv("ZE_SOFT_DELAY", "4s", 1);
  Ur ur;
  Bytes handle = producer.receive();
  void *memory = nullptr;
  CHECK(urIPCOpenMemHandleExp(ur.context, ur.device, handle.data(), handle.size(), &memory));
  Bytes data(size);
  CHECK(urEnqueueUSMMemcpy2D(ur.queue, false, data.data(), row, memory, row, row, rows, 0, nullptr, nullptr));
  if (waits) CHECK(urQueueFinish(ur.queue));
  CHECK(urIPCCloseMemHandleExp(ur.context, memory));
  producer.say("closed");
  producer.await("used again");
  CHECK(urQueueFinish(ur.queue));
  print(data == filled(41) ? "consumer has what was sent" : "consumer has something else");
}

int main(int argc, char **argv) {
  const std::string mode = argc > 1 ? argv[1] : "forgotten";
  return run(argc, argv, [&](Peer &other) { producer(other, mode); }, consumer);
}
