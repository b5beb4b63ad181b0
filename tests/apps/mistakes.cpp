// One mistake each with memory that is shared by SYCL, or something that is worth a note. The first argument names the function that makes
// it; "list" prints the names.
#include "async_app.hpp"

#include <chrono>
#include <thread>

using namespace app;

namespace {

// From a pool of the adapter.
constexpr size_t pooled = 1 << 20;

// What most consumers do.
template <size_t size> void open_and_close(Peer &producer) {
  Gpu gpu;
  close(open_and_read(producer, gpu, size), gpu);
  producer.say("closed");
}

// Has the memory open while it is freed.
void hold_open(Peer &producer) {
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, unpooled);
  producer.say("open");
  producer.await("freed");
  close(memory, gpu);
}

// Shares memory until it is killed.
void share_for_ever(Peer &consumer) { Shared(unpooled, 14).send(consumer, "never sent"); }

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

// The handle's data is a null pointer, as the v1 adapter returns it when a get fails.
ALONE(put_null) {
  Shared shared;
  print("put of null " + outcome([&] { put(with_data_at(shared.exported.handle, nullptr), shared.gpu); }));
  shared.end();
}

// A put of a handle that no get has returned: a copy, as in a program that received the bytes from another process.
//
// The adapters free the buffer with their allocator, which trusts the word before it. So the copy includes that word and has
// room to spare, and what the adapter does with it later is harmless.
ALONE(put_of_unknown) {
  alignas(64) static std::byte foreign[4096];
  Shared shared;
  std::byte *real, *copy = foreign + 64;
  std::memcpy(&real, &shared.exported.handle, sizeof real); // The pointer is its first member.
  std::memcpy(copy - sizeof(size_t), real - sizeof(size_t), sizeof(size_t));
  std::memcpy(copy, shared.data.data(), shared.data.size());
  const Handle unknown = with_data_at(shared.exported.handle, copy);
  print("put of a copy " + outcome([&] { put(unknown, shared.gpu); }));
  shared.end();
}

// A process gets handle data for the same memory again for every message, and puts none.
ALONE(unreturned_gets) {
  Gpu gpu;
  std::byte *memory = gpu.allocate(unpooled);
  for (int message = 0; message < 300; ++message) get(memory, gpu);
  gpu.free(memory);
}

// A process shares a new buffer in each round, and frees it without a put. Mended, it puts.
ALONE(lost_handles) {
  Gpu gpu;
  for (int round = 0; round < 300; ++round) {
    std::byte *memory = gpu.allocate(unpooled);
    const Handle handle = get(memory, gpu);
    if (is_mended()) put(handle, gpu);
    gpu.free(memory);
  }
}

// The adapter refuses it for an allocation of the driver, but not for one from a pool.
ALONE(get_of_freed) {
  Gpu gpu;
  const auto get_and_put = [&](size_t size, const std::string &what) {
    std::byte *memory = gpu.allocate(size);
    gpu.free(memory);
    print("get of freed memory " + what + " " + outcome([&] { put(get(memory, gpu), gpu); }));
  };
  get_and_put(unpooled, "of the driver");
  get_and_put(pooled, "of a pool");
}

// A get for memory of the host. The adapters accept what the driver can export.
ALONE(wrong_usm) {
  Gpu gpu;
  void *memory = sycl::malloc_host(unpooled, gpu.context);
  require(memory != nullptr, "no host memory");
  outcome([&] { put(ipc::get(memory, gpu.context), gpu); });
  sycl::free(memory, gpu.context);
}

// The producer gets handle data that it never sends, besides data that is opened.
PRODUCER(get_without_open, open_and_close<pooled>) {
  Shared shared;
  std::byte *forgotten = shared.gpu.allocate(pooled);
  Handle unsent = app::get(forgotten, shared.gpu);
  shared.send(consumer, "closed");
  shared.end();
  put(unsent, shared.gpu);
  shared.gpu.free(forgotten);
  print("one was sent");
}

// The shared memory comes from a pool of the adapter, so other memory of the producer lies next to it.
PRODUCER(slab_exposed, open_and_close<4096>) {
  Gpu gpu;
  std::byte *secret = gpu.allocate(4096);
  auto [memory, handle] = export_pattern(gpu, 4096, 39);
  consumer.send(handle.data());
  consumer.await("closed");
  put(handle, gpu);
  gpu.free(memory);
  gpu.free(secret);
  print("one of two was shared");
}

// The consumer gets handle data of memory that it has opened, to forward it.
CONSUMER(get_of_opened) {
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, pooled);
  print("get of opened memory " + outcome([&] { get(memory, gpu); }));
  close(memory, gpu);
}

// --- Opens ----------------------------------------------------------------------------------------------------------

// A process opens its own handle three times.
ALONE(open_in_producer) {
  Shared shared;
  for (int i = 0; i < 3; i++) close(open(shared.data, shared.gpu), shared.gpu);
  shared.end();
  print("opened at home 3 times");
}

// The producer puts its handle before the consumer opens it. The adapters happen to open it all the same.
PRODUCER(use_after_put, open_and_close<unpooled>) {
  Shared shared(unpooled, 24);
  shared.put();
  shared.send(consumer, "closed");
  shared.free();
}

// The consumer opens memory that the producer has freed. It came from a pool, so the adapters still open it.
PRODUCER(use_after_free, open_and_close<pooled>) {
  Shared shared(pooled, 33);
  shared.end();
  shared.send(consumer, "closed");
}

// The consumer opens handle data of freed memory whose address has been allocated again, and reads memory that was never shared with it.
PRODUCER(stale_handle, open_and_close<pooled>) {
  Shared shared(pooled, 34);
  shared.end();
  std::byte *secret = shared.gpu.allocate(pooled);
  require(secret == shared.memory, "the pool hands out another address");
  const Bytes content = pattern(pooled, 35);
  shared.gpu.write(secret, content);
  print("producer wrote " + checksum(content) + ", and does not share it");
  shared.send(consumer, "closed");
  shared.gpu.free(secret);
}

// The producer (the child) is killed before the consumer opens its handle, so the open is refused. (The v1 adapter reports success for it,
// and returns nothing.)
PARENT_MODE(open_of_ended, share_for_ever, producer) {
  Gpu gpu;
  const Bytes handle = producer.receive();
  producer.kill();
  void *memory = nullptr;
  outcome([&] { memory = ipc::open(handle, gpu.context, gpu.device); });
  require(memory == nullptr, "memory of a process that has ended was opened");
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

// A close of a pointer that no open has returned: the producer's own memory.
ALONE(close_of_unknown) {
  Shared shared;
  print("close of own memory " + outcome([&] { close(shared.memory, shared.gpu); }));
  shared.end();
}

// The consumer closes a pointer into its mapping instead of the pointer that open returned.
CONSUMER(close_interior) {
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, pooled);
  print("close of an interior pointer " + outcome([&] { close(memory + 4096, gpu); }));
}

// The consumer closes its mapping in a context other than the one that it was opened in.
CONSUMER(close_wrong_context) {
  Gpu gpu, other;
  std::byte *memory = open_and_read(producer, gpu, pooled);
  print("close in another context " + outcome([&] { close(memory, other); }));
}

// The consumer passes its mapping to sycl::free instead of closing it.
CONSUMER(close_by_free) {
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, pooled);
  print("free of a mapping " + outcome([&] { gpu.free(memory); }));
}

// The consumer gets handle data of its mapping, and frees it, after it has closed it.
CONSUMER(use_after_close) {
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, pooled);
  close(memory, gpu);
  print("get of a closed mapping " + outcome([&] { get(memory, gpu); }));
  print("free of a closed mapping " + outcome([&] { gpu.free(memory); }));
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

// The producer frees its memory before it puts the handle, when no process has it open.
PRODUCER(free_before_put, open_and_close<unpooled>) {
  Shared shared(unpooled, 11);
  shared.send(consumer, "closed");
  shared.free();
  shared.put();
}

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

// The producer (the child) exits while the consumer has its memory open. The mapping stays readable.
void share_until_opened(Peer &consumer) {
  Shared shared(unpooled, 36);
  shared.send(consumer, "open");
  shared.put();
}
PARENT_MODE(exporter_gone, share_until_opened, producer) {
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, unpooled);
  producer.say("open");
  require(producer.wait_for_end() == 0, "the producer failed");
  print("consumer read " + checksum(gpu.read(memory, unpooled)) + ", after the producer's end");
  close(memory, gpu);
}

// No mistake: the producer (the child) is killed while the consumer has its memory open; the consumer continues, and the mapping stays
// readable.
PARENT_MODE(killed_producer, share_for_ever, producer) {
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, unpooled);
  producer.kill();
  print("consumer read " + checksum(gpu.read(memory, unpooled)) + ", after the kill");
  close(memory, gpu);
}

// No mistake: memory is allocated and freed by commands of a queue, three times, at addresses that may come again. The last handle is not
// put; it ends with the free of its memory.
constexpr uint32_t rounds = 3;
void open_each_round(Peer &producer) {
  Gpu gpu;
  for (uint32_t round = 0; round < rounds; ++round) {
    close(open_and_read(producer, gpu, unpooled), gpu);
    producer.say("closed");
  }
}
PRODUCER(async_clean, open_each_round) {
  Gpu gpu;
  for (uint32_t round = 0; round < rounds; ++round) {
    std::byte *memory = async_allocate(gpu, unpooled, round);
    const Handle handle = get(memory, gpu);
    consumer.send(handle.data());
    consumer.await("closed");
    if (round + 1 < rounds) put(handle, gpu);
    async_release(gpu, memory);
  }
}

// A command of a queue frees memory that the consumer still has open. (Its handle is put in time.)
PRODUCER(async_free_while_open, hold_open) {
  Gpu gpu;
  std::byte *memory = async_allocate(gpu, unpooled, 21);
  const Handle handle = get(memory, gpu);
  consumer.send(handle.data());
  consumer.await("open");
  put(handle, gpu);
  async_release(gpu, memory);
  consumer.say("freed");
}

// The pool of memory is destroyed, and the memory with it, while the consumer still has it open.
PRODUCER(pool_released_while_open, hold_open) {
  Gpu gpu;
  {
    async::memory_pool pool(gpu.queue, sycl::usm::alloc::device);
    const Handle handle = get(async_allocate(gpu, pool, unpooled, 22), gpu);
    consumer.send(handle.data());
    consumer.await("open");
    put(handle, gpu);
  }
  consumer.say("freed");
}

} // namespace

int main(int argc, char **argv) { return run_modes(argc, argv); }
