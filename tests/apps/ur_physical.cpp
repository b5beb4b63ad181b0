// Cases of physical memory and its IPC.
#include "ur_every_kind.hpp"

#include <climits>

using namespace app;

static size_t granularity(Ur &ur) {
  size_t size = 0;
  CHECK(urVirtualMemGranularityGetInfo(ur.context, ur.device, 1, UR_VIRTUAL_MEM_GRANULARITY_INFO_RECOMMENDED, sizeof size,
                                       &size, nullptr));
  return size;
}

static ur_result_t create(Ur &ur, size_t size, ur_physical_mem_flags_t flags, ur_physical_mem_handle_t *memory) {
  const ur_physical_mem_properties_t properties = {UR_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES, nullptr, flags};
  return urPhysicalMemCreate(ur.context, ur.device, size, &properties, memory);
}

// Physical memory of one granule, released at the end of its case.
struct Memory {
  explicit Memory(Ur &ur, ur_physical_mem_flags_t flags = UR_PHYSICAL_MEM_FLAG_ENABLE_IPC) : ur(ur) {
    CHECK(create(ur, granularity(ur), flags, &memory));
  }
  Memory(const Memory &) = delete;
  ~Memory() {
    if (memory != nullptr) urPhysicalMemRelease(memory);
  }

  ur_result_t get(Data &data) { return urIPCGetPhysMemHandleExp(ur.context, memory, &data.data, &data.size); }
  Data get() {
    Data data;
    CHECK(get(data));
    return data;
  }
  ur_result_t release() { return urPhysicalMemRelease(std::exchange(memory, nullptr)); }

  using Opened = ur_physical_mem_handle_t;
  static ur_result_t put(Ur &ur, const Data &data) { return urIPCPutPhysMemHandleExp(ur.context, data.data); }
  static ur_result_t open(Ur &ur, const View &data, Opened *memory) {
    return urIPCOpenPhysMemHandleExp(ur.context, ur.device, data.data(), data.size(), memory);
  }
  static ur_result_t close(Ur &ur, Opened memory) { return urIPCClosePhysMemHandleExp(ur.context, memory); }

  Ur &ur;
  ur_physical_mem_handle_t memory = nullptr;
};

constexpr auto put = Memory::put;

template <typename T> static ur_result_t info(ur_physical_mem_handle_t memory, ur_physical_mem_info_t what, T *value) {
  return urPhysicalMemGetInfo(memory, what, sizeof *value, value, nullptr);
}
template <typename T>
static void compare_info(Answers &answers, ur_physical_mem_handle_t memory, ur_physical_mem_info_t what, T expected) {
  T found{};
  answers << info(memory, what, &found) << (found == expected ? "same" : "other");
}
static void add_references(Answers &answers, ur_physical_mem_handle_t memory) {
  uint32_t references = 0;
  answers << info(memory, UR_PHYSICAL_MEM_INFO_REFERENCE_COUNT, &references) << std::to_string(references);
}
static void add_flags(Answers &answers, ur_physical_mem_handle_t memory) {
  ur_physical_mem_properties_t properties = {};
  answers << info(memory, UR_PHYSICAL_MEM_INFO_PROPERTIES, &properties) << std::to_string(properties.flags);
}

// Offsets of the fields in the v2 adapter's handle data.
constexpr size_t at_pid = 0, at_descriptor = 4, at_size = 8;

// Maps the memory for its lifetime. Host memory of the queue's device can be copied to and from it.
struct Mapped {
  Mapped(Ur &ur, ur_physical_mem_handle_t memory) : ur(ur), size(granularity(ur)) {
    CHECK(urVirtualMemReserve(ur.context, nullptr, size, &start));
    CHECK(urVirtualMemMap(ur.context, start, size, memory, 0, UR_VIRTUAL_MEM_ACCESS_FLAG_READ_WRITE));
  }
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

static const std::vector<Case> alone = {
    {"support",
     [](Ur &ur, Answers &answers) {
       for (auto what : {UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP, UR_DEVICE_INFO_IPC_PHYSICAL_MEMORY_SUPPORT_EXP,
                         UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP}) {
         ur_bool_t value = 0;
         answers << urDeviceGetInfo(ur.device, what, sizeof value, &value, nullptr) << (value ? "yes" : "no");
       }
     }},
    {"create-and-release",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       answers << memory.release();
     }},
    {"create-of-an-uneven-size",
     [](Ur &ur, Answers &answers) {
       ur_physical_mem_handle_t memory = nullptr;
       answers << create(ur, granularity(ur) + 1, UR_PHYSICAL_MEM_FLAG_ENABLE_IPC, &memory);
     }},
    {"create-of-nothing",
     [](Ur &ur, Answers &answers) {
       ur_physical_mem_handle_t memory = nullptr;
       answers << create(ur, 0, UR_PHYSICAL_MEM_FLAG_ENABLE_IPC, &memory);
     }},
    {"create-with-undefined-flags",
     [](Ur &ur, Answers &answers) {
       ur_physical_mem_handle_t memory = nullptr;
       const ur_result_t result = create(ur, granularity(ur), UR_PHYSICAL_MEM_FLAGS_MASK, &memory);
       answers << result;
       if (result == UR_RESULT_SUCCESS) urPhysicalMemRelease(memory);
     }},
    {"info-context",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       compare_info(answers, memory.memory, UR_PHYSICAL_MEM_INFO_CONTEXT, ur.context);
     }},
    {"info-device",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       compare_info(answers, memory.memory, UR_PHYSICAL_MEM_INFO_DEVICE, ur.device);
     }},
    {"info-size",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       compare_info(answers, memory.memory, UR_PHYSICAL_MEM_INFO_SIZE, granularity(ur));
     }},
    {"info-properties",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur), unshared(ur, 0);
       add_flags(answers, memory.memory);
       add_flags(answers, unshared.memory);
     }},
    {"info-references",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       add_references(answers, memory.memory);
       answers << urPhysicalMemRetain(memory.memory);
       add_references(answers, memory.memory);
       answers << urPhysicalMemRelease(memory.memory);
       add_references(answers, memory.memory);
     }},
    {"info-unknown",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       uint64_t value = 0;
       answers << info(memory.memory, static_cast<ur_physical_mem_info_t>(5), &value);
     }},
    {"info-too-small",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       uint8_t value = 0;
       answers << info(memory.memory, UR_PHYSICAL_MEM_INFO_SIZE, &value);
     }},
    {"get-without-the-flag",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur, 0);
       Data data;
       answers << memory.get(data) << (data.data == nullptr && data.size == 0 ? "untouched" : "touched");
     }},
    {"open-shows-the-same-memory",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const Data data = memory.get();
       ur_physical_mem_handle_t opened = nullptr;
       answers << Memory::open(ur, data.copy(), &opened);
       {
         Mapped own(ur, memory.memory), foreign(ur, opened);
         own.fill(1);
         answers << foreign.compare(1);
         foreign.fill(2);
         answers << own.compare(2);
       }
       answers << Memory::close(ur, opened) << put(ur, data);
     }},
    {"open-without-a-size", [](Ur &ur, Answers &answers) { open_altered<Memory>(ur, answers, at_size, size_t{0}); }},
    {"open-of-pid-zero", [](Ur &ur, Answers &answers) { open_altered<Memory>(ur, answers, at_pid, 0); }},
    {"open-of-an-unknown-pid", [](Ur &ur, Answers &answers) { open_altered<Memory>(ur, answers, at_pid, INT_MAX); }},
    {"open-of-no-descriptor", [](Ur &ur, Answers &answers) { open_altered<Memory>(ur, answers, at_descriptor, -1); }},
    {"open-of-a-closed-descriptor", [](Ur &ur, Answers &answers) { open_altered<Memory>(ur, answers, at_descriptor, 1 << 20); }},
    {"open-of-another-file",
     [](Ur &ur, Answers &answers) {
       const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
       open_altered<Memory>(ur, answers, at_descriptor, file);
       ::close(file);
     }},
    {"memory-outlives-what-was-opened",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       Mapped(ur, memory.memory).fill(1);
       const Data data = memory.get();
       ur_physical_mem_handle_t opened = nullptr;
       answers << Memory::open(ur, data.copy(), &opened) << Memory::close(ur, opened);
       answers << Mapped(ur, memory.memory).compare(1) << put(ur, data);
     }},
    {"opened-info",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const Data data = memory.get();
       ur_physical_mem_handle_t opened = nullptr;
       CHECK(Memory::open(ur, data.copy(), &opened));
       compare_info(answers, opened, UR_PHYSICAL_MEM_INFO_CONTEXT, ur.context);
       compare_info(answers, opened, UR_PHYSICAL_MEM_INFO_DEVICE, ur.device);
       compare_info(answers, opened, UR_PHYSICAL_MEM_INFO_SIZE, granularity(ur));
       add_flags(answers, opened);
       add_references(answers, opened);
       CHECK(Memory::close(ur, opened));
       CHECK(put(ur, data));
     }},
    {"opened-is-exported-again",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const Data data = memory.get();
       ur_physical_mem_handle_t opened = nullptr, again = nullptr;
       CHECK(Memory::open(ur, data.copy(), &opened));
       Data exported;
       answers << urIPCGetPhysMemHandleExp(ur.context, opened, &exported.data, &exported.size);
       answers << Memory::open(ur, exported.copy(), &again) << Memory::close(ur, again) << put(ur, exported);
       CHECK(Memory::close(ur, opened));
       CHECK(put(ur, data));
     }},
    {"opened-is-retained-and-closed",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const Data data = memory.get();
       ur_physical_mem_handle_t opened = nullptr;
       CHECK(Memory::open(ur, data.copy(), &opened));
       answers << urPhysicalMemRetain(opened) << Memory::close(ur, opened);
       add_references(answers, opened);
       answers << Memory::close(ur, opened) << put(ur, data);
     }},
    {"opened-is-released",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const Data data = memory.get();
       ur_physical_mem_handle_t opened = nullptr;
       CHECK(Memory::open(ur, data.copy(), &opened));
       answers << urPhysicalMemRelease(opened) << put(ur, data);
     }},
    {"close-of-memory-never-opened",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       CHECK(urPhysicalMemRetain(memory.memory));
       const ur_result_t result = Memory::close(ur, memory.memory);
       answers << result;
       if (result != UR_RESULT_SUCCESS) urPhysicalMemRelease(memory.memory);
     }},
};

// The child gets a handle; the parent opens it.
static void send_handle(Ur &ur, Peer &other, Memory &memory, Data &data) {
  Mapped(ur, memory.memory).fill(1);
  data = memory.get();
  other.send(data.copy());
}

static const std::vector<CaseOfTwo> of_two = {
    {"open-of-another-process",
     [](Ur &ur, Peer &child, Answers &answers) {
       ur_physical_mem_handle_t opened = nullptr;
       answers << Memory::open(ur, child.receive(), &opened);
       {
         Mapped mapped(ur, opened);
         answers << mapped.compare(1);
         mapped.fill(2);
       }
       answers << Memory::close(ur, opened);
       child.say("written");
       answers << child.receive_word();
     },
     [](Ur &ur, Peer &parent, Answers &) {
       Memory memory(ur);
       Data data;
       send_handle(ur, parent, memory, data);
       parent.await("written");
       parent.say(Mapped(ur, memory.memory).compare(2));
       CHECK(put(ur, data));
     }},
    // Between open and close the program opens files of its own, which may get a number that the open has closed.
    {"close-and-unrelated-files",
     [](Ur &ur, Peer &child, Answers &answers) {
       ur_physical_mem_handle_t opened = nullptr;
       answers << Memory::open(ur, child.receive(), &opened);
       std::vector<int> unrelated(8);
       for (int &file : unrelated) file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
       answers << Memory::close(ur, opened);
       bool kept = true;
       for (int file : unrelated) kept = ::close(file) == 0 && kept;
       answers << (kept ? "kept" : "closed");
       child.say("done");
     },
     export_and_wait<Memory>},
};

// Calls with a null argument. Each needs memory that is otherwise valid.
template <typename Call> static void with_handle(Ur &ur, Answers &answers, Call call) {
  Memory memory(ur);
  Data data = memory.get();
  ur_physical_mem_handle_t opened = nullptr;
  answers << call(memory, data, opened);
}

static const std::vector<Case> apart = {
    {"get-null-context",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       Data data;
       answers << urIPCGetPhysMemHandleExp(nullptr, memory.memory, &data.data, &data.size);
     }},
    {"get-null-memory",
     [](Ur &ur, Answers &answers) {
       Data data;
       answers << urIPCGetPhysMemHandleExp(ur.context, nullptr, &data.data, &data.size);
     }},
    {"get-null-data",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       Data data;
       answers << urIPCGetPhysMemHandleExp(ur.context, memory.memory, nullptr, &data.size);
     }},
    {"get-null-size",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       Data data;
       answers << urIPCGetPhysMemHandleExp(ur.context, memory.memory, &data.data, nullptr);
     }},
    {"put-null-context",
     [](Ur &ur, Answers &answers) {
       with_handle(ur, answers, [](Memory &, Data &data, ur_physical_mem_handle_t &) {
         return urIPCPutPhysMemHandleExp(nullptr, data.data);
       });
     }},
    {"put-null-data", [](Ur &ur, Answers &answers) { answers << urIPCPutPhysMemHandleExp(ur.context, nullptr); }},
    {"open-null-context",
     [](Ur &ur, Answers &answers) {
       with_handle(ur, answers, [&](Memory &, Data &data, ur_physical_mem_handle_t &opened) {
         return urIPCOpenPhysMemHandleExp(nullptr, ur.device, data.data, data.size, &opened);
       });
     }},
    {"open-null-device",
     [](Ur &ur, Answers &answers) {
       with_handle(ur, answers, [&](Memory &, Data &data, ur_physical_mem_handle_t &opened) {
         return urIPCOpenPhysMemHandleExp(ur.context, nullptr, data.data, data.size, &opened);
       });
     }},
    {"open-null-data",
     [](Ur &ur, Answers &answers) {
       with_handle(ur, answers, [&](Memory &, Data &data, ur_physical_mem_handle_t &opened) {
         return urIPCOpenPhysMemHandleExp(ur.context, ur.device, nullptr, data.size, &opened);
       });
     }},
    {"open-null-result",
     [](Ur &ur, Answers &answers) {
       with_handle(ur, answers, [&](Memory &, Data &data, ur_physical_mem_handle_t &) {
         return urIPCOpenPhysMemHandleExp(ur.context, ur.device, data.data, data.size, nullptr);
       });
     }},
    {"close-null-context",
     [](Ur &ur, Answers &answers) {
       with_handle(ur, answers, [&](Memory &, Data &data, ur_physical_mem_handle_t &opened) {
         CHECK(Memory::open(ur, data.copy(), &opened));
         return urIPCClosePhysMemHandleExp(nullptr, opened);
       });
     }},
    {"close-null-memory", [](Ur &ur, Answers &answers) { answers << urIPCClosePhysMemHandleExp(ur.context, nullptr); }},
    {"create-null-context",
     [](Ur &ur, Answers &answers) {
       ur_physical_mem_handle_t memory = nullptr;
       answers << urPhysicalMemCreate(nullptr, ur.device, granularity(ur), nullptr, &memory);
     }},
    {"create-null-device",
     [](Ur &ur, Answers &answers) {
       ur_physical_mem_handle_t memory = nullptr;
       answers << urPhysicalMemCreate(ur.context, nullptr, granularity(ur), nullptr, &memory);
     }},
    {"create-null-result",
     [](Ur &ur, Answers &answers) {
       answers << urPhysicalMemCreate(ur.context, ur.device, granularity(ur), nullptr, nullptr);
     }},
    {"retain-null", [](Ur &, Answers &answers) { answers << urPhysicalMemRetain(nullptr); }},
    {"release-null", [](Ur &, Answers &answers) { answers << urPhysicalMemRelease(nullptr); }},
    {"info-null",
     [](Ur &, Answers &answers) {
       size_t size = 0;
       answers << info(nullptr, UR_PHYSICAL_MEM_INFO_SIZE, &size);
     }},
};

int main(int argc, char **argv) {
  return run_cases(argc, argv,
                  {both(alone_of_every_kind<Memory>(), alone), both(of_two_of_every_kind<Memory>(), of_two), apart,
                   misuse_of_every_kind<Memory>()});
}
