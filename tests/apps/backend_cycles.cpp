// Gets, opens, closes and puts memory and physical memory over and over, in one process, and counts its descriptors.
//
// The functions are looked up by name, as a program does that shall run where the runtime has none of them.
#include "ur_app.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>

using namespace app;

static size_t descriptors() {
  size_t count = 0;
  DIR *folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

template <typename Function> static Function find(const char *name) {
  auto function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  require(function != nullptr, std::string("there is no ") + name);
  return function;
}

// `void **` and what is passed by value have the same shape in all releases.
using Get = ur_result_t (*)(void *, void *, void **, size_t *);
using Put = ur_result_t (*)(void *, void *);
using Open = ur_result_t (*)(void *, void *, const void *, size_t, void **);

// What is the same for both kinds.
static void cycle(Ur &ur, const char *kind, void *object, int times) {
  const std::string name = kind;
  const auto get = find<Get>(("urIPCGet" + name + "HandleExp").c_str());
  const auto put = find<Put>(("urIPCPut" + name + "HandleExp").c_str());
  const auto open = find<Open>(("urIPCOpen" + name + "HandleExp").c_str());
  const auto close = find<Put>(("urIPCClose" + name + "HandleExp").c_str());
  size_t before = 0, bytes = 0;
  for (int i = 0; i < times; ++i) {
    if (i == times / 10) before = descriptors(), bytes = mallinfo2().uordblks;
    void *data[2], *opened[2];
    size_t size = 0;
    for (void *&one : data) CHECK(get(ur.context, object, &one, &size));
    for (int j : {0, 1}) CHECK(open(ur.context, ur.device, data[j], size, &opened[j]));
    CHECK(put(ur.context, data[0]));
    require(put(ur.context, data[0]) == UR_RESULT_ERROR_INVALID_ARGUMENT, "a second put was accepted");
    for (void *one : opened) CHECK(close(ur.context, one));
    CHECK(put(ur.context, data[1]));
  }
  print(name + ": " + std::to_string(descriptors() - before) + " descriptors more");
  print(name + (mallinfo2().uordblks < bytes + 4096 ? ": no memory more" : ": memory more"));
}

int main(int argc, char **argv) {
  const int times = argc > 1 ? std::atoi(argv[1]) : 1000;
  return run_alone([times] {
    Ur ur;
    void *memory = nullptr;
    CHECK(urUSMDeviceAlloc(ur.context, ur.device, nullptr, nullptr, 1 << 20, &memory));
    cycle(ur, "Mem", memory, times);
    CHECK(urUSMFree(ur.context, memory));

    const ur_physical_mem_properties_t properties = {UR_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES, nullptr,
                                                     UR_PHYSICAL_MEM_FLAG_ENABLE_IPC};
    size_t size = 0;
    CHECK(urVirtualMemGranularityGetInfo(ur.context, ur.device, 1, UR_VIRTUAL_MEM_GRANULARITY_INFO_RECOMMENDED,
                                         sizeof size, &size, nullptr));
    ur_physical_mem_handle_t physical = nullptr;
    CHECK(urPhysicalMemCreate(ur.context, ur.device, size, &properties, &physical));
    cycle(ur, "PhysMem", physical, times);
    CHECK(urPhysicalMemRelease(physical));
  });
}
