// Memory of the first GPU, which another process uses with the second one. The argument names what it does; "list" prints the names.
#include "ipc_app.hpp"

using namespace app;

namespace {

std::vector<sycl::device> gpus() { return sycl::device::get_devices(sycl::info::device_type::gpu); }

Gpu gpu_in(const sycl::context &context, const sycl::device &device) {
  return {device, context, {context, device, sycl::property::queue::in_order{}}};
}

// A GPU by its index, with a context and a queue of its own.
Gpu gpu_number(size_t index) {
  const sycl::device device = gpus()[index];
  return gpu_in(sycl::context(device), device);
}

void produce(Peer &consumer) {
  Gpu first = gpu_number(0);
  auto [memory, handle] = export_pattern(first, unpooled, 31);
  consumer.send(handle.data());
  consumer.await("closed");
  put(handle, first);
  first.free(memory);
}

void end(Peer &producer, const std::function<void()> &close_it) {
  print("close " + outcome(close_it));
  producer.say("closed");
}

void read_by(Gpu &gpu, const std::byte *memory) {
  print("read " + outcome([&] { print(checksum(gpu.read(memory, unpooled))); }));
}

} // namespace

// The second GPU reads the memory of the first one through a mapping of its own.
CHILD_MODE(opened_on_second, produce, producer) {
  Gpu second = gpu_number(1);
  const Bytes bytes = producer.receive();
  void *memory = nullptr;
  print("open " + outcome([&] { memory = ipc::open(bytes, second.context, second.device); }));
  if (memory == nullptr) return producer.say("closed");
  read_by(second, static_cast<std::byte *>(memory));
  end(producer, [&] { close(memory, second); });
}

// It is opened on the GPU that it is on, and a queue of the other one reads it.
CHILD_MODE(read_by_second, produce, producer) {
  Gpu first = gpu_number(0), second = gpu_number(1);
  std::byte *memory = open(producer.receive(), first);
  read_by(second, memory);
  end(producer, [&] { close(memory, first); });
}

// It is opened in a context of one GPU, and closed in one of the other.
CHILD_MODE(closed_in_second, produce, producer) {
  Gpu first = gpu_number(0), second = gpu_number(1);
  std::byte *memory = open(producer.receive(), first);
  read_by(first, memory);
  end(producer, [&] { close(memory, second); });
}

// One context has both GPUs, as the default one of a platform: whichever is named, it is the right one.
CHILD_MODE(opened_in_a_common_context, produce, producer) {
  const auto devices = gpus();
  const sycl::context both(devices);
  Gpu first = gpu_in(both, devices[0]), second = gpu_in(both, devices[1]);
  std::byte *memory = open(producer.receive(), first);
  read_by(first, memory);
  read_by(second, memory);
  end(producer, [&] { close(memory, second); });
}

int main(int argc, char **argv) {
  // The exit code of a program that needs what is not there.
  const bool is_for_the_list = argc > 1 && argv[1] == std::string("list");
  if (!is_for_the_list && gpus().size() < 2) return 77;
  return run_modes(argc, argv);
}
