// One mistake each with memory that is shared by SYCL: those that no scenario (tests/apps/mistakes) makes, and those whose
// call stacks have to name a program. The first argument names the function that makes it; "list" prints the names.
#include "ipc_app.hpp"

#include <chrono>
#include <thread>

using namespace app;

namespace {

// From a pool of the adapter.
constexpr size_t pooled = 1 << 20;

#define PRODUCER(name, consumer_does) PARENT_MODE(name, consumer_does, consumer)
#define CONSUMER(name) CHILD_MODE(name, share_until_ended, producer)

// --- Gets and puts ------------------------------------------------------------------------------------------------

// A handle is never put, and its memory is never freed. The program still ends normally.
ALONE(leaked_handle) {
  Shared shared;
  print("the handle stays");
}

ALONE(double_put) {
  Shared shared;
  shared.put();
  print("second put " + outcome([&] { shared.put(); }));
  shared.free();
}

// --- Closes ---------------------------------------------------------------------------------------------------------

// The consumer never closes its mapping.
CONSUMER(leaked_mapping) {
  Gpu gpu;
  open_and_read(producer, gpu, pooled);
}

CONSUMER(double_close) {
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, pooled);
  close(memory, gpu);
  print("second close " + outcome([&] { close(memory, gpu); }));
}

// The consumer passes its mapping to sycl::free instead of closing it.
CONSUMER(close_by_free) {
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, pooled);
  print("free of a mapping " + outcome([&] { gpu.free(memory); }));
}

// The consumer closes memory that its copy still reads.
void use_again(Peer &consumer) { use_for_something_else(consumer, pattern(pooled, 31), pattern(pooled, 32)); }
CHILD_MODE(close_in_use, use_again, producer) {
  Bytes data(pooled);
  close_while_read(producer, [&](Gpu &gpu, const std::byte *memory) {
    return Reading{gpu.queue.memcpy(data.data(), memory, pooled), [&] { return data == pattern(pooled, 31); }};
  });
}

// --- Frees ----------------------------------------------------------------------------------------------------------

// The producer frees exported memory that its copy still writes to. (Its handle is put, and the mapping closed, in time.) Its device is
// slowed, so that the copy always comes late.
void close_unread(Peer &producer) {
  Gpu gpu;
  close(open(producer.receive(), gpu), gpu);
  producer.say("closed");
}
PRODUCER(free_in_use, close_unread) {
  setenv("ZE_SOFT_DELAY", "4s", 1);
  Gpu gpu;
  std::byte *memory = gpu.allocate(pooled);
  const Handle handle = get(memory, gpu);
  consumer.send(handle.data());
  consumer.await("closed");
  put(handle, gpu);
  const Bytes data = pattern(pooled, 33);
  sycl::event copied = gpu.queue.memcpy(memory, data.data(), pooled);
  gpu.free(memory);
  copied.wait();
  print("producer is done");
}

// The producer frees memory that the consumer has open, from bytes that it had opened and closed before. The v1 adapter writes into the
// bytes of an open, which must not show.
void free_while_open(Peer &consumer) {
  Shared shared(unpooled, 24);
  shared.send(consumer, "open");
  shared.end();
  consumer.say("freed");
}
CHILD_MODE(reopened_buffer, free_while_open, producer) {
  Gpu gpu;
  Bytes bytes = producer.receive();
  const Bytes before = bytes;
  close(open(bytes, gpu), gpu);
  print(bytes == before ? "the bytes are unchanged" : "the bytes have changed");
  std::byte *memory = open(bytes, gpu);
  producer.say("open");
  producer.await("freed");
  close(memory, gpu);
}

// The producer frees memory that the consumer (the child) has open. The consumer makes no further call, so only its being there shows that
// it still holds the memory; it is killed long after the free.
void hold_open(Peer &producer) {
  Gpu gpu;
  open_and_read(producer, gpu, unpooled);
  producer.say("open");
  producer.await("never said");
}
PRODUCER(idle_consumer_killed, hold_open) {
  const auto stay_idle = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1500)); };
  Shared shared(unpooled, 23);
  shared.send(consumer, "open");
  shared.put();
  stay_idle();
  shared.free();
  stay_idle();
  consumer.kill();
}

} // namespace

int main(int argc, char **argv) { return run_modes(argc, argv); }
