// The clean program for physical-memory IPC: three pieces of physical memory, side by side at addresses of each process's own.
//
// The consumer maps the last piece in two parts, the other two whole.
#include "ipc_app.hpp"

#include "physical_app.hpp"

using namespace app;

constexpr size_t pieces = 3;

// Two granules: the least that can be mapped in parts.
static size_t piece(const Gpu &gpu) { return 2 * granularity(gpu); }

static void producer(Peer &consumer) {
  Gpu gpu;
  const size_t size = piece(gpu);
  Addresses addresses(gpu, pieces * size);
  std::vector<physical_mem> memory;
  std::vector<Handle> handles;
  for (size_t i = 0; i < pieces; ++i) {
    memory.push_back(make_shared_memory(gpu, size));
    addresses.map(memory[i], i * size, size);
  }
  const Bytes data = pattern(pieces * size, 1);
  gpu.write(addresses.pointer(), data);
  print("producer wrote " + checksum(data));
  for (auto &one : memory) {
    handles.push_back(ipc_physical::get(one));
    consumer.send(handles.back().data());
    consumer.await("open");
  }
  consumer.await("closed");
  print("producer read " + checksum(gpu.read(addresses.pointer(), pieces * size)));
  for (auto &handle : handles) ipc_physical::put(handle, gpu.context);
  for (size_t i = 0; i < pieces; ++i) addresses.unmap(i * size, size);
}

static void consumer(Peer &producer) {
  Gpu gpu;
  const size_t size = piece(gpu);
  Addresses addresses(gpu, pieces * size);
  {
    std::vector<physical_mem> memory;
    for (size_t i = 0; i < pieces; ++i) {
      memory.push_back(ipc_physical::open(producer.receive(), gpu.context, gpu.device));
      require(memory.back().size() == size, "the memory has another size here");
      require(memory.back().ipc_enabled(), "opened memory is not shared memory");
      producer.say("open");
    }
    const size_t last = (pieces - 1) * size, half = size / 2;
    for (size_t at = 0; at < last; at += size) addresses.map(memory[at / size], at, size);
    addresses.map(memory.back(), last, half);
    addresses.map(memory.back(), last + half, half, half);

    print("consumer read " + checksum(gpu.read(addresses.pointer(), pieces * size)));
    const Bytes data = pattern(pieces * size, 2);
    gpu.write(addresses.pointer(), data);
    print("consumer wrote " + checksum(data));

    for (size_t at = 0; at < last; at += size) addresses.unmap(at, size);
    addresses.unmap(last, half);
    addresses.unmap(last + half, half);
  }
  producer.say("closed");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
