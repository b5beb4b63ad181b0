// One mistake each with physical memory or an event that is shared by SYCL, or something that is worth a note. The first argument names the
// function that makes it; "list" prints the names. What is to stay is made with `new`: the end of the process does not destroy it either.
#include "event_app.hpp"
#include "physical_app.hpp"

#include <atomic>
#include <fstream>
#include <memory>
#include <thread>

using namespace app;

namespace {

// --- Physical memory ------------------------------------------------------------------------------------------------

// Shares a granule of it until the consumer has done something.
void share_physical(Peer &consumer) {
  Gpu gpu;
  physical_mem memory = make_shared_memory(gpu, granularity(gpu));
  Handle handle = ipc_physical::get(memory);
  consumer.send(handle.data());
  consumer.await("done");
  ipc_physical::put(handle, gpu.context);
}

// The same with a pattern in it. Released, it ends before the consumer has used it.
void share_pattern(Peer &consumer, uint32_t seed, bool released) {
  Gpu gpu;
  const size_t size = granularity(gpu);
  {
    physical_mem memory = make_shared_memory(gpu, size);
    Addresses addresses(gpu, size);
    addresses.map(memory, 0, size);
    const Bytes data = pattern(size, seed);
    gpu.write(addresses.pointer(), data);
    print("producer wrote " + checksum(data));
    addresses.unmap(0, size);
    Handle handle = ipc_physical::get(memory);
    consumer.send(handle.data());
    consumer.await("done");
    ipc_physical::put(handle, gpu.context);
  }
  if (released) consumer.say("released");
}

void share_mapped(Peer &consumer) { share_pattern(consumer, 5, false); }
void release(Peer &consumer) { share_pattern(consumer, 4, true); }

// A handle is never put. Its memory is released.
ALONE(physical_leaked_handle) {
  Gpu gpu;
  physical_mem memory = make_shared_memory(gpu, granularity(gpu));
  ipc_physical::get(memory);
  print("the handle stays");
}

// The consumer never closes what it opened.
CHILD_MODE(physical_leaked_memory, share_physical, producer) {
  Gpu gpu;
  auto *memory = new physical_mem(ipc_physical::open(producer.receive(), gpu.context, gpu.device));
  print("consumer keeps " + std::to_string(memory->size() / granularity(gpu)) + " granule");
  producer.say("done");
}

void open_after_put(Peer &producer) {
  Gpu gpu;
  const Bytes data = producer.receive();
  print("open after the put " + outcome([&] { ipc_physical::open(data, gpu.context, gpu.device); }));
  producer.say("done");
}
// The producer puts its handle before the consumer opens it: the put has closed the descriptor.
PARENT_MODE(physical_use_after_put, open_after_put, consumer) {
  Gpu gpu;
  physical_mem memory = make_shared_memory(gpu, granularity(gpu));
  Handle handle = ipc_physical::get(memory);
  const Bytes data = handle.data();
  ipc_physical::put(handle, gpu.context);
  consumer.send(data);
  consumer.await("done");
}

// The consumer opens handle data of physical memory as handle data of USM.
CHILD_MODE(open_of_another_kind, share_physical, producer) {
  Gpu gpu;
  const Bytes data = producer.receive();
  print("open as memory " + outcome([&] { ipc::open(data, gpu.context, gpu.device); }));
  producer.say("done");
}

// The consumer closes physical memory that it has mapped, and unmaps it afterwards.
CHILD_MODE(physical_released_while_mapped, share_mapped, producer) {
  Gpu gpu;
  const size_t size = granularity(gpu);
  auto memory = std::make_unique<physical_mem>(ipc_physical::open(producer.receive(), gpu.context, gpu.device));
  Addresses addresses(gpu, size);
  addresses.map(*memory, 0, size);
  print("consumer read " + checksum(gpu.read(addresses.pointer(), size)));
  memory.reset();
  addresses.unmap(0, size);
  print("consumer unmapped it afterwards");
  producer.say("done");
}

// The producer releases physical memory that the consumer still has open. (Its handle is put in time.)
CHILD_MODE(physical_released_while_open, release, producer) {
  Gpu gpu;
  const size_t size = granularity(gpu);
  physical_mem memory = ipc_physical::open(producer.receive(), gpu.context, gpu.device);
  producer.say("done");
  producer.await("released");
  Addresses addresses(gpu, size);
  addresses.map(memory, 0, size);
  print("consumer read " + checksum(gpu.read(addresses.pointer(), size)));
  addresses.unmap(0, size);
}

// No mistake: two gets of one physical memory, and one put for each. What happens to a descriptor that the program opens in between depends
// on the driver.
ALONE(physical_puts_of_one_descriptor) {
  Gpu gpu;
  physical_mem memory = make_shared_memory(gpu, granularity(gpu));
  auto first = ipc_physical::get(memory);
  auto second = ipc_physical::get(memory);
  ipc_physical::put(first, gpu.context);
  // It gets the lowest free number.
  const int own = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ipc_physical::put(second, gpu.context);
  print(fcntl(own, F_GETFD) >= 0 ? "the program's own descriptor is open" : "the program's own descriptor is closed");
  ::close(own);
}

// --- Events ---------------------------------------------------------------------------------------------------------

// A handle is never put. SYCL 2026.2 puts it only when the event is destroyed, and ignores a put by the program. So the event is leaked
// too.
ALONE(event_leaked_handle) {
  Gpu gpu;
  auto *event = new sycl::event(make_shared_event(gpu));
  ipc_event::get(*event);
  print("the handle stays");
}

// The consumer never releases the event that it opened.
void share_event(Peer &consumer) {
  Gpu gpu;
  sycl::event event = make_shared_event(gpu);
  Handle handle = ipc_event::get(event);
  consumer.send(handle.data());
  consumer.await("open");
  ipc_event::put(handle, gpu.context);
}
CHILD_MODE(event_leaked, share_event, producer) {
  Gpu gpu;
  auto *event = new sycl::event(ipc_event::open(producer.receive(), gpu.context));
  print("consumer keeps an event that is " + status(*event));
  producer.say("open");
}

// Whether a thread sleeps. It is then in its wait, because it does nothing else.
bool sleeps(pid_t thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(status, line);
  const size_t name = line.rfind(") ");
  return name != std::string::npos && line.size() > name + 2 && line[name + 2] == 'S';
}

void exit_before_signal(Peer &consumer) {
  Gpu gpu;
  sycl::event event = make_shared_event(gpu);
  Gate gate(gpu);
  experimental::enqueue_signal_event(gpu.queue, event);
  Handle handle = ipc_event::get(event);
  consumer.send(handle.data());
  consumer.await("waiting");
  ipc_event::put(handle, gpu.context);
  _exit(0); // The gate is never opened.
}
// The consumer waits for an event whose producer (the child) exits before the signal.
PARENT_MODE(never_signalled, exit_before_signal, producer) {
  Gpu gpu;
  sycl::event event = ipc_event::open(producer.receive(), gpu.context);
  std::atomic<pid_t> waiting{0};
  std::thread waiter([&] {
    waiting = gettid();
    event.wait();
    print("the event was signalled");
  });
  while (waiting == 0 || !sleeps(waiting)) std::this_thread::yield();
  producer.say("waiting");
  require(producer.wait_for_end() == 0, "the producer failed");
  print("consumer gives up");
  _exit(0);
}

} // namespace

int main(int argc, char **argv) { return run_modes(argc, argv); }
