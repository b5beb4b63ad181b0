// Stories of physical memory and its IPC.
#include "ur_stories.hpp"

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

// Physical memory of one granule, released at the end of its story.
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

  Ur &ur;
  ur_physical_mem_handle_t memory = nullptr;
};

static ur_result_t put(Ur &ur, const Data &data) { return urIPCPutPhysMemHandleExp(ur.context, data.data); }
static ur_result_t open(Ur &ur, const Bytes &data, ur_physical_mem_handle_t *memory) {
  return urIPCOpenPhysMemHandleExp(ur.context, ur.device, data.data(), data.size(), memory);
}
static ur_result_t close(Ur &ur, ur_physical_mem_handle_t memory) { return urIPCClosePhysMemHandleExp(ur.context, memory); }

template <typename T> static ur_result_t info(ur_physical_mem_handle_t memory, ur_physical_mem_info_t what, T *value) {
  return urPhysicalMemGetInfo(memory, what, sizeof *value, value, nullptr);
}
template <typename T>
static void compare_info(Answers &answers, ur_physical_mem_handle_t memory, ur_physical_mem_info_t what, T expected) {
  T found{};
  answers << info(memory, what, &found) << (found == expected ? "same" : "other");
}
static void tell_references(Answers &answers, ur_physical_mem_handle_t memory) {
  uint32_t references = 0;
  answers << info(memory, UR_PHYSICAL_MEM_INFO_REFERENCE_COUNT, &references) << std::to_string(references);
}
static void tell_flags(Answers &answers, ur_physical_mem_handle_t memory) {
  ur_physical_mem_properties_t properties = {};
  answers << info(memory, UR_PHYSICAL_MEM_INFO_PROPERTIES, &properties) << std::to_string(properties.flags);
}

// Opens bytes that are refused; should they not be, closes what came of them. Tells if the result was touched all the same.
static void open_refused(Ur &ur, Answers &answers, const Bytes &data) {
  auto *const untouched = reinterpret_cast<ur_physical_mem_handle_t>(&answers);
  ur_physical_mem_handle_t memory = untouched;
  const ur_result_t result = open(ur, data, &memory);
  answers << result;
  if (result == UR_RESULT_SUCCESS) close(ur, memory);
  else if (memory != untouched) answers << "touched";
}

// Opens handle data of which one field was changed. Where the field stands is the v2 adapter's affair; wherever another
// teller keeps it, these are not the bytes that it gave.
template <typename T> static void open_altered(Ur &ur, Answers &answers, size_t offset, T value) {
  Memory memory(ur);
  const Data data = memory.get();
  Bytes bytes = data.copy();
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  open_refused(ur, answers, bytes);
  put(ur, data);
}
constexpr size_t at_pid = 0, at_descriptor = 4, at_size = 8;

static void open_resized(Ur &ur, Answers &answers, int by) {
  Memory memory(ur);
  const Data data = memory.get();
  Bytes bytes = data.copy();
  bytes.resize(static_cast<size_t>(static_cast<int>(bytes.size()) + by));
  open_refused(ur, answers, bytes);
  put(ur, data);
}

// The memory mapped somewhere, as long as this lives. Host memory of the queue's device can be copied to and from it.
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
  void fill(uint8_t byte) {
    const std::vector<uint8_t> data(size, byte);
    CHECK(urEnqueueUSMMemcpy(ur.queue, true, start, data.data(), size, 0, nullptr, nullptr));
  }
  std::string compare(uint8_t byte) {
    std::vector<uint8_t> data(size);
    CHECK(urEnqueueUSMMemcpy(ur.queue, true, data.data(), start, size, 0, nullptr, nullptr));
    return data == std::vector<uint8_t>(size, byte) ? "same" : "other";
  }

  Ur &ur;
  size_t size;
  void *start = nullptr;
};

static const std::vector<Story> alone = {
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
       tell_flags(answers, memory.memory);
       tell_flags(answers, unshared.memory);
     }},
    {"info-references",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       tell_references(answers, memory.memory);
       answers << urPhysicalMemRetain(memory.memory);
       tell_references(answers, memory.memory);
       answers << urPhysicalMemRelease(memory.memory);
       tell_references(answers, memory.memory);
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
    {"get-and-put",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       Data data;
       answers << memory.get(data) << (data.data != nullptr && data.size > 0 ? "data" : "nothing") << put(ur, data);
     }},
    {"get-without-the-flag",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur, 0);
       Data data;
       answers << memory.get(data) << (data.data == nullptr && data.size == 0 ? "untouched" : "touched");
     }},
    {"get-twice",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       Data one, other;
       answers << memory.get(one) << memory.get(other) << (one.data != other.data ? "two" : "one");
       answers << put(ur, one) << put(ur, other);
     }},
    {"get-after-put",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       Data data;
       answers << memory.get(data) << put(ur, data) << memory.get(data);
       open_refused(ur, answers, data.copy());
       answers << put(ur, data);
     }},
    {"put-of-one-of-two",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const Data one = memory.get(), other = memory.get();
       answers << put(ur, one);
       open_refused(ur, answers, other.copy());
       answers << put(ur, other);
     }},
    // Between the two puts the program opens a file of its own, which may get the number that the first put has closed.
    {"put-of-both-and-a-stranger",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const Data one = memory.get(), other = memory.get();
       answers << put(ur, one);
       const int stranger = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
       answers << put(ur, other) << (fcntl(stranger, F_GETFD) >= 0 ? "kept" : "closed");
       ::close(stranger);
     }},
    {"open-and-close",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const Data data = memory.get();
       ur_physical_mem_handle_t opened = nullptr;
       answers << open(ur, data.copy(), &opened) << close(ur, opened) << put(ur, data);
     }},
    {"open-shows-the-same-memory",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const Data data = memory.get();
       ur_physical_mem_handle_t opened = nullptr;
       answers << open(ur, data.copy(), &opened);
       {
         Mapped own(ur, memory.memory), foreign(ur, opened);
         own.fill(1);
         answers << foreign.compare(1);
         foreign.fill(2);
         answers << own.compare(2);
       }
       answers << close(ur, opened) << put(ur, data);
     }},
    {"open-twice",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const Data data = memory.get();
       ur_physical_mem_handle_t one = nullptr, other = nullptr;
       answers << open(ur, data.copy(), &one) << open(ur, data.copy(), &other) << (one != other ? "two" : "one");
       answers << close(ur, one) << close(ur, other) << put(ur, data);
     }},
    {"open-of-one-byte-more", [](Ur &ur, Answers &answers) { open_resized(ur, answers, 1); }},
    {"open-of-one-byte-less", [](Ur &ur, Answers &answers) { open_resized(ur, answers, -1); }},
    {"open-without-a-size", [](Ur &ur, Answers &answers) { open_altered(ur, answers, at_size, size_t{0}); }},
    {"open-of-pid-zero", [](Ur &ur, Answers &answers) { open_altered(ur, answers, at_pid, 0); }},
    {"open-of-an-unknown-pid", [](Ur &ur, Answers &answers) { open_altered(ur, answers, at_pid, INT_MAX); }},
    {"open-of-no-descriptor", [](Ur &ur, Answers &answers) { open_altered(ur, answers, at_descriptor, -1); }},
    {"open-of-a-closed-descriptor", [](Ur &ur, Answers &answers) { open_altered(ur, answers, at_descriptor, 1 << 20); }},
    {"open-of-another-file",
     [](Ur &ur, Answers &answers) {
       const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
       open_altered(ur, answers, at_descriptor, file);
       ::close(file);
     }},
    {"open-after-put",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const Data data = memory.get();
       const Bytes bytes = data.copy();
       answers << put(ur, data);
       open_refused(ur, answers, bytes);
     }},
    {"open-of-a-stale-handle",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const Data kept = memory.get(), stale = memory.get();
       const Bytes bytes = stale.copy();
       answers << put(ur, stale);
       open_refused(ur, answers, bytes);
       answers << put(ur, kept);
     }},
    {"open-after-release",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const Data data = memory.get();
       ur_physical_mem_handle_t opened = nullptr;
       answers << memory.release() << open(ur, data.copy(), &opened) << close(ur, opened) << put(ur, data);
     }},
    {"opened-info",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const Data data = memory.get();
       ur_physical_mem_handle_t opened = nullptr;
       CHECK(open(ur, data.copy(), &opened));
       compare_info(answers, opened, UR_PHYSICAL_MEM_INFO_CONTEXT, ur.context);
       compare_info(answers, opened, UR_PHYSICAL_MEM_INFO_DEVICE, ur.device);
       compare_info(answers, opened, UR_PHYSICAL_MEM_INFO_SIZE, granularity(ur));
       tell_flags(answers, opened);
       tell_references(answers, opened);
       CHECK(close(ur, opened));
       CHECK(put(ur, data));
     }},
    {"opened-is-exported-again",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const Data data = memory.get();
       ur_physical_mem_handle_t opened = nullptr, again = nullptr;
       CHECK(open(ur, data.copy(), &opened));
       Data exported;
       answers << urIPCGetPhysMemHandleExp(ur.context, opened, &exported.data, &exported.size);
       answers << open(ur, exported.copy(), &again) << close(ur, again) << put(ur, exported);
       CHECK(close(ur, opened));
       CHECK(put(ur, data));
     }},
    {"opened-is-retained-and-closed",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const Data data = memory.get();
       ur_physical_mem_handle_t opened = nullptr;
       CHECK(open(ur, data.copy(), &opened));
       answers << urPhysicalMemRetain(opened) << close(ur, opened);
       tell_references(answers, opened);
       answers << close(ur, opened) << put(ur, data);
     }},
    {"opened-is-released",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const Data data = memory.get();
       ur_physical_mem_handle_t opened = nullptr;
       CHECK(open(ur, data.copy(), &opened));
       answers << urPhysicalMemRelease(opened) << put(ur, data);
     }},
    {"close-of-memory-never-opened",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       CHECK(urPhysicalMemRetain(memory.memory));
       const ur_result_t result = close(ur, memory.memory);
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

static const std::vector<StoryOfTwo> of_two = {
    {"open-of-another-process",
     [](Ur &ur, Peer &child, Answers &answers) {
       ur_physical_mem_handle_t opened = nullptr;
       answers << open(ur, child.receive(), &opened);
       {
         Mapped mapped(ur, opened);
         answers << mapped.compare(1);
         mapped.fill(2);
       }
       answers << close(ur, opened);
       child.say("written");
       answers << child.hear();
     },
     [](Ur &ur, Peer &parent, Answers &) {
       Memory memory(ur);
       Data data;
       send_handle(ur, parent, memory, data);
       parent.await("written");
       parent.say(Mapped(ur, memory.memory).compare(2));
       CHECK(put(ur, data));
     }},
    {"open-after-the-put-of-another-process",
     [](Ur &ur, Peer &child, Answers &answers) {
       const Bytes data = child.receive();
       child.await("put");
       open_refused(ur, answers, data);
       child.say("done");
     },
     [](Ur &ur, Peer &parent, Answers &) {
       Memory memory(ur);
       Data data;
       send_handle(ur, parent, memory, data);
       CHECK(put(ur, data));
       parent.say("put");
       parent.await("done");
     }},
    {"open-after-the-end-of-another-process",
     [](Ur &ur, Peer &child, Answers &answers) {
       const Bytes data = child.receive();
       child.say("end");
       child.await_end();
       open_refused(ur, answers, data);
     },
     [](Ur &ur, Peer &parent, Answers &) {
       Memory memory(ur);
       Data data;
       send_handle(ur, parent, memory, data);
       parent.await("end");
     }},
    {"open-without-permission",
     [](Ur &ur, Peer &child, Answers &answers) {
       const Bytes data = child.receive();
       give_up_the_right_to_trace();
       open_refused(ur, answers, data);
       child.say("done");
     },
     [](Ur &ur, Peer &parent, Answers &) {
       Memory memory(ur);
       Data data;
       refuse_to_be_traced();
       send_handle(ur, parent, memory, data);
       parent.await("done");
       CHECK(put(ur, data));
     }},
};

// What is wrong with a call to which null is handed. Each needs memory that is otherwise right.
template <typename Call> static void with_handle(Ur &ur, Answers &answers, Call call) {
  Memory memory(ur);
  Data data = memory.get();
  ur_physical_mem_handle_t opened = nullptr;
  answers << call(memory, data, opened);
}

static const std::vector<Story> apart = {
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
         CHECK(open(ur, data.copy(), &opened));
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

int main(int argc, char **argv) { return tell_all(argc, argv, alone, of_two, apart); }
