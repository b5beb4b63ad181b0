// What comes before what in queues of SYCL. One process writes shared memory, the other one reads it, or reads and lets it be overwritten. The
// first argument names the case; "list" prints the names. Those that begin with "right" are correct; in the others, nothing orders the two
// commands. A case runs on any device without a delay.
#include "kernel_app.hpp"

#include <memory>

using namespace app;

namespace {

constexpr size_t size = 1 << 20;

// The writer's memory, and two queues of each kind.
struct Writer {
  Gpu gpu;
  std::byte *const memory = gpu.allocate(size), *const own = gpu.allocate(size);
  const Handle handle = get(memory, gpu);
  sycl::queue in_order{gpu.context, gpu.device, sycl::property::queue::in_order{}};
  sycl::queue out_of_order{gpu.context, gpu.device}, other{gpu.context, gpu.device};

  sycl::event write(sycl::queue &queue) { return queue.memset(memory, 7, size); }
};

// Shares memory, makes it known by `write` that it was written, and waits for the end.
void write(Peer &reader, const std::function<void(Writer &, const std::function<void()> &)> &write) {
  Writer writer;
  reader.send(writer.handle.data());
  reader.await("open");
  bool is_told = false;
  const auto tell = [&] { is_told = true, reader.say("written"); };
  write(writer, tell);
  if (!is_told) tell();
  reader.await("read");
  for (sycl::queue *queue : {&writer.in_order, &writer.out_of_order, &writer.other}) queue->wait();
  reader.say("waited");
  reader.await("closed");
  put(writer.handle, writer.gpu);
  writer.gpu.free(writer.memory);
  writer.gpu.free(writer.own);
}

void read(Peer &writer) {
  Gpu gpu;
  std::byte *memory = open(writer.receive(), gpu);
  writer.say("open");
  writer.await("written");
  gpu.read(memory, size);
  writer.say("read");
  writer.await("waited");
  close(memory, gpu);
  writer.say("closed");
}

#define WRITES(name, ...)                                                                                                                    \
  ADD_MODE(name, [](Peer &reader) { write(reader, [](Writer & writer, [[maybe_unused]] const auto &tell) __VA_ARGS__); }, read)

WRITES(right_queue, { writer.write(writer.in_order), writer.in_order.wait(); });
WRITES(right_queue_out_of_order, { writer.write(writer.out_of_order), writer.out_of_order.wait(); });
WRITES(right_event, { writer.write(writer.out_of_order).wait(); });
WRITES(right_event_behind, {
  writer.write(writer.in_order);
  writer.in_order.memset(writer.own, 1, 64).wait();
});
WRITES(right_dependent, {
  const sycl::event written = writer.write(writer.out_of_order);
  writer.other.memset(writer.own, 1, 64, written).wait();
});
WRITES(right_dependent_in_queue, {
  const sycl::event written = writer.write(writer.out_of_order);
  writer.out_of_order.memset(writer.own, 1, 64, written).wait();
});
WRITES(right_chain, {
  sycl::event last = writer.write(writer.out_of_order);
  for (int link = 0; link < 100; ++link) last = writer.out_of_order.memset(writer.own, 1, 64, last);
  last.wait();
});
WRITES(right_behind_barrier, {
  writer.write(writer.out_of_order);
  writer.out_of_order.ext_oneapi_submit_barrier();
  writer.out_of_order.memset(writer.own, 1, 64).wait();
});
WRITES(right_barrier, {
  writer.write(writer.out_of_order);
  writer.out_of_order.ext_oneapi_submit_barrier().wait();
});
WRITES(right_barrier_elsewhere, {
  const sycl::event written = writer.write(writer.out_of_order);
  writer.other.ext_oneapi_submit_barrier({written});
  writer.other.memset(writer.own, 1, 64).wait();
});
WRITES(right_polled, {
  const sycl::event written = writer.write(writer.out_of_order);
  while (written.get_info<sycl::info::event::command_execution_status>() != sycl::info::event_command_status::complete) {}
});
WRITES(right_empty, {
  writer.write(writer.in_order);
  while (!writer.in_order.ext_oneapi_empty()) {}
});
WRITES(right_two_events, {
  const sycl::event written = writer.write(writer.out_of_order);
  sycl::event::wait({writer.other.memset(writer.own, 1, 64), written});
});
WRITES(right_prefetch, {
  writer.write(writer.in_order).wait();
  writer.in_order.prefetch(writer.memory, size);
});
WRITES(told_first, {
  writer.write(writer.in_order);
  tell();
});
WRITES(other_queue, {
  writer.write(writer.out_of_order);
  writer.other.wait();
});
WRITES(other_event, {
  const sycl::event before = writer.out_of_order.memset(writer.own, 1, 64);
  writer.write(writer.out_of_order);
  sycl::event(before).wait();
});
WRITES(event_behind, {
  writer.write(writer.out_of_order);
  writer.out_of_order.memset(writer.own, 1, 64).wait();
});
WRITES(barrier_before, {
  sycl::event barrier = writer.out_of_order.ext_oneapi_submit_barrier();
  writer.write(writer.out_of_order);
  barrier.wait();
});

// The writer's is a kernel, and the reader is told before it has completed, or after that.
void write_by_kernel(Writer &writer) {
  writer.in_order.submit(scale(scale_kernel(writer.gpu.context), size / sizeof(uint32_t), writer.memory, writer.own, 3));
}
WRITES(right_kernel, {
  write_by_kernel(writer);
  writer.in_order.wait();
});
WRITES(kernel_behind, {
  writer.write(writer.out_of_order);
  const auto kernel = scale_kernel(writer.gpu.context);
  writer.out_of_order.submit(scale(kernel, 16, writer.own, writer.own + 64, 3)).wait();
});
WRITES(right_behind_kernel, {
  const sycl::event written = writer.write(writer.out_of_order);
  const auto kernel = scale_kernel(writer.gpu.context);
  writer.out_of_order.submit(scale(kernel, 16, writer.own, writer.own + 64, 3, {written})).wait();
});
WRITES(kernel_told_first, {
  write_by_kernel(writer);
  tell();
});

// The reader lets the memory be overwritten: before its copy is known to be over, or after that.
void read_and_tell(Peer &writer, bool tells_first) {
  Gpu gpu;
  std::byte *memory = open(writer.receive(), gpu);
  Bytes data(size);
  sycl::event copied = gpu.queue.memcpy(data.data(), memory, size);
  if (!tells_first) copied.wait();
  writer.say("read");
  writer.await("overwritten");
  copied.wait();
  close(memory, gpu);
  writer.say("closed");
}
void overwrite(Peer &reader) {
  Writer writer;
  writer.write(writer.in_order).wait();
  reader.send(writer.handle.data());
  reader.await("read");
  writer.in_order.memset(writer.memory, 8, size).wait();
  reader.say("overwritten");
  reader.await("closed");
  put(writer.handle, writer.gpu);
  writer.gpu.free(writer.memory);
  writer.gpu.free(writer.own);
}
ADD_MODE(right_overwritten, overwrite, [](Peer &writer) { read_and_tell(writer, false); });
ADD_MODE(overwritten_early, overwrite, [](Peer &writer) { read_and_tell(writer, true); });

} // namespace

int main(int argc, char **argv) { return run_modes(argc, argv); }
