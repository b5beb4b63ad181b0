// A graph that the device itself records from two queues works on memory of another process, time after time.
#include "ipc_app.hpp"
#include "spirv.hpp"

#include <sycl/kernel_bundle.hpp>

#include <fstream>
#include <iterator>

using namespace app;
namespace extension = sycl::ext::oneapi::experimental;

constexpr size_t count = 100'000; // Numbers of each half.
constexpr size_t size = count * sizeof(uint32_t);
constexpr int executions = 5;

// What a half holds after some executions: each multiplies its numbers and adds 1.
static Bytes half(uint32_t factor, int times) {
  Bytes data(size);
  for (size_t at = 0; at < count; ++at) {
    uint32_t value = static_cast<uint32_t>(at);
    for (int time = 0; time < times; ++time) value = value * factor + 1;
    std::memcpy(data.data() + at * sizeof value, &value, sizeof value);
  }
  return data;
}

static Bytes halves(int times) {
  Bytes both = half(2, times), second = half(3, times);
  both.insert(both.end(), second.begin(), second.end());
  return both;
}

static void expect(const std::string &who, Gpu &gpu, const std::byte *memory, int times) {
  print(who + (gpu.read(memory, 2 * size) == halves(times) ? " sees the results" : " sees something else"));
}

static void producer(Peer &consumer) {
  Gpu gpu;
  std::byte *memory = gpu.allocate(2 * size);
  gpu.write(memory, halves(0));
  Handle handle = get(memory, gpu);
  consumer.send(handle.data());
  consumer.await("closed");
  expect("producer", gpu, memory, executions);
  put(handle, gpu);
  gpu.free(memory);
}

static void consumer(Peer &producer) {
  Gpu gpu;
  sycl::queue other{gpu.context, gpu.device, sycl::property::queue::in_order{}};
  auto source = extension::create_kernel_bundle_from_source(gpu.context, extension::source_language::spirv,
                                                            spirv::scale());
  auto kernel = extension::build(source).ext_oneapi_get_kernel("scale");
  std::byte *memory = open(producer.receive(), gpu), *input = gpu.allocate(2 * size), *output = gpu.allocate(2 * size);
  const auto scale = [&](sycl::queue &queue, size_t at, uint32_t factor, const std::vector<sycl::event> &after) {
    return queue.submit([&](sycl::handler &handler) {
      handler.depends_on(after);
      handler.set_args(reinterpret_cast<uint32_t *>(output + at), reinterpret_cast<const uint32_t *>(input + at),
                       factor);
      handler.parallel_for(sycl::range<1>(count), kernel);
    });
  };

  auto executable = [&] {
    extension::command_graph graph{gpu.context, gpu.device, {extension::property::graph::enable_native_recording{}}};
    graph.begin_recording(gpu.queue);
    const sycl::event copied = gpu.queue.memcpy(input, memory, 2 * size);
    // A fork and a join: the second queue is recorded because it waits for the first.
    const sycl::event scaled = scale(other, size, 3, {copied});
    print(other.ext_oneapi_get_state() == extension::queue_state::recording ? "both are recorded" : "one is recorded");
    scale(gpu.queue, 0, 2, {});
    gpu.queue.submit([&](sycl::handler &handler) {
      handler.depends_on(scaled);
      handler.memcpy(memory, output, 2 * size);
    });
    graph.end_recording(gpu.queue);
    const std::string name = "native-graph-" + std::to_string(getpid()) + ".dot";
    graph.print_graph(name);
    std::ifstream file(name);
    const std::string drawing{std::istreambuf_iterator<char>(file), {}};
    std::remove(name.c_str());
    print(drawing.find("kernel scale") != std::string::npos ? "by the device" : "not by the device");
    return graph.finalize();
  }();
  expect("consumer", gpu, memory, 0);
  for (int time = 0; time < executions; ++time) {
    gpu.queue.ext_oneapi_graph(executable);
    if (time == 1) {
      gpu.queue.wait();
      expect("consumer", gpu, memory, 2);
    }
  }
  gpu.queue.wait();
  close(memory, gpu);
  gpu.free(input);
  gpu.free(output);
  producer.say("closed");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
