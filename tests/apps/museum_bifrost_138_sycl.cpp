// After bifrost 138, in SYCL and between two processes: a slot of a ring is passed on while the copy into it is under way. There is an event
// that was to show the end of the copy, that of a barrier in front of it. Fixed, the barrier is behind it.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t slots = 4, slot_size = 1 << 18;

static void writer(Peer &reader) {
  Gpu gpu;
  std::byte *ring = gpu.allocate(slots * slot_size), *frame = gpu.allocate(slot_size);
  gpu.queue.memset(frame, 'a', slot_size).wait();
  Handle handle = get(ring, gpu);
  reader.send(handle.data());
  for (size_t slot = 0; slot < slots; ++slot) {
    sycl::event written;
    if (!is_fixed()) written = gpu.queue.ext_oneapi_submit_barrier();
    gpu.queue.memcpy(ring + slot * slot_size, frame, slot_size);
    if (is_fixed()) written = gpu.queue.ext_oneapi_submit_barrier();
    written.wait();
    reader.say("slot");
    reader.await("read");
    gpu.queue.wait();
  }
  reader.await("closed");
  put(handle, gpu);
  gpu.free(ring);
  gpu.free(frame);
}

static void reader(Peer &writer) {
  Gpu gpu;
  std::byte *ring = open(writer.receive(), gpu);
  for (size_t slot = 0; slot < slots; ++slot) {
    writer.await("slot");
    gpu.read(ring + slot * slot_size, slot_size);
    writer.say("read");
  }
  print("all slots were read");
  close(ring, gpu);
  writer.say("closed");
}

int main(int argc, char **argv) { return run(argc, argv, writer, reader); }
