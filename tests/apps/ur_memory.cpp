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
static ur_result_t on_host(Ur &ur, size_t size, void **pointer) { return urUSMHostAlloc(ur.context, nullptr, nullptr, size, pointer); }
static ur_result_t on_both(Ur &ur, size_t size, void **pointer) {
  return urUSMSharedAlloc(ur.context, ur.device, nullptr, nullptr, size, pointer);
}

static ur_result_t get(Ur &ur, const void *pointer, Data &data) {
  return urIPCGetMemHandleExp(ur.context, const_cast<void *>(pointer), &data.data, &data.size);
}

// An allocation, freed at the end of its case.
struct Memory {
  explicit Memory(Ur &ur, size_t size = large, Allocate allocate = on_device) : ur(ur), size(size) { CHECK(allocate(ur, size, &object)); }
  Memory(const Memory &) = delete;
  ~Memory() {
    if (object != nullptr) urUSMFree(ur.context, object);
  }

  ur_result_t get(Data &data) { return ::get(ur, object, data); }
  Data get() { return ur.get(object); }
  ur_result_t release() { return urUSMFree(ur.context, std::exchange(object, nullptr)); }
  void fill(uint8_t byte) { app::fill(ur, object, size, byte); }
  std::string compare(uint8_t byte) { return app::compare(ur, object, size, byte); }

  using Opened = void *;
  static ur_result_t put(Ur &ur, const Data &data) { return urIPCPutMemHandleExp(ur.context, data.data); }
  static ur_result_t open(Ur &ur, const View &data, Opened *pointer) {
    return urIPCOpenMemHandleExp(ur.context, ur.device, const_cast<std::byte *>(data.data()), data.size(), pointer);
  }
  static ur_result_t close(Ur &ur, Opened pointer) { return urIPCCloseMemHandleExp(ur.context, pointer); }

  struct Mapped {
    void fill(uint8_t byte) { app::fill(ur, start, large, byte); }
    std::string compare(uint8_t byte) { return app::compare(ur, start, large, byte); }
    Ur &ur;
    void *start;
  };

  Ur &ur;
  size_t size;
  void *object = nullptr;
};
constexpr auto put = Memory::put;

static std::string get_refused(Ur &ur, const void *pointer) {
  Data data;
  const ur_result_t result = get(ur, pointer, data);
  const std::string answer = std::to_string(result) + " " + left(data);
  if (data.data != nullptr) put(ur, data);
  return answer;
}

static std::string get_of_freed(Ur &ur, size_t size) {
  Memory memory(ur, size);
  const void *freed = memory.object;
  return Answers() << memory.release() << get_refused(ur, freed);
}

// Memory full of ones, data of it, and a mapping in the same process, which is closed with it.
struct Shared : Got<Memory> {
  explicit Shared(Ur &ur, size_t size = large) : Got(ur, size) {
    fill(1);
    opened = open();
  }
  ur_result_t close() { return Memory::close(ur, opened); }
  std::string compare_opened(uint8_t byte) { return app::compare(ur, opened, size, byte); }

  void *opened = nullptr;
};

static std::string share_of(Ur &ur, Allocate allocate) {
  Memory memory(ur, large, allocate);
  memory.fill(1);
  Data data;
  void *opened = nullptr;
  Answers answers;
  answers << memory.get(data) << Memory::open(ur, data.copy(), &opened) << compare(ur, opened, large, 1);
  return answers << Memory::close(ur, opened) << put(ur, data);
}

// Offsets of the fields in the adapters' handle data: libumf's header, and then the pid that the descriptor is fetched from.
constexpr size_t at_offset = 32, at_pid = 40;

static const std::vector<Case> alone = {
    {"support", RUNS { answers << ur.asked(UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP); }},
    {"opened-shows-the-same-memory", RUNS {
       Shared shared(ur);
       answers << shared.compare_opened(1) << (shared.opened != shared.object ? "two" : "one");
       fill(ur, shared.opened, large, 2);
       answers << shared.compare(2) << shared.close();
     }},
    {"share-host-memory", RUNS { answers << share_of(ur, on_host); }},
    {"share-shared-memory", RUNS { answers << share_of(ur, on_both); }},
    {"get-inside-an-allocation", RUNS {
       Memory memory(ur);
       auto *const inside = static_cast<std::byte *>(memory.object) + large / 2;
       memory.fill(1);
       fill(ur, inside, large / 2, 2);
       Data data;
       void *opened = nullptr;
       answers << get(ur, inside, data) << Memory::open(ur, data.copy(), &opened) << compare(ur, opened, large / 2, 2);
       answers << Memory::close(ur, opened) << put(ur, data);
     }},
    // Both lie in one allocation of the driver.
    {"get-of-two-neighbours", RUNS {
       Shared one(ur, small), other(ur, small);
       one.fill(3);
       other.fill(4);
       answers << compare(ur, one.opened, small, 3) << compare(ur, other.opened, small, 4);
       answers << one.close() << compare(ur, other.opened, small, 4) << other.close();
     }},
    {"get-of-freed-memory", RUNS { answers << get_of_freed(ur, large); }},
    {"get-of-freed-memory-of-a-pool", RUNS { answers << get_of_freed(ur, small); }},
    {"get-of-no-allocation", RUNS { answers << get_refused(ur, &answers); }},
    {"get-of-opened-memory", RUNS { Shared shared(ur); answers << get_refused(ur, shared.opened) << shared.close(); }},
    {"open-of-an-offset-beyond-the-end", RUNS { answers << open_altered<Memory>(ur, at_offset, uint64_t{1} << 40); }},
    {"open-of-an-unknown-pid", RUNS { answers << open_altered<Memory>(ur, at_pid, INT_MAX); }},
    {"open-of-no-pid", RUNS { answers << open_altered<Memory>(ur, at_pid, -1); }},
    {"open-after-release-to-the-pool", RUNS {
       Got<Memory> memory(ur, small);
       answers << memory.release() << open_and_close<Memory>(ur, memory.copy()) << memory.put();
     }},
    {"opened-twice-and-closed-once", RUNS {
       Shared shared(ur);
       void *other = nullptr;
       answers << Memory::open(ur, shared.copy(), &other) << Memory::close(ur, other) << shared.compare_opened(1) << shared.close();
     }},
    {"opened-outlives-the-free", RUNS { Shared shared(ur); answers << shared.release() << shared.compare_opened(1) << shared.close(); }},
    {"opened-is-freed", RUNS {
       Shared shared(ur);
       answers << urUSMFree(ur.context, shared.opened) << shared.compare_opened(1) << shared.close();
     }},
    {"close-twice", RUNS { Shared shared(ur); answers << shared.close() << shared.close(); }},
    {"open-after-a-close-too-many", RUNS {
       Shared shared(ur);
       shared.close();
       shared.close();
       void *again = nullptr;
       answers << Memory::open(ur, shared.copy(), &again) << compare(ur, again, large, 1) << Memory::close(ur, again);
     }},
    {"close-inside-a-mapping", RUNS {
       Shared shared(ur);
       const ur_result_t result = Memory::close(ur, static_cast<std::byte *>(shared.opened) + 8);
       answers << result << shared.compare_opened(1);
       if (result != UR_RESULT_SUCCESS) CHECK(shared.close());
     }},
    {"close-in-another-context", RUNS {
       Shared shared(ur);
       ur_context_handle_t other = nullptr;
       CHECK(urContextCreate(1, &ur.device, nullptr, &other));
       const ur_result_t result = urIPCCloseMemHandleExp(other, shared.opened);
       answers << result;
       if (result != UR_RESULT_SUCCESS) CHECK(shared.close());
       CHECK(urContextRelease(other));
     }},
    {"close-of-own-memory", RUNS { Memory memory(ur); answers << Memory::close(ur, memory.object); }},
    {"close-of-no-mapping", RUNS { answers << Memory::close(ur, &answers); }},
};

// The child exports memory that it has filled with ones.
static void export_ones(Ur &ur, Peer &parent, Answers &) {
  Got<Memory> memory(ur);
  memory.fill(1);
  parent.send(memory.copy());
  parent.await("done");
}

static const std::vector<CaseOfTwo> of_two = {
    open_of_another_process<Memory>(),
    {"open-inside-an-allocation-of-another-process", PARENT {
       void *opened = nullptr;
       answers << Memory::open(ur, child.receive(), &opened) << compare(ur, opened, large / 2, 2) << Memory::close(ur, opened);
       child.say("done");
     }, CHILD {
       Memory memory(ur);
       auto *const inside = static_cast<std::byte *>(memory.object) + large / 2;
       fill(ur, inside, large / 2, 2);
       Data data;
       CHECK(get(ur, inside, data));
       parent.send(data.copy());
       parent.await("done");
       CHECK(put(ur, data));
     }},
    {"open-of-an-offset-beyond-the-end-of-another-process", PARENT {
       Bytes data = child.receive();
       const uint64_t beyond = uint64_t{1} << 40;
       std::memcpy(data.data() + at_offset, &beyond, sizeof beyond);
       answers << open_and_close<Memory>(ur, data);
       child.say("done");
     }, export_ones},
    {"opened-outlives-the-free-of-another-process", PARENT {
       void *opened = nullptr;
       answers << Memory::open(ur, child.receive(), &opened);
       child.say("free");
       child.await("freed");
       answers << compare(ur, opened, large, 1) << Memory::close(ur, opened);
     }, CHILD {
       Memory memory(ur);
       memory.fill(1);
       parent.send(memory.get().copy());
       parent.await("free");
       CHECK(memory.release());
       parent.say("freed");
     }},
    {"opened-outlives-another-process", PARENT {
       const Bytes data = child.receive();
       void *opened = nullptr;
       answers << Memory::open(ur, data, &opened);
       child.say("done");
       child.await_end();
       answers << compare(ur, opened, large, 1) << Memory::close(ur, opened) << open_and_close<Memory>(ur, data);
     }, export_ones},
};

// Results that nobody reads.
static Data data;
static void *opened;

static const std::vector<Case> apart = {
    {"get-null-context", RUNS { answers << urIPCGetMemHandleExp(nullptr, Memory(ur).object, &data.data, &data.size); }},
    {"get-null-pointer", RUNS { answers << get_refused(ur, nullptr); }},
    {"get-null-data", RUNS {
       Memory memory(ur);
       size_t size = 0;
       answers << urIPCGetMemHandleExp(ur.context, memory.object, nullptr, &size) << (size > 0 ? "size" : "nothing");
     }},
    {"get-null-size", RUNS {
       Memory memory(ur);
       void *data = nullptr;
       answers << urIPCGetMemHandleExp(ur.context, memory.object, &data, nullptr) << (data ? "data" : "nothing");
     }},
    {"get-null-data-and-size", RUNS { answers << urIPCGetMemHandleExp(ur.context, Memory(ur).object, nullptr, nullptr); }},
    NULL_CASE(Memory, "put-null-context", urIPCPutMemHandleExp(nullptr, data.data)),
    {"put-null-data", RUNS { answers << urIPCPutMemHandleExp(ur.context, nullptr); }},
    {"put-null-context-and-data", RUNS { answers << urIPCPutMemHandleExp(nullptr, nullptr); }},
    NULL_CASE(Memory, "open-null-context", urIPCOpenMemHandleExp(nullptr, ur.device, data.data, data.size, &opened)),
    NULL_CASE(Memory, "open-null-device", urIPCOpenMemHandleExp(ur.context, nullptr, data.data, data.size, &opened)),
    NULL_CASE(Memory, "open-null-data", urIPCOpenMemHandleExp(ur.context, ur.device, nullptr, data.size, &opened)),
    NULL_CASE(Memory, "open-null-result", urIPCOpenMemHandleExp(ur.context, ur.device, data.data, data.size, nullptr)),
    {"close-null-context", RUNS { answers << urIPCCloseMemHandleExp(nullptr, Shared(ur).opened); }},
    {"close-null-pointer", RUNS { answers << Memory::close(ur, nullptr); }},
    {"free-null", RUNS { answers << urUSMFree(ur.context, nullptr); }},
    {"free-of-no-allocation", RUNS { answers << urUSMFree(ur.context, &data); }},
    {"allocate-nothing", RUNS { answers << on_device(ur, 0, &opened); }},
};

// The results of a get and an open that the driver refuses.
static std::vector<Case> faults() {
  const auto of_get = [](Ur &ur, Answers &answers) {
    Memory memory(ur);
    answers << get_refused(ur, memory.object);
  };
  const auto of_open = [](Ur &ur, Answers &answers) { answers << open_and_close<Memory>(ur, Got<Memory>(ur).copy()); };
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
  const Cases cases = {both(alone_of_every_kind<Memory>(), alone), both(of_two_of_every_kind<Memory>(), of_two), apart,
                       misuse_of_every_kind<Memory>(), faults()};
  return run_cases(argc, argv, cases);
}
