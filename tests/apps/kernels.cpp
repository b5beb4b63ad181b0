// Kernels on the software device, most of them `scale` of spirv.hpp. The first argument names what they do; "list" prints the names.
#include "kernel_app.hpp"

#include <iterator>

using namespace app;

namespace {

constexpr size_t count = 1 << 16;
constexpr size_t size = count * sizeof(uint32_t);

bool all_are(const uint32_t *memory, uint32_t value) {
  return std::all_of(memory, memory + count, [&](uint32_t found) { return found == value; });
}

void expect(const std::string &who, Gpu &gpu, const void *memory, const Bytes &expected) {
  print(who + (gpu.read(memory, expected.size()) == expected ? " sees the results" : " sees something else"));
}

// --- In one process -----------------------------------------------------------------------------------------------

// A kernel follows a wild pointer. The device is lost, and the program says so and ends as it chooses.
ALONE(fault) {
  Gpu gpu;
  auto *memory = sycl::malloc_device<uint32_t>(count, gpu.queue);
  try {
    gpu.queue.submit(scale(scale_kernel(gpu.context), count, memory, reinterpret_cast<uint32_t *>(0x1000), 1));
    gpu.queue.wait_and_throw();
    print("nothing happened");
  } catch (const sycl::exception &error) {
    print(std::string(error.what()).find("DEVICE_LOST") == std::string::npos ? error.what() : "the device is lost");
  }
  sycl::free(memory, gpu.queue);
  require(false, "it ends with an error");
}

// Kernels and a fill in a command buffer, which is executed several times.
ALONE(graph) {
  Gpu gpu;
  const auto kernel = scale_kernel(gpu.context);
  auto *first = sycl::malloc_shared<uint32_t>(count, gpu.queue), *second = sycl::malloc_shared<uint32_t>(count, gpu.queue);
  std::fill_n(first, count, 1u);
  extension::command_graph graph{gpu.context, gpu.device};
  const auto after = [](auto &node) { return extension::property::node::depends_on(node); };
  auto cleared = graph.add([&](sycl::handler &handler) { handler.memset(second, 0xff, size); });
  auto there = graph.add(scale(kernel, count, second, first, 2), {after(cleared)});
  graph.add(scale(kernel, count, first, second, 1), {after(there)});
  auto executable = graph.finalize();
  uint32_t expected = 1;
  for (int time = 0; time < 20; ++time) {
    gpu.queue.ext_oneapi_graph(executable);
    expected = expected * 2 + 2;
  }
  gpu.queue.wait_and_throw();
  print(all_are(first, expected) ? "right" : "wrong");
  for (void *memory : {first, second}) sycl::free(memory, gpu.queue);
}

// A command buffer that is changed after it was made: the arguments of its kernel, and then the range.
ALONE(update) {
  Gpu gpu;
  require(gpu.device.has(sycl::aspect::ext_oneapi_graph), "the device does not update command buffers");
  const auto kernel = scale_kernel(gpu.context);
  uint32_t *memory[3];
  for (auto &each : memory) each = sycl::malloc_shared<uint32_t>(count, gpu.queue);
  std::fill_n(memory[0], count, 1u);
  extension::command_graph graph{gpu.context, gpu.device};
  extension::dynamic_parameter<uint32_t *> target{memory[1]};
  extension::dynamic_parameter<uint32_t> factor{2};
  auto node = graph.add([&](sycl::handler &handler) {
    handler.set_arg(0, target);
    handler.set_arg(1, memory[0]);
    handler.set_arg(2, factor);
    handler.parallel_for(sycl::range<1>(count), kernel);
  });
  auto executable = graph.finalize(extension::property::graph::updatable{});
  const auto runs = [&] {
    for (size_t each : {1, 2}) std::fill_n(memory[each], count, 0u);
    gpu.queue.ext_oneapi_graph(executable).wait_and_throw();
  };
  const auto holds = [&](size_t which, size_t length, uint32_t value) {
    bool right = true;
    for (size_t index = 0; index < count; ++index) right &= memory[which][index] == (index < length ? value : 0);
    print(right ? "right" : "wrong");
  };
  runs();
  holds(1, count, 3);
  target.update(memory[2]);
  factor.update(41);
  executable.update(node);
  runs();
  holds(2, count, 42);
  holds(1, 0, 0);
  node.update_range(sycl::range<1>(count / 4));
  executable.update(node);
  runs();
  holds(2, count / 4, 42);
  for (void *each : memory) sycl::free(each, gpu.queue);
}

// Kernels and copies in turns, on an in-order queue and on one whose commands only events order. An adapter may pass the
// copies to another queue of the device than the kernels. If the device offers it, a kernel uses memory of the process, too.
bool copies_are_right(const Gpu &gpu, const sycl::kernel &kernel, sycl::queue queue, bool ordered) {
  auto *outside = sycl::malloc_host<uint32_t>(count, queue), *seen = sycl::malloc_host<uint32_t>(count, queue);
  auto *first = sycl::malloc_device<uint32_t>(count, queue), *second = sycl::malloc_device<uint32_t>(count, queue);
  std::fill_n(outside, count, 1u);
  const auto after = [&](const sycl::event &event) { return ordered ? std::vector<sycl::event>{} : std::vector{event}; };
  sycl::event last;
  uint32_t expected = 1;
  for (int round = 0; round < 100; ++round) {
    last = queue.memcpy(first, outside, size, after(last));
    last = queue.memset(second, 0xff, size, after(last));
    last = queue.submit(scale(kernel, count, second, first, 3, after(last)));
    last = queue.memcpy(seen, second, size, after(last));
    last = queue.memcpy(outside, seen, size, after(last));
    expected = expected * 3 + 1;
  }
  queue.wait_and_throw();
  const bool right = all_are(outside, expected);
  for (void *memory : {outside, seen, first, second}) sycl::free(memory, gpu.context);
  return right;
}
ALONE(copies) {
  Gpu gpu;
  const auto kernel = scale_kernel(gpu.context);
  print(copies_are_right(gpu, kernel, gpu.queue, true) ? "in order: right" : "in order: wrong");
  print(copies_are_right(gpu, kernel, sycl::queue{gpu.context, gpu.device}, false) ? "by events: right" : "by events: wrong");
  if (!gpu.device.has(sycl::aspect::usm_system_allocations)) return;
  std::vector<uint32_t> from(count, 1), to(count);
  gpu.queue.submit(scale(kernel, count, to.data(), from.data(), 3)).wait_and_throw();
  print(all_are(to.data(), 4) ? "memory of the process: right" : "memory of the process: wrong");
}

// Kernels in SYCL, compiled by the runtime itself: the only compiler that the program needs is that of its host code.
constexpr const char *sycl_kernels = R"(
#include <sycl/sycl.hpp>
namespace item = sycl::ext::oneapi::this_work_item;
namespace properties = sycl::ext::oneapi::experimental;

// An 8-byte argument may be zero.
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((properties::nd_range_kernel<1>))
void iota(double *to, double first, long step) {
  const size_t id = item::get_nd_item<1>().get_global_linear_id();
  to[id] = first + step * static_cast<double>(id);
}

extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((properties::nd_range_kernel<1>))
void collect(double *total, double *partial, const double *from) {
  auto it = item::get_nd_item<1>();
  const double value = from[it.get_global_linear_id()];
  const double sum = sycl::reduce_over_group(it.get_group(), value, sycl::plus<>());
  if (it.get_local_linear_id() == 0) partial[it.get_group_linear_id()] = sum;
  sycl::atomic_ref<double, sycl::memory_order::relaxed, sycl::memory_scope::device>(*total) += value;
}
)";
ALONE(source) {
  constexpr size_t items = 1024, group = 64;
  Gpu gpu;
  std::string log;
  auto text = extension::create_kernel_bundle_from_source(gpu.context, extension::source_language::sycl, sycl_kernels);
  auto bundle = extension::build(text, extension::properties{extension::save_log{&log}});
  auto *numbers = sycl::malloc_device<double>(items, gpu.queue);
  auto *partial = sycl::malloc_shared<double>(items / group, gpu.queue);
  auto *total = sycl::malloc_host<double>(1, gpu.queue);
  const auto launch = [&](const char *name, auto... arguments) {
    gpu.queue.submit([&](sycl::handler &handler) {
      handler.set_args(arguments...);
      handler.parallel_for(sycl::nd_range<1>(items, group), bundle.ext_oneapi_get_kernel(name));
    });
  };
  for (const auto &[first, step] : {std::pair{0.0, 0L}, std::pair{2.5, 3L}}) {
    *total = 0;
    launch("iota", numbers, first, step);
    launch("collect", total, partial, numbers);
    gpu.queue.wait_and_throw();
    double all = 0;
    bool right = true;
    for (size_t at = 0; at < items / group; ++at) {
      double sum = 0;
      for (size_t item = at * group; item < (at + 1) * group; ++item) sum += first + static_cast<double>(step) * static_cast<double>(item);
      right &= partial[at] == sum;
      all += sum;
    }
    print(right && *total == all ? "right" : "wrong");
  }
  for (void *memory : {total, partial, numbers}) sycl::free(memory, gpu.queue);
}

// --- On memory of two processes -----------------------------------------------------------------------------------

void change(Peer &producer) {
  Gpu gpu;
  const auto kernel = scale_kernel(gpu.context);
  std::byte *memory = open(producer.receive(), gpu);
  expect("consumer", gpu, memory, numbers(count, 1, 2));
  const bool is_late = argument(1) == "late";
  if (is_late) close(memory, gpu);
  gpu.queue.submit(scale(kernel, count, memory, memory, 3)).wait();
  if (!is_late) close(memory, gpu);
  producer.say("closed");
}
// The producer's kernel fills the memory, the consumer's changes it; the mistake ("late"): when it is closed.
PARENT_MODE(exchange, change, consumer) {
  Gpu gpu;
  const auto kernel = scale_kernel(gpu.context);
  std::byte *from = gpu.allocate(size), *memory = gpu.allocate(size);
  gpu.write(from, numbers(count, 0, 1));
  // Between two copies of an in-order queue, without a wait.
  gpu.queue.memset(memory, 0xff, size);
  gpu.queue.submit(scale(kernel, count, memory, from, 2));
  gpu.queue.memset(from, 0, size).wait();
  Handle handle = get(memory, gpu);
  consumer.send(handle.data());
  consumer.await("closed");
  expect("producer", gpu, memory, numbers(count, 4, 6));
  put(handle, gpu);
  gpu.free(memory);
  gpu.free(from);
}

void read_beside(Peer &producer) {
  Gpu gpu;
  const auto kernel = scale_kernel(gpu.context);
  std::byte *result = gpu.allocate(size), *memory = open(producer.receive(), gpu);
  producer.say("open");
  producer.await("filled");
  gpu.queue.submit(scale(kernel, count, result, memory, 3)).wait();
  producer.say("read");
  producer.await("waited");
  close(memory, gpu);
  gpu.free(result);
  producer.say("closed");
}
// The producer fills memory and tells the consumer, whose kernel reads it: too early, unless "fixed" is the last word.
PARENT_MODE(told_first, read_beside, consumer) {
  Gpu gpu;
  std::byte *memory = gpu.allocate(size);
  Handle handle = get(memory, gpu);
  consumer.send(handle.data());
  consumer.await("open");
  sycl::event filled = gpu.queue.memset(memory, 1, size);
  if (is_fixed()) filled.wait();
  consumer.say("filled");
  consumer.await("read");
  filled.wait();
  consumer.say("waited");
  consumer.await("closed");
  put(handle, gpu);
  gpu.free(memory);
}

void use_again(Peer &consumer) { use_for_something_else(consumer, numbers(count, 0, 1), numbers(count, 7, 0)); }
// The mistake: the consumer closes memory that its kernel still reads.
CHILD_MODE(in_use, use_again, producer) {
  close_while_read(producer, [](Gpu &gpu, const std::byte *memory) {
    auto *result = sycl::malloc_shared<uint32_t>(count, gpu.queue);
    return Reading{gpu.queue.submit(scale(scale_kernel(gpu.context), count, result, memory, 3)), [&gpu, result] {
                     const bool is_right = std::memcmp(result, numbers(count, 1, 3).data(), size) == 0;
                     sycl::free(result, gpu.queue);
                     return is_right;
                   }};
  });
}

// A graph that the device itself records from two queues works on memory of another process, time after time: each execution multiplies the
// numbers of the two halves and adds 1.
constexpr int executions = 5;
Bytes halves(int times) {
  Bytes data;
  for (uint32_t factor : {2, 3}) {
    uint32_t first = 0, step = 1;
    for (int time = 0; time < times; ++time) first = first * factor + 1, step *= factor;
    const Bytes half = numbers(count, first, step);
    data.insert(data.end(), half.begin(), half.end());
  }
  return data;
}
void record_and_execute(Peer &producer) {
  Gpu gpu;
  sycl::queue other{gpu.context, gpu.device, sycl::property::queue::in_order{}};
  const auto kernel = scale_kernel(gpu.context);
  std::byte *memory = open(producer.receive(), gpu), *input = gpu.allocate(2 * size), *output = gpu.allocate(2 * size);
  auto executable = [&] {
    extension::command_graph graph{gpu.context, gpu.device, {extension::property::graph::enable_native_recording{}}};
    graph.begin_recording(gpu.queue);
    const sycl::event copied = gpu.queue.memcpy(input, memory, 2 * size);
    // A fork and a join: the second queue is recorded because it waits for the first.
    const sycl::event scaled = other.submit(scale(kernel, count, output + size, input + size, 3, {copied}));
    print(other.ext_oneapi_get_state() == extension::queue_state::recording ? "both are recorded" : "one is recorded");
    gpu.queue.submit(scale(kernel, count, output, input, 2));
    gpu.queue.memcpy(memory, output, 2 * size, scaled);
    graph.end_recording(gpu.queue);
    return graph.finalize();
  }();
  expect("consumer", gpu, memory, halves(0));
  for (int time = 1; time <= executions; ++time) {
    gpu.queue.ext_oneapi_graph(executable);
    if (time != 2) continue;
    gpu.queue.wait();
    expect("consumer", gpu, memory, halves(time));
  }
  gpu.queue.wait();
  close(memory, gpu);
  gpu.free(input);
  gpu.free(output);
  producer.say("closed");
}
PARENT_MODE(native_graph, record_and_execute, consumer) {
  Gpu gpu;
  std::byte *memory = gpu.allocate(2 * size);
  gpu.write(memory, halves(0));
  Handle handle = get(memory, gpu);
  consumer.send(handle.data());
  consumer.await("closed");
  expect("producer", gpu, memory, halves(executions));
  put(handle, gpu);
  gpu.free(memory);
}

// The parts of the device, and a queue of each. The context is that of the whole device, because the v2 adapter launches only kernels
// that were built for it.
struct Parts {
  sycl::device whole{sycl::gpu_selector_v};
  std::vector<sycl::device> parts = whole.create_sub_devices<sycl::info::partition_property::partition_by_affinity_domain>(
      sycl::info::partition_affinity_domain::next_partitionable);
  sycl::context context{whole};
  std::vector<sycl::queue> queues;

  Parts() {
    require(parts.size() == 2, "there are not two sub-devices");
    for (const auto &part : parts) queues.emplace_back(context, part, sycl::property::queue::in_order{});
  }
};

void open_on_the_other(Peer &producer) {
  Parts gpu;
  void *memory = ipc::open(producer.receive(), gpu.context, gpu.parts[1]);
  require(memory != nullptr, "open handed out no pointer");
  Bytes found(size);
  gpu.queues[1].memcpy(found.data(), memory, size).wait();
  print(found == numbers(count, 42, 0) ? "the consumer sees the numbers" : "the consumer sees something else");
  ipc::close(memory, gpu.context);
  producer.say("closed");
}
// Memory of a sub-device. The producer fills it with a kernel on the other sub-device of the same device, and the consumer opens it on that
// one.
PARENT_MODE(sub_devices, open_on_the_other, consumer) {
  Parts gpu;
  auto *memory = sycl::malloc_device<uint32_t>(count, gpu.parts[0], gpu.context);
  auto *ones = sycl::malloc_device<uint32_t>(count, gpu.parts[1], gpu.context);
  require(memory != nullptr && ones != nullptr, "no device memory");
  gpu.queues[0].memcpy(ones, numbers(count, 1, 0).data(), size).wait();
  gpu.queues[1].submit(scale(scale_kernel(gpu.context), count, memory, ones, 41)).wait_and_throw();
  auto handle = ipc::get(memory, gpu.context);
  consumer.send(handle.data());
  consumer.await("closed");
  ipc::put(handle, gpu.context);
  for (void *each : {memory, ones}) sycl::free(each, gpu.context);
  print("the producer's sub-devices: " + std::to_string(gpu.parts.size()));
}

} // namespace

int main(int argc, char **argv) { return run_modes(argc, argv); }
