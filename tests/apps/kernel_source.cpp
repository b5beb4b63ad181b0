// Kernels in SYCL, compiled by the runtime itself: the only compiler that the program needs is that of its host code.
#include "ipc_app.hpp"

#include <sycl/kernel_bundle.hpp>

using namespace app;
namespace compiler = sycl::ext::oneapi::experimental;

constexpr size_t count = 1024, group = 64;

constexpr const char *source = R"(
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

// The sum of first + step * i over the items.
static double sum(double first, double step, size_t from, size_t items) {
  double total = 0;
  for (size_t at = from; at < from + items; ++at) total += first + step * static_cast<double>(at);
  return total;
}

int main() {
  Gpu gpu;
  std::string log;
  auto text = compiler::create_kernel_bundle_from_source(gpu.context, compiler::source_language::sycl, source);
  auto bundle = compiler::build(text, compiler::properties{compiler::save_log{&log}});
  auto *numbers = sycl::malloc_device<double>(count, gpu.queue);
  auto *partial = sycl::malloc_shared<double>(count / group, gpu.queue);
  auto *total = sycl::malloc_host<double>(1, gpu.queue);
  const auto launch = [&](const char *name, auto... arguments) {
    gpu.queue.submit([&](sycl::handler &handler) {
      handler.set_args(arguments...);
      handler.parallel_for(sycl::nd_range<1>(count, group), bundle.ext_oneapi_get_kernel(name));
    });
  };
  for (const auto &[first, step] : {std::pair{0.0, 0L}, std::pair{2.5, 3L}}) {
    *total = 0;
    launch("iota", numbers, first, step);
    launch("collect", total, partial, numbers);
    gpu.queue.wait_and_throw();
    bool right = *total == sum(first, static_cast<double>(step), 0, count);
    for (size_t at = 0; at < count / group; ++at)
      right &= partial[at] == sum(first, static_cast<double>(step), at * group, group);
    print(right ? "right" : "wrong");
  }
  sycl::free(total, gpu.queue);
  sycl::free(partial, gpu.queue);
  sycl::free(numbers, gpu.queue);
}
