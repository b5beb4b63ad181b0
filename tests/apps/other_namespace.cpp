// Opens the UR loader given by its path in a way in which a preloaded library does not see the adapter, and shares memory through it.
//
// It links nothing of Unified Runtime.
#include <stdbool.h> // ur_api.h uses bool without including it.
#include <ur_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <vector>

static void require(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "%s failed\n", what);
  exit(1);
}
#define CHECK(call) require((call) == UR_RESULT_SUCCESS, #call)

static void *open_loader(const char *way, const char *path) {
  if (strcmp(way, "namespace") == 0) return dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL);
  return dlopen(path, RTLD_NOW | RTLD_LOCAL | (strcmp(way, "deepbind") == 0 ? RTLD_DEEPBIND : 0));
}

int main(int argc, char **argv) {
  require(argc == 3, "usage: other_namespace namespace|deepbind|plain LOADER;");
  void *loader = open_loader(argv[1], argv[2]);
  if (loader == nullptr) fprintf(stderr, "%s\n", dlerror());
  require(loader != nullptr, "opening the loader");
#define FIND(name) const auto name##_ = reinterpret_cast<decltype(&name)>(dlsym(loader, #name))
  FIND(urLoaderInit);
  FIND(urAdapterGet);
  FIND(urPlatformGet);
  FIND(urDeviceGet);
  FIND(urContextCreate);
  FIND(urUSMDeviceAlloc);
  FIND(urIPCGetMemHandleExp);
  FIND(urIPCPutMemHandleExp);
  FIND(urUSMFree);
  FIND(urContextRelease);

  CHECK(urLoaderInit_(0, nullptr));
  uint32_t count = 0;
  CHECK(urAdapterGet_(0, nullptr, &count));
  std::vector<ur_adapter_handle_t> adapters(count);
  CHECK(urAdapterGet_(count, adapters.data(), nullptr));
  for (auto *adapter : adapters) {
    ur_platform_handle_t platform = nullptr;
    if (urPlatformGet_(adapter, 1, &platform, nullptr) != UR_RESULT_SUCCESS || platform == nullptr) continue;
    ur_device_handle_t device = nullptr;
    if (urDeviceGet_(platform, UR_DEVICE_TYPE_GPU, 1, &device, nullptr) != UR_RESULT_SUCCESS) continue;
    ur_context_handle_t context = nullptr;
    CHECK(urContextCreate_(1, &device, nullptr, &context));
    void *memory = nullptr, *data = nullptr;
    size_t size = 0;
    CHECK(urUSMDeviceAlloc_(context, device, nullptr, nullptr, 1 << 16, &memory));
    CHECK(urIPCGetMemHandleExp_(context, memory, &data, &size));
    CHECK(urIPCPutMemHandleExp_(context, data));
    CHECK(urUSMFree_(context, memory));
    CHECK(urContextRelease_(context));
    printf("shared %zu bytes of handle data\n", size);
    return 0;
  }
  require(false, "finding a device");
}
