// Measures launches of an empty kernel of one work item: by the engine itself, and by the software device, which uses that engine.
// `launches SIDE WAY ROUNDS LAUNCHES` prints the milliseconds of the first use, and then the nanoseconds of a launch in each round.
//
// SIDE is `engine`: the OpenCL library that ZE_SOFT_ENGINE names, with a usual queue in order; `engine-inline`: the same with a queue that
// runs kernels in the thread that enqueues them (CL_QUEUE_THREAD_LOCAL_EXEC_ENABLE_INTEL); or `device`: Level Zero, with an immediate list.
// WAY is `waited`: the host waits for each launch; or `queued`: after every 1,000. The first use begins before the engine is opened, for
// the device with zeModuleCreate, and ends when the first launch has ended.
#include "spirv.hpp"
#include "ze_app.hpp"

#include <chrono>

using namespace app;

namespace {

constexpr int A_QUEUE_FULL = 1000;

double since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

// What a side does: a launch, and a wait for all of them.
struct Side {
  std::function<void()> launch, wait;
};

template <class Function> Function function(void *library, const char *name) {
  auto found = reinterpret_cast<Function>(dlsym(library, name));
  require(found != nullptr, std::string("there is no ") + name);
  return found;
}

// A handle of OpenCL. The functions are those of cl.h.
using Cl = void *;

Side engine(uint64_t queue_properties) {
  const char *name = std::getenv("ZE_SOFT_ENGINE");
  require(name != nullptr, "ZE_SOFT_ENGINE names no engine");
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  require(library != nullptr, "the engine cannot be opened");
  const auto check = [](int code, const char *what) { require(code == 0, what + (" returned " + std::to_string(code))); };
  Cl platform = nullptr, device = nullptr;
  int code = 0;
  check(function<int (*)(uint32_t, Cl *, uint32_t *)>(library, "clGetPlatformIDs")(1, &platform, nullptr), "clGetPlatformIDs");
  const uint64_t cpu = 2;
  check(function<int (*)(Cl, uint64_t, uint32_t, Cl *, uint32_t *)>(library, "clGetDeviceIDs")(platform, cpu, 1, &device, nullptr),
        "clGetDeviceIDs");
  const Cl context = function<Cl (*)(const intptr_t *, uint32_t, const Cl *, void *, void *, int *)>(library, "clCreateContext")(
      nullptr, 1, &device, nullptr, nullptr, &code);
  check(code, "clCreateContext");
  const uint64_t properties[] = {0x1093, queue_properties, 0}; // CL_QUEUE_PROPERTIES
  const Cl queue = function<Cl (*)(Cl, Cl, const uint64_t *, int *)>(library, "clCreateCommandQueueWithProperties")(
      context, device, properties, &code);
  check(code, "clCreateCommandQueueWithProperties");
  const auto bytes = spirv::empty();
  const Cl program = function<Cl (*)(Cl, const void *, size_t, int *)>(library, "clCreateProgramWithIL")(
      context, bytes.data(), bytes.size(), &code);
  check(code, "clCreateProgramWithIL");
  check(function<int (*)(Cl, uint32_t, const Cl *, const char *, void *, void *)>(library, "clBuildProgram")(
            program, 1, &device, "", nullptr, nullptr),
        "clBuildProgram");
  const Cl kernel = function<Cl (*)(Cl, const char *, int *)>(library, "clCreateKernel")(program, "empty", &code);
  check(code, "clCreateKernel");
  using Enqueue = int (*)(Cl, Cl, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t, const Cl *, Cl *);
  const auto enqueue = function<Enqueue>(library, "clEnqueueNDRangeKernel");
  const auto finish = function<int (*)(Cl)>(library, "clFinish");
  const auto launch = [=] {
    const size_t one = 1;
    check(enqueue(queue, kernel, 1, nullptr, &one, &one, 0, nullptr, nullptr), "clEnqueueNDRangeKernel");
  };
  return {launch, [=] { check(finish(queue), "clFinish"); }};
}

// The structures are those of ze_api.h.
struct ze_kernel_desc_t {
  uint32_t stype;
  const void *next;
  uint32_t flags;
  const char *name;
};
struct ze_group_count_t {
  uint32_t x, y, z;
};

Side device(const Ze &ze) {
  void *library = dlopen("libze_loader.so.1", RTLD_LAZY);
  using CreateModule = uint32_t (*)(ze_handle_t, ze_handle_t, const ze_module_desc_t *, ze_handle_t *, ze_handle_t *);
  using Append = uint32_t (*)(ze_handle_t, ze_handle_t, const ze_group_count_t *, ze_handle_t, uint32_t, ze_handle_t *);
  const auto bytes = spirv::empty();
  const ze_module_desc_t of_module = {0x1b, nullptr, 0, bytes.size(), bytes.data(), nullptr, nullptr};
  ze_handle_t module = nullptr, kernel = nullptr, list = nullptr;
  Ze::check(function<CreateModule>(library, "zeModuleCreate")(ze.context, ze.device, &of_module, &module, nullptr), "zeModuleCreate");
  const ze_kernel_desc_t of_kernel = {0x1d, nullptr, 0, "empty"};
  Ze::check(function<uint32_t (*)(ze_handle_t, const ze_kernel_desc_t *, ze_handle_t *)>(library, "zeKernelCreate")(module, &of_kernel, &kernel),
            "zeKernelCreate");
  Ze::check(function<uint32_t (*)(ze_handle_t, uint32_t, uint32_t, uint32_t)>(library, "zeKernelSetGroupSize")(kernel, 1, 1, 1),
            "zeKernelSetGroupSize");
  const ze_command_queue_desc_t of_list = {0xe, nullptr, 0, 0, 0, 2, 0}; // asynchronous
  Ze::check(ze.zeCommandListCreateImmediate(ze.context, ze.device, &of_list, &list), "zeCommandListCreateImmediate");
  const auto append = function<Append>(library, "zeCommandListAppendLaunchKernel");
  const auto synchronize = function<uint32_t (*)(ze_handle_t, uint64_t)>(library, "zeCommandListHostSynchronize");
  const auto launch = [=] {
    const ze_group_count_t one = {1, 1, 1};
    Ze::check(append(list, kernel, &one, nullptr, 0, nullptr), "zeCommandListAppendLaunchKernel");
  };
  return {launch, [=] { Ze::check(synchronize(list, UINT64_MAX), "zeCommandListHostSynchronize"); }};
}

} // namespace

int main(int argc, char **argv) try {
  require(argc == 5, "usage: launches engine|engine-inline|device waited|queued ROUNDS LAUNCHES");
  const std::string which = argv[1], way = argv[2];
  require(way == "waited" || way == "queued", way + " is no way");
  const int rounds = std::atoi(argv[3]), launches = std::atoi(argv[4]);
  const bool is_device = which == "device";
  require(is_device || which == "engine" || which == "engine-inline", which + " is no side");
  const Ze *ze = is_device ? new Ze : nullptr;
  const auto begin = std::chrono::steady_clock::now();
  const uint64_t inline_queue = uint64_t{1} << 31; // CL_QUEUE_THREAD_LOCAL_EXEC_ENABLE_INTEL
  const Side side = is_device ? device(*ze) : engine(which == "engine" ? 0 : inline_queue);
  side.launch();
  side.wait();
  print(std::to_string(since(begin) / 1e6));
  for (int round = 0; round < rounds; round++) {
    const auto start = std::chrono::steady_clock::now();
    for (int launch = 1; launch <= launches; launch++) {
      side.launch();
      if (way == "waited" || launch % A_QUEUE_FULL == 0) side.wait();
    }
    side.wait();
    print(std::to_string(since(start) / launches));
  }
  return 0;
} catch (const std::exception &error) {
  std::fprintf(stderr, "launches: %s\n", error.what());
  return 1;
}
