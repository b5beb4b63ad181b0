// Cases of memory (USM) and its IPC.
#include "ur_every_kind.hpp"

#include <climits>

using namespace app;

// More than the adapters' pools serve: such memory is an allocation of the driver, and is returned to it by a free.
constexpr size_t large = 8 << 20;
// Memory from a pool: the driver's allocation around it stays when it is freed.
constexpr size_t small = 4096;

using Allocate = ur_result_t (*)(Ur &, size_t, void **);
static ur_result_t on_device(Ur &ur, size_t size, void **pointer) {
  return urUSMDeviceAlloc(ur.context, ur.device, nullptr, nullptr, size, pointer);
}
static ur_result_t on_host(Ur &ur, size_t size, void **pointer) {
  return urUSMHostAlloc(ur.context, nullptr, nullptr, size, pointer);
}
static ur_result_t on_both(Ur &ur, size_t size, void **pointer) {
  return urUSMSharedAlloc(ur.context, ur.device, nullptr, nullptr, size, pointer);
}

static ur_result_t get(Ur &ur, const void *pointer, Data &data) {
  return urIPCGetMemHandleExp(ur.context, const_cast<void *>(pointer), &data.data, &data.size);
}

// An allocation, freed at the end of its case.
struct Memory {
  explicit Memory(Ur &ur, size_t size = large, Allocate allocate = on_device) : ur(ur), size(size) {
    CHECK(allocate(ur, size, &pointer));
  }
  Memory(const Memory &) = delete;
  ~Memory() {
    if (pointer != nullptr) urUSMFree(ur.context, pointer);
  }

  ur_result_t get(Data &data) { return ::get(ur, pointer, data); }
  Data get() {
    Data data;
    CHECK(get(data));
    return data;
  }
  ur_result_t release() { return urUSMFree(ur.context, std::exchange(pointer, nullptr)); }
  void fill(uint8_t byte) { app::fill(ur, pointer, size, byte); }
  std::string compare(uint8_t byte) { return app::compare(ur, pointer, size, byte); }

  using Opened = void *;
  static ur_result_t put(Ur &ur, const Data &data) { return urIPCPutMemHandleExp(ur.context, data.data); }
  static ur_result_t open(Ur &ur, const View &data, Opened *pointer) {
    return urIPCOpenMemHandleExp(ur.context, ur.device, const_cast<std::byte *>(data.data()), data.size(), pointer);
  }
  static ur_result_t close(Ur &ur, Opened pointer) { return urIPCCloseMemHandleExp(ur.context, pointer); }

  Ur &ur;
  size_t size;
  void *pointer = nullptr;
};
constexpr auto put = Memory::put;

// What a call that fails leaves in its result.
static const char *left(const Data &data) { return data.data == nullptr && data.size == 0 ? "untouched" : "touched"; }

static void get_refused(Ur &ur, Answers &answers, const void *pointer) {
  Data data;
  const ur_result_t result = get(ur, pointer, data);
  answers << result << left(data);
  if (data.data != nullptr) put(ur, data);
}

// Memory and a mapping of it in the same process, closed with it.
struct Shared {
  explicit Shared(Ur &ur, size_t size = large) : memory(ur, size), data(memory.get()) {
    memory.fill(1);
    CHECK(Memory::open(ur, data.copy(), &opened));
    require(opened != nullptr, "a success without a pointer");
  }
  ~Shared() { put(memory.ur, data); }
  std::string compare(uint8_t byte) { return app::compare(memory.ur, opened, memory.size, byte); }

  Memory memory;
  Data data;
  void *opened = nullptr;
};

static void share_of(Ur &ur, Answers &answers, Allocate allocate) {
  Memory memory(ur, large, allocate);
  memory.fill(1);
  Data data;
  void *opened = nullptr;
  answers << memory.get(data) << Memory::open(ur, data.copy(), &opened) << compare(ur, opened, large, 1);
  answers << Memory::close(ur, opened) << put(ur, data);
}

// Offsets of the fields in the adapters' handle data: libumf's header, and then the pid that the descriptor is fetched from.
constexpr size_t at_offset = 32, at_pid = 40;

static const std::vector<Case> alone = {
    {"support",
     [](Ur &ur, Answers &answers) {
       ur_bool_t value = 0;
       answers << urDeviceGetInfo(ur.device, UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP, sizeof value, &value, nullptr);
       answers << (value ? "yes" : "no");
     }},
    {"opened-shows-the-same-memory",
     [](Ur &ur, Answers &answers) {
       Shared shared(ur);
       answers << shared.compare(1) << (shared.opened != shared.memory.pointer ? "two" : "one");
       fill(ur, shared.opened, large, 2);
       answers << shared.memory.compare(2) << Memory::close(ur, shared.opened);
     }},
    {"share-host-memory", [](Ur &ur, Answers &answers) { share_of(ur, answers, on_host); }},
    {"share-shared-memory", [](Ur &ur, Answers &answers) { share_of(ur, answers, on_both); }},
    {"get-inside-an-allocation",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       auto *const inside = static_cast<std::byte *>(memory.pointer) + large / 2;
       memory.fill(1);
       fill(ur, inside, large / 2, 2);
       Data data;
       void *opened = nullptr;
       answers << get(ur, inside, data) << Memory::open(ur, data.copy(), &opened) << compare(ur, opened, large / 2, 2);
       answers << Memory::close(ur, opened) << put(ur, data);
     }},
    // Both lie in one allocation of the driver.
    {"get-of-two-neighbours",
     [](Ur &ur, Answers &answers) {
       Shared one(ur, small), other(ur, small);
       one.memory.fill(3);
       other.memory.fill(4);
       answers << compare(ur, one.opened, small, 3) << compare(ur, other.opened, small, 4);
       answers << Memory::close(ur, one.opened) << compare(ur, other.opened, small, 4);
       answers << Memory::close(ur, other.opened);
     }},
    {"get-of-freed-memory",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const void *freed = memory.pointer;
       answers << memory.release();
       get_refused(ur, answers, freed);
     }},
    {"get-of-freed-memory-of-a-pool",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur, small);
       const void *freed = memory.pointer;
       answers << memory.release();
       get_refused(ur, answers, freed);
     }},
    {"get-of-no-allocation", [](Ur &ur, Answers &answers) { get_refused(ur, answers, &answers); }},
    {"get-of-opened-memory",
     [](Ur &ur, Answers &answers) {
       Shared shared(ur);
       get_refused(ur, answers, shared.opened);
       answers << Memory::close(ur, shared.opened);
     }},
    {"open-of-an-offset-beyond-the-end",
     [](Ur &ur, Answers &answers) { open_altered<Memory>(ur, answers, at_offset, uint64_t{1} << 40); }},
    {"open-of-an-unknown-pid", [](Ur &ur, Answers &answers) { open_altered<Memory>(ur, answers, at_pid, INT_MAX); }},
    {"open-of-no-pid", [](Ur &ur, Answers &answers) { open_altered<Memory>(ur, answers, at_pid, -1); }},
    {"open-after-release-to-the-pool",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur, small);
       const Data data = memory.get();
       const Bytes bytes = data.copy();
       answers << memory.release();
       open_and_close<Memory>(ur, answers, bytes);
       answers << put(ur, data);
     }},
    {"opened-twice-and-closed-once",
     [](Ur &ur, Answers &answers) {
       Shared shared(ur);
       void *other = nullptr;
       answers << Memory::open(ur, shared.data.copy(), &other) << Memory::close(ur, other) << shared.compare(1);
       answers << Memory::close(ur, shared.opened);
     }},
    {"opened-outlives-the-free",
     [](Ur &ur, Answers &answers) {
       Shared shared(ur);
       answers << shared.memory.release() << shared.compare(1) << Memory::close(ur, shared.opened);
     }},
    {"opened-is-freed",
     [](Ur &ur, Answers &answers) {
       Shared shared(ur);
       answers << urUSMFree(ur.context, shared.opened) << shared.compare(1) << Memory::close(ur, shared.opened);
     }},
    {"close-twice",
     [](Ur &ur, Answers &answers) {
       Shared shared(ur);
       answers << Memory::close(ur, shared.opened) << Memory::close(ur, shared.opened);
     }},
    {"open-after-a-close-too-many",
     [](Ur &ur, Answers &answers) {
       Shared shared(ur);
       Memory::close(ur, shared.opened);
       Memory::close(ur, shared.opened);
       void *again = nullptr;
       answers << Memory::open(ur, shared.data.copy(), &again) << compare(ur, again, large, 1) << Memory::close(ur, again);
     }},
    {"close-inside-a-mapping",
     [](Ur &ur, Answers &answers) {
       Shared shared(ur);
       const ur_result_t result = Memory::close(ur, static_cast<std::byte *>(shared.opened) + 8);
       answers << result << shared.compare(1);
       if (result != UR_RESULT_SUCCESS) CHECK(Memory::close(ur, shared.opened));
     }},
    {"close-in-another-context",
     [](Ur &ur, Answers &answers) {
       Shared shared(ur);
       ur_context_handle_t other = nullptr;
       CHECK(urContextCreate(1, &ur.device, nullptr, &other));
       const ur_result_t result = urIPCCloseMemHandleExp(other, shared.opened);
       answers << result;
       if (result != UR_RESULT_SUCCESS) CHECK(Memory::close(ur, shared.opened));
       CHECK(urContextRelease(other));
     }},
    {"close-of-own-memory",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       answers << Memory::close(ur, memory.pointer);
     }},
    {"close-of-no-mapping", [](Ur &ur, Answers &answers) { answers << Memory::close(ur, &answers); }},
};

// The child exports memory that it has filled with ones.
static void export_ones(Ur &ur, Peer &parent, Answers &) {
  Memory memory(ur);
  memory.fill(1);
  const Data data = memory.get();
  parent.send(data.copy());
  parent.await("done");
  CHECK(put(ur, data));
}

static const std::vector<CaseOfTwo> of_two = {
    {"open-of-another-process",
     [](Ur &ur, Peer &child, Answers &answers) {
       void *opened = nullptr;
       answers << Memory::open(ur, child.receive(), &opened) << compare(ur, opened, large, 1);
       fill(ur, opened, large, 2);
       answers << Memory::close(ur, opened);
       child.say("written");
       answers << child.receive_word();
     },
     [](Ur &ur, Peer &parent, Answers &) {
       Memory memory(ur);
       memory.fill(1);
       const Data data = memory.get();
       parent.send(data.copy());
       parent.await("written");
       parent.say(memory.compare(2));
       CHECK(put(ur, data));
     }},
    {"open-inside-an-allocation-of-another-process",
     [](Ur &ur, Peer &child, Answers &answers) {
       void *opened = nullptr;
       answers << Memory::open(ur, child.receive(), &opened) << compare(ur, opened, large / 2, 2);
       answers << Memory::close(ur, opened);
       child.say("done");
     },
     [](Ur &ur, Peer &parent, Answers &) {
       Memory memory(ur);
       auto *const inside = static_cast<std::byte *>(memory.pointer) + large / 2;
       fill(ur, inside, large / 2, 2);
       Data data;
       CHECK(get(ur, inside, data));
       parent.send(data.copy());
       parent.await("done");
       CHECK(put(ur, data));
     }},
    {"open-of-an-offset-beyond-the-end-of-another-process",
     [](Ur &ur, Peer &child, Answers &answers) {
       Bytes data = child.receive();
       const uint64_t beyond = uint64_t{1} << 40;
       std::memcpy(data.data() + at_offset, &beyond, sizeof beyond);
       open_and_close<Memory>(ur, answers, data);
       child.say("done");
     },
     export_ones},
    {"opened-outlives-the-free-of-another-process",
     [](Ur &ur, Peer &child, Answers &answers) {
       void *opened = nullptr;
       answers << Memory::open(ur, child.receive(), &opened);
       child.say("free");
       child.await("freed");
       answers << compare(ur, opened, large, 1) << Memory::close(ur, opened);
     },
     [](Ur &ur, Peer &parent, Answers &) {
       Memory memory(ur);
       memory.fill(1);
       parent.send(memory.get().copy());
       parent.await("free");
       CHECK(memory.release());
       parent.say("freed");
     }},
    {"opened-outlives-another-process",
     [](Ur &ur, Peer &child, Answers &answers) {
       const Bytes data = child.receive();
       void *opened = nullptr;
       answers << Memory::open(ur, data, &opened);
       child.say("done");
       child.await_end();
       answers << compare(ur, opened, large, 1) << Memory::close(ur, opened);
       open_and_close<Memory>(ur, answers, data);
     },
     export_ones},
};

static const std::vector<Case> apart = {
    {"get-null-context",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       Data data;
       answers << urIPCGetMemHandleExp(nullptr, memory.pointer, &data.data, &data.size);
     }},
    {"get-null-pointer", [](Ur &ur, Answers &answers) { get_refused(ur, answers, nullptr); }},
    {"get-null-data",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       size_t size = 0;
       answers << urIPCGetMemHandleExp(ur.context, memory.pointer, nullptr, &size) << (size > 0 ? "size" : "nothing");
     }},
    {"get-null-size",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       void *data = nullptr;
       answers << urIPCGetMemHandleExp(ur.context, memory.pointer, &data, nullptr) << (data ? "data" : "nothing");
     }},
    {"get-null-data-and-size",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       answers << urIPCGetMemHandleExp(ur.context, memory.pointer, nullptr, nullptr);
     }},
    {"put-null-context",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       answers << urIPCPutMemHandleExp(nullptr, memory.get().data);
     }},
    {"put-null-data", [](Ur &ur, Answers &answers) { answers << urIPCPutMemHandleExp(ur.context, nullptr); }},
    {"put-null-context-and-data", [](Ur &, Answers &answers) { answers << urIPCPutMemHandleExp(nullptr, nullptr); }},
    {"open-null-context",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const Data data = memory.get();
       void *opened = nullptr;
       answers << urIPCOpenMemHandleExp(nullptr, ur.device, data.data, data.size, &opened);
     }},
    {"open-null-device",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const Data data = memory.get();
       void *opened = nullptr;
       answers << urIPCOpenMemHandleExp(ur.context, nullptr, data.data, data.size, &opened);
     }},
    {"open-null-data",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       void *opened = nullptr;
       answers << urIPCOpenMemHandleExp(ur.context, ur.device, nullptr, memory.get().size, &opened);
     }},
    {"open-null-result",
     [](Ur &ur, Answers &answers) {
       Memory memory(ur);
       const Data data = memory.get();
       answers << urIPCOpenMemHandleExp(ur.context, ur.device, data.data, data.size, nullptr);
     }},
    {"close-null-context",
     [](Ur &ur, Answers &answers) {
       Shared shared(ur);
       answers << urIPCCloseMemHandleExp(nullptr, shared.opened);
     }},
    {"close-null-pointer", [](Ur &ur, Answers &answers) { answers << Memory::close(ur, nullptr); }},
    {"free-null", [](Ur &ur, Answers &answers) { answers << urUSMFree(ur.context, nullptr); }},
    {"free-of-no-allocation", [](Ur &ur, Answers &answers) { answers << urUSMFree(ur.context, &answers); }},
    {"allocate-nothing",
     [](Ur &ur, Answers &answers) {
       void *pointer = nullptr;
       answers << on_device(ur, 0, &pointer);
     }},
};

// The results of a get and an open that the driver refuses.
static std::vector<Case> faults() {
  const auto of_get = [](Ur &ur, Answers &answers) {
    Memory memory(ur);
    get_refused(ur, answers, memory.pointer);
  };
  const auto of_open = [](Ur &ur, Answers &answers) {
    Memory memory(ur);
    const Data data = memory.get();
    open_and_close<Memory>(ur, answers, data.copy());
    CHECK(put(ur, data));
  };
  const std::pair<const char *, const char *> codes[] = {
      {"invalid-argument", "0x78000004"},         {"out-of-host-memory", "0x70000002"},
      {"out-of-device-memory", "0x70000003"},     {"device-lost", "0x70000001"},
      {"insufficient-permissions", "0x70010000"}, {"unsupported-feature", "0x78000003"},
      {"unsupported-size", "0x78000009"},         {"unknown", "0x7ffffffe"},
  };
  std::vector<Case> cases;
  for (const auto &[name, code] : codes)
    cases.push_back({std::string("get-when-") + name, of_get, std::string("zeMemGetIpcHandle:") + code});
  for (const auto &[name, code] : codes)
    cases.push_back({std::string("open-when-") + name, of_open, std::string("zeMemOpenIpcHandle:") + code});
  return cases;
}

int main(int argc, char **argv) {
  return run_cases(argc, argv,
                  {both(alone_of_every_kind<Memory>(), alone), both(of_two_of_every_kind<Memory>(), of_two), apart,
                   misuse_of_every_kind<Memory>(), faults()});
}
