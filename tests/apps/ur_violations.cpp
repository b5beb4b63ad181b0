// Violations with physical memory and events that SYCL prevents: one process, which calls Unified Runtime.
//
// The argument selects one. Each prints the results of its calls, as ur_result_t. "list" prints all names.
#include "ur_app.hpp"

#include <map>

using namespace app;

struct Data {
  void *data = nullptr;
  size_t size = 0;
};

static std::string number(ur_result_t result) { return std::to_string(result); }

static ur_physical_mem_handle_t make_memory(Ur &ur, ur_physical_mem_flags_t flags = UR_PHYSICAL_MEM_FLAG_ENABLE_IPC) {
  size_t size = 0;
  CHECK(urVirtualMemGranularityGetInfo(ur.context, ur.device, 1, UR_VIRTUAL_MEM_GRANULARITY_INFO_RECOMMENDED, sizeof size,
                                       &size, nullptr));
  const ur_physical_mem_properties_t properties = {UR_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES, nullptr, flags};
  ur_physical_mem_handle_t memory = nullptr;
  CHECK(urPhysicalMemCreate(ur.context, ur.device, size, &properties, &memory));
  return memory;
}

static ur_event_handle_t make_event(Ur &ur, ur_exp_event_flags_t flags = UR_EXP_EVENT_FLAG_IPC_EXP) {
  const ur_exp_event_desc_t desc = {UR_STRUCTURE_TYPE_EXP_EVENT_DESC, nullptr, flags};
  ur_event_handle_t event = nullptr;
  CHECK(urEventCreateExp(ur.context, ur.device, &desc, &event));
  return event;
}

static Data get(Ur &ur, ur_physical_mem_handle_t memory) {
  Data got;
  CHECK(urIPCGetPhysMemHandleExp(ur.context, memory, &got.data, &got.size));
  return got;
}

static Data get(ur_event_handle_t event) {
  Data got;
  CHECK(urIPCGetEventHandleExp(event, &got.data, &got.size));
  return got;
}

// Data that another process has received is a copy.
static Bytes copy(const Data &got) {
  const auto *bytes = static_cast<const std::byte *>(got.data);
  return Bytes(bytes, bytes + got.size);
}

static ur_result_t open(ur_context_handle_t context, const Bytes &data, ur_event_handle_t *event) {
  return urIPCOpenEventHandleExp(context, data.data(), data.size(), event);
}

// A get and its put, of memory that lives as long as the context.
static void get_and_put(Ur &ur) {
  static void *memory = nullptr;
  if (memory == nullptr) CHECK(urUSMDeviceAlloc(ur.context, ur.device, nullptr, nullptr, 4096, &memory));
  Data got;
  CHECK(urIPCGetMemHandleExp(ur.context, memory, &got.data, &got.size));
  CHECK(urIPCPutMemHandleExp(ur.context, got.data));
}

static void get_of_an_imported_event(Ur &ur) {
  ur_event_handle_t event = make_event(ur), imported = nullptr;
  const Data got = get(event);
  CHECK(open(ur.context, copy(got), &imported));
  Data again;
  print("get of an imported event: " + number(urIPCGetEventHandleExp(imported, &again.data, &again.size)));
  CHECK(urEventRelease(imported));
  CHECK(urIPCPutEventHandleExp(ur.context, got.data));
  CHECK(urEventRelease(event));
}

static void get_of_plain_memory(Ur &ur) {
  ur_physical_mem_handle_t memory = make_memory(ur, 0);
  Data got;
  print("get of plain memory: " + number(urIPCGetPhysMemHandleExp(ur.context, memory, &got.data, &got.size)));
  CHECK(urPhysicalMemRelease(memory));
}

static void get_of_a_plain_event(Ur &ur) {
  ur_event_handle_t event = make_event(ur, 0);
  Data got;
  print("get of a plain event: " + number(urIPCGetEventHandleExp(event, &got.data, &got.size)));
  CHECK(urEventRelease(event));
}

static void open_of_a_put_event(Ur &ur) {
  ur_event_handle_t event = make_event(ur), imported = nullptr;
  const Data got = get(event);
  const Bytes received = copy(got);
  CHECK(urIPCPutEventHandleExp(ur.context, got.data));
  print("open of a put event: " + number(open(ur.context, received, &imported)));
  if (imported != nullptr) CHECK(urEventRelease(imported));
  CHECK(urEventRelease(event));
}

// The event's put frees the block of the other kind and leaves its descriptor open.
static void put_as_an_event(Ur &ur) {
  ur_physical_mem_handle_t memory = make_memory(ur);
  const Data got = get(ur, memory);
  print("put as an event's: " + number(urIPCPutEventHandleExp(ur.context, got.data)));
  CHECK(urPhysicalMemRelease(memory));
}

static void close_of_own_memory(Ur &ur) {
  const ur_result_t result = urIPCClosePhysMemHandleExp(ur.context, make_memory(ur));
  print("close of own memory: " + number(result));
}

// The second release reads memory that the first has freed: it is harmless only if it is refused before the loader reads it.
static void second_release(Ur &ur) {
  ur_physical_mem_handle_t memory = make_memory(ur);
  CHECK(urIPCPutPhysMemHandleExp(ur.context, get(ur, memory).data));
  CHECK(urPhysicalMemRelease(memory));
  print("second release: " + number(urPhysicalMemRelease(memory)));
}

static void memory_before_put(Ur &ur) {
  ur_physical_mem_handle_t memory = make_memory(ur);
  const Data got = get(ur, memory);
  CHECK(urPhysicalMemRelease(memory)); // with handle data of it not put
  print("put after the release: " + number(urIPCPutPhysMemHandleExp(ur.context, got.data)));
}

static void event_before_put(Ur &ur) {
  ur_event_handle_t event = make_event(ur);
  const Data got = get(event);
  CHECK(urEventRelease(event)); // with handle data of it not put
  print("put after the release: " + number(urIPCPutEventHandleExp(ur.context, got.data)));
}

static void imports_behind_their_context(Ur &ur) {
  ur_physical_mem_handle_t memory = make_memory(ur), opened = nullptr;
  ur_event_handle_t event = make_event(ur), imported = nullptr;
  const Data of_memory = get(ur, memory), of_event = get(event);
  ur_context_handle_t context = nullptr;
  CHECK(urContextCreate(1, &ur.device, nullptr, &context));
  const Bytes bytes = copy(of_memory);
  CHECK(urIPCOpenPhysMemHandleExp(context, ur.device, bytes.data(), bytes.size(), &opened));
  CHECK(open(context, copy(of_event), &imported));
  print("release of their context: " + number(urContextRelease(context)));
  CHECK(urIPCPutPhysMemHandleExp(ur.context, of_memory.data));
  CHECK(urIPCPutEventHandleExp(ur.context, of_event.data));
  CHECK(urPhysicalMemRelease(memory));
  CHECK(urEventRelease(event));
}

static void an_event_that_is_shared_and_timed(Ur &ur) {
  const ur_exp_event_desc_t desc = {UR_STRUCTURE_TYPE_EXP_EVENT_DESC, nullptr,
                                    UR_EXP_EVENT_FLAG_IPC_EXP | UR_EXP_EVENT_FLAG_ENABLE_PROFILING};
  ur_event_handle_t event = nullptr;
  print("an event that is shared and timed: " + number(urEventCreateExp(ur.context, ur.device, &desc, &event)));
  get_and_put(ur);
}

// The v1 adapter reports that it cannot share physical memory.
static void memory_that_the_device_cannot_share(Ur &ur) {
  ur_bool_t shares = true;
  CHECK(urDeviceGetInfo(ur.device, UR_DEVICE_INFO_IPC_PHYSICAL_MEMORY_SUPPORT_EXP, sizeof shares, &shares, nullptr));
  CHECK(urPhysicalMemRelease(make_memory(ur))); // created to be shared
  print(std::string("shared though the device says ") + (shares ? "yes" : "no"));
  get_and_put(ur);
}

static void bytes_of_nobody(Ur &ur) {
  get_and_put(ur);
  Bytes bytes(120); // as many as a get returns
  void *opened = nullptr;
  print("open of zeros: " + number(urIPCOpenMemHandleExp(ur.context, ur.device, bytes.data(), bytes.size(), &opened)));
}

static void handle_data_over_and_over(Ur &ur) {
  for (int i = 0; i < 150; ++i) get_and_put(ur);
  print("got and put 150 times");
}

// Files that are never closed, besides correct gets and puts; and handle data of physical memory, each with its file.
// Descriptors are counted at most once in a millisecond, and after a pause of 200 times what a count costs.
static void files_over_and_over(Ur &ur) {
  for (int i = 0; i < 200; ++i) {
    require(dup(2) >= 0, "no descriptor");
    get_and_put(ur);
    usleep(3000);
  }
  print("200 files more");
}

static void handle_data_that_is_kept(Ur &ur) {
  ur_physical_mem_handle_t memory = make_memory(ur);
  for (int i = 0; i < 200; ++i) {
    get(ur, memory);
    usleep(3000);
  }
  CHECK(urPhysicalMemRelease(memory));
  print("200 handles more");
}

// The process is stopped and continued, as a debugger does, so often that it is in the middle of a call once.
static void a_process_that_is_stopped(Ur &ur) {
  const std::string me = std::to_string(getpid());
  const std::string stops = "i=80; while [ $i -gt 0 ]; do kill -STOP " + me + "; sleep 0.015; kill -CONT " + me +
                            "; sleep 0.005; i=$((i - 1)); done";
  FILE *shell = popen(stops.c_str(), "r");
  require(shell != nullptr && fcntl(fileno(shell), F_SETFL, O_NONBLOCK) == 0, "no shell");
  int cycles = 0;
  for (char none; cycles % 16 != 0 || cycles < 1000 || read(fileno(shell), &none, 1) != 0; ++cycles) get_and_put(ur);
  pclose(shell);
  print("stopped 80 times");
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
  void *memory = nullptr, *opened = nullptr;
  CHECK(urUSMDeviceAlloc(ur.context, ur.device, nullptr, nullptr, 8 << 20, &memory));
  Data got;
  CHECK(urIPCGetMemHandleExp(ur.context, memory, &got.data, &got.size));
  print("open on another device: " +
        number(urIPCOpenMemHandleExp(context, other, got.data, got.size, &opened)));
  if (opened != nullptr) CHECK(urIPCCloseMemHandleExp(context, opened));
  CHECK(urIPCPutMemHandleExp(ur.context, got.data));
  CHECK(urUSMFree(ur.context, memory));
  if (in_its_own_context) CHECK(urContextRelease(context));
}
static void a_device_that_is_not_the_contexts(Ur &ur) { open_on_another_device(ur, false); }
static void a_device_that_is_not_the_memorys(Ur &ur) { open_on_another_device(ur, true); }

static const std::map<std::string, void (*)(Ur &)> violations = {
    {"get_of_an_imported_event", get_of_an_imported_event},
    {"get_of_plain_memory", get_of_plain_memory},
    {"get_of_a_plain_event", get_of_a_plain_event},
    {"open_of_a_put_event", open_of_a_put_event},
    {"put_as_an_event", put_as_an_event},
    {"close_of_own_memory", close_of_own_memory},
    {"second_release", second_release},
    {"memory_before_put", memory_before_put},
    {"event_before_put", event_before_put},
    {"imports_behind_their_context", imports_behind_their_context},
    {"an_event_that_is_shared_and_timed", an_event_that_is_shared_and_timed},
    {"memory_that_the_device_cannot_share", memory_that_the_device_cannot_share},
    {"bytes_of_nobody", bytes_of_nobody},
    {"handle_data_over_and_over", handle_data_over_and_over},
    {"files_over_and_over", files_over_and_over},
    {"handle_data_that_is_kept", handle_data_that_is_kept},
    {"a_process_that_is_stopped", a_process_that_is_stopped},
    {"a_device_that_is_not_the_contexts", a_device_that_is_not_the_contexts},
    {"a_device_that_is_not_the_memorys", a_device_that_is_not_the_memorys},
};

int main(int argc, char **argv) {
  if (argc == 2 && std::string(argv[1]) == "list") {
    for (const auto &[name, commit] : violations) print(name);
    return 0;
  }
  return run_alone([=] {
    const auto violation = violations.find(argc > 1 ? argv[1] : "");
    require(violation != violations.end(), "which violation?");
    Ur ur;
    violation->second(ur);
  });
}
