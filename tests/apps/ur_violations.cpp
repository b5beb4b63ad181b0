// Violations that SYCL prevents, by one process that calls Unified Runtime. Others are cases of ur_event.cpp and ur_physical.cpp.
//
// The argument selects one. Each prints the results of its calls, as ur_result_t. "list" prints all names.
#include "ur_app.hpp"

using namespace app;

static std::string number(ur_result_t result) { return std::to_string(result); }

// A get and its put, of memory that lives as long as the context.
static void get_and_put(Ur &ur) {
  static void *const memory = ur.allocate(4096);
  ur.put(ur.get(memory));
}

#define VIOLATION(name)                                                                                                \
  static void name(Ur &);                                                                                              \
  ADD_MODE(name, [] { Ur ur; name(ur); });                                                                             \
  static void name([[maybe_unused]] Ur &ur)

// The event's put frees the block of the other kind and leaves its descriptor open.
VIOLATION(put_as_an_event) {
  ur_physical_mem_handle_t memory = ur.make_memory();
  const Data got = ur.get(memory);
  print("put as an event's: " + number(urIPCPutEventHandleExp(ur.context, got.data)));
  CHECK(urPhysicalMemRelease(memory));
}

// The second release reads memory that the first has freed: it is harmless only if it is refused before the loader reads it.
VIOLATION(second_release) {
  ur_physical_mem_handle_t memory = ur.make_memory();
  CHECK(urIPCPutPhysMemHandleExp(ur.context, ur.get(memory).data));
  CHECK(urPhysicalMemRelease(memory));
  print("second release: " + number(urPhysicalMemRelease(memory)));
}

VIOLATION(imports_behind_their_context) {
  ur_physical_mem_handle_t memory = ur.make_memory(), opened = nullptr;
  ur_event_handle_t event = ur.make_event(), imported = nullptr;
  const Data of_memory = ur.get(memory), of_event = ur.get(event);
  ur_context_handle_t context = nullptr;
  CHECK(urContextCreate(1, &ur.device, nullptr, &context));
  const Bytes bytes = of_memory.copy(), bytes_of_event = of_event.copy();
  CHECK(urIPCOpenPhysMemHandleExp(context, ur.device, bytes.data(), bytes.size(), &opened));
  CHECK(urIPCOpenEventHandleExp(context, bytes_of_event.data(), bytes_of_event.size(), &imported));
  print("release of their context: " + number(urContextRelease(context)));
  CHECK(urIPCPutPhysMemHandleExp(ur.context, of_memory.data));
  CHECK(urIPCPutEventHandleExp(ur.context, of_event.data));
  CHECK(urPhysicalMemRelease(memory));
  CHECK(urEventRelease(event));
}

// The v1 adapter reports that it cannot share physical memory.
VIOLATION(memory_that_the_device_cannot_share) {
  const bool shares = ur.supports(UR_DEVICE_INFO_IPC_PHYSICAL_MEMORY_SUPPORT_EXP);
  CHECK(urPhysicalMemRelease(ur.make_memory())); // created to be shared
  print(std::string("shared though the device says ") + (shares ? "yes" : "no"));
  get_and_put(ur);
}

// Files that are never closed, besides correct gets and puts; and handle data of physical memory, each with its file.
// Descriptors are counted at most once in a millisecond, and after a pause of 200 times what a count costs.
VIOLATION(files_over_and_over) {
  for (int i = 0; i < 200; ++i) {
    require(dup(2) >= 0, "no descriptor");
    get_and_put(ur);
    usleep(3000);
  }
  print("200 files more");
}

VIOLATION(handle_data_that_is_kept) {
  ur_physical_mem_handle_t memory = ur.make_memory();
  for (int i = 0; i < 200; ++i) {
    ur.get(memory);
    usleep(3000);
  }
  CHECK(urPhysicalMemRelease(memory));
  print("200 handles more");
}

// The second device, which the context does not include.
static ur_device_handle_t other_device(Ur &ur) {
  ur_platform_handle_t platform = nullptr;
  CHECK(urDeviceGetInfo(ur.device, UR_DEVICE_INFO_PLATFORM, sizeof platform, &platform, nullptr));
  ur_device_handle_t devices[2] = {};
  uint32_t count = 0;
  CHECK(urDeviceGet(platform, UR_DEVICE_TYPE_GPU, 0, nullptr, &count));
  require(count == 2, "ZE_SOFT_DEVICES=2 is missing");
  CHECK(urDeviceGet(platform, UR_DEVICE_TYPE_GPU, 2, devices, nullptr));
  return devices[devices[0] == ur.device];
}

// Memory of the first device, opened on the second one in a context of either.
static void open_on_another_device(Ur &ur, bool in_its_own_context) {
  ur_device_handle_t other = other_device(ur);
  ur_context_handle_t context = ur.context;
  if (in_its_own_context) CHECK(urContextCreate(1, &other, nullptr, &context));
  void *memory = ur.allocate(8 << 20), *opened = nullptr;
  const Data got = ur.get(memory);
  print("open on another device: " + number(urIPCOpenMemHandleExp(context, other, got.data, got.size, &opened)));
  if (opened != nullptr) CHECK(urIPCCloseMemHandleExp(context, opened));
  ur.put(got);
  ur.free(memory);
  if (in_its_own_context) CHECK(urContextRelease(context));
}

VIOLATION(a_device_that_is_not_the_contexts) { open_on_another_device(ur, false); }
VIOLATION(a_device_that_is_not_the_memorys) { open_on_another_device(ur, true); }

int main(int argc, char **argv) { return run_modes(argc, argv); }
