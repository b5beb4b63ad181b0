// Cases of physical memory and its IPC.
#include "ur_every_kind.hpp"

#include <climits>

using namespace app;

// Maps the memory for its lifetime. Host memory of the queue's device can be copied to and from it.
struct Mapped {
  Mapped(Ur &ur, ur_physical_mem_handle_t memory) : ur(ur), size(ur.granularity()), start(ur.map(memory, size)) {}
  Mapped(const Mapped &) = delete;
  ~Mapped() {
    urVirtualMemUnmap(ur.context, start, size);
    urVirtualMemFree(ur.context, start, size);
  }
  void fill(uint8_t byte) { app::fill(ur, start, size, byte); }
  std::string compare(uint8_t byte) { return app::compare(ur, start, size, byte); }

  Ur &ur;
  size_t size;
  void *start = nullptr;
};

// Physical memory of one granule, released at the end of its case.
struct Memory {
  explicit Memory(Ur &ur, ur_physical_mem_flags_t flags = UR_PHYSICAL_MEM_FLAG_ENABLE_IPC) : ur(ur), object(ur.make_memory(flags)) {}
  Memory(const Memory &) = delete;
  ~Memory() {
    if (object != nullptr) urPhysicalMemRelease(object);
  }

  ur_result_t get(Data &data) { return urIPCGetPhysMemHandleExp(ur.context, object, &data.data, &data.size); }
  Data get() { return ur.get(object); }
  ur_result_t release() { return urPhysicalMemRelease(std::exchange(object, nullptr)); }

  using Opened = ur_physical_mem_handle_t;
  using Mapped = ::Mapped;
  static ur_result_t put(Ur &ur, const Data &data) { return urIPCPutPhysMemHandleExp(ur.context, data.data); }
  static ur_result_t open(Ur &ur, const View &data, Opened *memory) {
    return urIPCOpenPhysMemHandleExp(ur.context, ur.device, data.data(), data.size(), memory);
  }
  static ur_result_t close(Ur &ur, Opened memory) { return urIPCClosePhysMemHandleExp(ur.context, memory); }

  Ur &ur;
  ur_physical_mem_handle_t object = nullptr;
};

constexpr auto put = Memory::put;

template <typename T> static ur_result_t info(ur_physical_mem_handle_t memory, ur_physical_mem_info_t what, T *value) {
  return urPhysicalMemGetInfo(memory, what, sizeof *value, value, nullptr);
}
template <typename T> static std::string compare_info(ur_physical_mem_handle_t memory, ur_physical_mem_info_t what, T expected) {
  T found{};
  const ur_result_t result = info(memory, what, &found);
  return std::to_string(result) + (found == expected ? " same" : " other");
}
static std::string references(ur_physical_mem_handle_t memory) {
  uint32_t references = 0;
  const ur_result_t result = info(memory, UR_PHYSICAL_MEM_INFO_REFERENCE_COUNT, &references);
  return std::to_string(result) + " " + std::to_string(references);
}
static std::string flags_of(ur_physical_mem_handle_t memory) {
  ur_physical_mem_properties_t properties = {};
  const ur_result_t result = info(memory, UR_PHYSICAL_MEM_INFO_PROPERTIES, &properties);
  return std::to_string(result) + " " + std::to_string(properties.flags);
}
static ur_result_t created(Ur &ur, size_t size, ur_physical_mem_flags_t flags) {
  ur_physical_mem_handle_t memory = nullptr;
  const ur_result_t result = ur.try_create(size, flags, &memory);
  if (result == UR_RESULT_SUCCESS) urPhysicalMemRelease(memory);
  return result;
}

// Offsets of the fields in the v2 adapter's handle data.
constexpr size_t at_pid = 0, at_descriptor = 4, at_size = 8;

static const std::vector<Case> alone = {
    {"support", RUNS {
       for (auto what : {UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP, UR_DEVICE_INFO_IPC_PHYSICAL_MEMORY_SUPPORT_EXP,
                         UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP})
         answers << ur.asked(what);
     }},
    {"create-and-release", RUNS { Memory memory(ur); answers << memory.release(); }},
    {"create-of-an-uneven-size", RUNS { answers << created(ur, ur.granularity() + 1, UR_PHYSICAL_MEM_FLAG_ENABLE_IPC); }},
    {"create-of-nothing", RUNS { answers << created(ur, 0, UR_PHYSICAL_MEM_FLAG_ENABLE_IPC); }},
    {"create-with-undefined-flags", RUNS { answers << created(ur, ur.granularity(), UR_PHYSICAL_MEM_FLAGS_MASK); }},
    {"info-context", RUNS { answers << compare_info(Memory(ur).object, UR_PHYSICAL_MEM_INFO_CONTEXT, ur.context); }},
    {"info-device", RUNS { answers << compare_info(Memory(ur).object, UR_PHYSICAL_MEM_INFO_DEVICE, ur.device); }},
    {"info-size", RUNS { answers << compare_info(Memory(ur).object, UR_PHYSICAL_MEM_INFO_SIZE, ur.granularity()); }},
    {"info-properties", RUNS { Memory memory(ur), unshared(ur, 0); answers << flags_of(memory.object) << flags_of(unshared.object); }},
    {"info-references", RUNS {
       Memory memory(ur);
       answers << references(memory.object) << urPhysicalMemRetain(memory.object) << references(memory.object);
       answers << urPhysicalMemRelease(memory.object) << references(memory.object);
     }},
    {"info-unknown", RUNS { uint64_t value = 0; answers << info(Memory(ur).object, static_cast<ur_physical_mem_info_t>(5), &value); }},
    {"info-too-small", RUNS { uint8_t value = 0; answers << info(Memory(ur).object, UR_PHYSICAL_MEM_INFO_SIZE, &value); }},
    {"get-without-the-flag", RUNS { Memory memory(ur, 0); Data data; answers << memory.get(data) << left(data); }},
    {"open-shows-the-same-memory", RUNS {
       Got<Memory> memory(ur);
       ur_physical_mem_handle_t opened = nullptr;
       answers << Memory::open(ur, memory.copy(), &opened);
       {
         Mapped own(ur, memory.object), foreign(ur, opened);
         own.fill(1);
         answers << foreign.compare(1);
         foreign.fill(2);
         answers << own.compare(2);
       }
       answers << Memory::close(ur, opened) << memory.put();
     }},
    {"open-without-a-size", RUNS { answers << open_altered<Memory>(ur, at_size, size_t{0}); }},
    {"open-of-pid-zero", RUNS { answers << open_altered<Memory>(ur, at_pid, 0); }},
    {"open-of-an-unknown-pid", RUNS { answers << open_altered<Memory>(ur, at_pid, INT_MAX); }},
    {"open-of-no-descriptor", RUNS { answers << open_altered<Memory>(ur, at_descriptor, -1); }},
    {"open-of-a-closed-descriptor", RUNS { answers << open_altered<Memory>(ur, at_descriptor, 1 << 20); }},
    {"open-of-another-file", RUNS {
       const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
       answers << open_altered<Memory>(ur, at_descriptor, file);
       ::close(file);
     }},
    {"memory-outlives-what-was-opened", RUNS {
       Got<Memory> memory(ur);
       Mapped(ur, memory.object).fill(1);
       ur_physical_mem_handle_t opened = nullptr;
       answers << Memory::open(ur, memory.copy(), &opened) << Memory::close(ur, opened);
       answers << Mapped(ur, memory.object).compare(1) << memory.put();
     }},
    {"opened-info", RUNS {
       Got<Memory> memory(ur);
       ur_physical_mem_handle_t opened = memory.open();
       answers << compare_info(opened, UR_PHYSICAL_MEM_INFO_CONTEXT, ur.context);
       answers << compare_info(opened, UR_PHYSICAL_MEM_INFO_DEVICE, ur.device);
       answers << compare_info(opened, UR_PHYSICAL_MEM_INFO_SIZE, ur.granularity()) << flags_of(opened) << references(opened);
       CHECK(Memory::close(ur, opened));
     }},
    {"opened-is-exported-again", RUNS {
       Got<Memory> memory(ur);
       ur_physical_mem_handle_t opened = memory.open(), again = nullptr;
       Data exported;
       answers << urIPCGetPhysMemHandleExp(ur.context, opened, &exported.data, &exported.size);
       answers << Memory::open(ur, exported.copy(), &again) << Memory::close(ur, again) << Memory::put(ur, exported);
       CHECK(Memory::close(ur, opened));
     }},
    {"opened-is-retained-and-closed", RUNS {
       Got<Memory> memory(ur);
       ur_physical_mem_handle_t opened = memory.open();
       answers << urPhysicalMemRetain(opened) << Memory::close(ur, opened) << references(opened);
       answers << Memory::close(ur, opened) << memory.put();
     }},
    {"opened-is-released", RUNS {
       Got<Memory> memory(ur);
       ur_physical_mem_handle_t opened = memory.open();
       answers << urPhysicalMemRelease(opened) << memory.put();
     }},
    {"close-of-memory-never-opened", RUNS {
       Memory memory(ur);
       CHECK(urPhysicalMemRetain(memory.object));
       const ur_result_t result = Memory::close(ur, memory.object);
       answers << result;
       if (result != UR_RESULT_SUCCESS) urPhysicalMemRelease(memory.object);
     }},
};

static const std::vector<CaseOfTwo> of_two = {
    open_of_another_process<Memory>(),
    // Between open and close the program opens files of its own, which may get a number that the open has closed.
    {"close-and-unrelated-files", PARENT {
       ur_physical_mem_handle_t opened = nullptr;
       answers << Memory::open(ur, child.receive(), &opened);
       std::vector<int> unrelated(8);
       for (int &file : unrelated) file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
       answers << Memory::close(ur, opened);
       bool kept = true;
       for (int file : unrelated) kept = ::close(file) == 0 && kept;
       answers << (kept ? "kept" : "closed");
       child.say("done");
     }, export_and_wait<Memory>},
};

// Results that nobody reads.
static Data data;
static ur_physical_mem_handle_t opened;

static const std::vector<Case> apart = {
    {"get-null-context", RUNS { answers << urIPCGetPhysMemHandleExp(nullptr, Memory(ur).object, &data.data, &data.size); }},
    {"get-null-memory", RUNS { answers << urIPCGetPhysMemHandleExp(ur.context, nullptr, &data.data, &data.size); }},
    {"get-null-data", RUNS { answers << urIPCGetPhysMemHandleExp(ur.context, Memory(ur).object, nullptr, &data.size); }},
    {"get-null-size", RUNS { answers << urIPCGetPhysMemHandleExp(ur.context, Memory(ur).object, &data.data, nullptr); }},
    NULL_CASE(Memory, "put-null-context", urIPCPutPhysMemHandleExp(nullptr, data.data)),
    {"put-null-data", RUNS { answers << urIPCPutPhysMemHandleExp(ur.context, nullptr); }},
    NULL_CASE(Memory, "open-null-context", urIPCOpenPhysMemHandleExp(nullptr, ur.device, data.data, data.size, &opened)),
    NULL_CASE(Memory, "open-null-device", urIPCOpenPhysMemHandleExp(ur.context, nullptr, data.data, data.size, &opened)),
    NULL_CASE(Memory, "open-null-data", urIPCOpenPhysMemHandleExp(ur.context, ur.device, nullptr, data.size, &opened)),
    NULL_CASE(Memory, "open-null-result", urIPCOpenPhysMemHandleExp(ur.context, ur.device, data.data, data.size, nullptr)),
    {"close-null-context", RUNS { answers << urIPCClosePhysMemHandleExp(nullptr, Got<Memory>(ur).open()); }},
    {"close-null-memory", RUNS { answers << urIPCClosePhysMemHandleExp(ur.context, nullptr); }},
    {"create-null-context", RUNS { answers << urPhysicalMemCreate(nullptr, ur.device, ur.granularity(), nullptr, &opened); }},
    {"create-null-device", RUNS { answers << urPhysicalMemCreate(ur.context, nullptr, ur.granularity(), nullptr, &opened); }},
    {"create-null-result", RUNS { answers << urPhysicalMemCreate(ur.context, ur.device, ur.granularity(), nullptr, nullptr); }},
    {"retain-null", RUNS { answers << urPhysicalMemRetain(nullptr); }},
    {"release-null", RUNS { answers << urPhysicalMemRelease(nullptr); }},
    {"info-null", RUNS { answers << info(nullptr, UR_PHYSICAL_MEM_INFO_SIZE, &data.size); }},
};

int main(int argc, char **argv) {
  const Cases cases = {both(alone_of_every_kind<Memory>(), alone), both(of_two_of_every_kind<Memory>(), of_two), apart,
                       misuse_of_every_kind<Memory>()};
  return run_cases(argc, argv, cases);
}
