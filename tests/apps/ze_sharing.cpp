// Two processes share memory and events through Level Zero's own functions, as communication libraries do: the bytes of
// a handle travel, and the consumer fetches the descriptor in them. The argument names a case; "list" prints the names.
//
// The steps of a case are those of both processes, in their order. The producer begins. ">" gives the turn and the
// producer's handle to the consumer, and "<" gives the turn back. Behind "|" the consumer goes on without waiting for
// it. A step with "?" may be refused, and one with "301*" is made so many times.
#include "sleeper.hpp"
#include "ze_app.hpp"

#include <map>
#include <optional>
#include <sstream>
#include <sys/mman.h>

using namespace app;

namespace {

constexpr size_t SIZE = 1 << 16;

// What most cases of a kind begin with.
#define PHYSICAL "physical map fill export-physical > fetch import-physical < close-descriptor "
#define POOL "> fetch open-pool in-pool < signal | wait destroy-event "
#define EVENT "take open-event < signal-by-command | wait "

const std::pair<const char *, const char *> cases[] = {
    {"memory-right", "alloc get > fetch open read close < put free"},
    {"memory-without-put", "alloc get > fetch open read close < free"},
    {"memory-free-first", "alloc get > fetch open read < free > close"},
    {"memory-one-byte-left", "alloc get > fetch bare open read close < put free"},
    {"memory-left-open", "alloc get > fetch open read < put free"},
    {"memory-by-extension", "alloc get-by-extension > fetch open-by-extension read close < put free"},
    {"memory-close-twice", "alloc get > fetch open read close close? < put free"},
    {"memory-put-twice", "alloc get > fetch open read close < put put free"},
    {"memory-put-after-free", "alloc get > fetch open read close < free put"},
    {"memory-after-put", "alloc get > fetch < put > open? < free"},
    {"memory-after-free", "alloc get > fetch < free > open?"},
    {"memory-close-of-own", "alloc get > fetch open read close < close? put free"},
    {"memory-context-first", "alloc get > fetch open read end-context close? < put free"},
    {"memory-producers-context-first", "alloc get > fetch open read close < end-context put? free?"},
    {"memory-got-twice", "alloc get get-and-put > fetch open read close < put free"},
    {"memory-copied", "alloc get > fetch open read copy let-go await close < put free"},
    {"memory-copied-after-close", "alloc get > fetch open read close copy-at-once < put free"},
    {"memory-of-host-copied", "alloc get > fetch open read close map-host copy-at-once < put free"},
    {"memory-closed-unproved", "alloc get > fetch open read copy let-go poll close < put free"},
    {"memory-copied-at-once", "alloc get > fetch open read copy-at-once close < put free"},
    {"memory-executed-at-once", "alloc get > fetch open read execute-at-once close < put free"},
    {"memory-copied-in-other-context", "alloc get > fetch open read copy-in-other-context close < put free"},
    {"memory-closed-while-copied", "alloc get > fetch open read copy close let-go await < put free"},
    {"memory-freed-while-copied", "alloc get > fetch open read close < copy-into put free let-go await"},
    {"memory-rows-copied", "alloc get > fetch open read copy-rows let-go await close < put free"},
    {"memory-closed-while-rows-copied", "alloc get > fetch open read copy-rows close let-go await < put free"},
    {"memory-executed-again", "alloc get > fetch open read execute-again let-go await close < put free"},
    {"memory-closed-while-executed-again", "alloc get > fetch open read execute-again close let-go await < put free"},

    // A list on a synchronous queue: a copy is appended, and the list executed later.
    {"list-right", "alloc get > fetch open read append execute close < put free"},
    {"list-executed-after-close", "alloc get > fetch open read append close execute < put free"},
    {"list-executed-again-after-close", "alloc get > fetch open read append execute close execute < put free"},
    {"list-reset-after-close", "alloc get > fetch open read append close reset execute < put free"},
    {"list-made-anew-after-close", "alloc get > fetch open read append close destroy-list make-list execute < put free"},
    {"list-executed-after-reopen", "alloc get > fetch open read append close fetch open execute close < put free"},
    {"list-executed-after-free", "alloc get > fetch open read close < append-into put free execute"},

    // With a device on which each copy takes long.
    {"race-executed-again", "alloc get > fetch open execute-again let-go < copy-into let-go await > await close < put free"},
    {"race-executed-again-fixed", "alloc get > fetch open execute-again let-go await < copy-into let-go await > close < put free"},
    {"race-physical", PHYSICAL "> map copy let-go < copy-into let-go await > await unmap destroy < unmap destroy"},

    // The bytes of a handle are opened as they came. The consumer may have a handle with the same number, or another file.
    {"bytes-right", "alloc get > take open-bytes read close < put free"},
    {"bytes-of-like-process", "alloc get > swap alloc get put swap take open-bytes read close swap free < put free"},
    {"bytes-number-in-use", "alloc get > take occupy open-bytes read close < put free"},
    {"bytes-upper-half-set", "alloc get > fetch set-upper-half open read close < put free"},
    {"bytes-after-put", "alloc get > take < put > swap alloc get swap open-bytes? swap put free < free"},
    {"bytes-after-free", "alloc get > take < free > swap alloc get swap open-bytes? swap put free"},
    {"bytes-of-pool", "pool in-pool get-pool > swap pool get-pool put-pool swap take open-pool in-pool < signal | wait "
                      "destroy-event close-pool swap destroy-pool < destroy-event destroy-pool"},

    {"descriptor-right", "alloc-exportable export > fetch import read free < free"},
    {"descriptor-again-and-again", "alloc-exportable 301*export > fetch import read free < free"},
    {"descriptor-as-handle", "alloc-exportable export handle-of > fetch open < put > read close < free"},
    {"descriptor-of-handle", "alloc-exportable get descriptor-of > fetch import < put > read free < free"},
    {"descriptor-free-first", "alloc-exportable export > fetch import < free > read free"},
    {"descriptor-left-open", "alloc-exportable export > fetch import read < free"},
    {"descriptor-closed", "alloc-exportable export > fetch import read close? free < free"},
    {"descriptor-freed-twice", "alloc-exportable export > fetch import read free free? < free"},
    {"descriptor-freed-while-copied", "alloc-exportable export > fetch import read copy free let-go await < free"},

    // Of physical memory: by a descriptor that its properties export, or by the IPC handle of one of these: its handle,
    // an address that it is mapped at, the descriptor of such an address.
    {"physical-right", PHYSICAL "unmap destroy > map read unmap destroy"},
    {"physical-by-handle", "physical map fill get-physical > fetch open read close < put unmap destroy"},
    {"physical-by-address", "physical map fill get > fetch open read close < put unmap destroy"},
    {"physical-by-address-exported", "physical map fill export handle-of > fetch open read close < put unmap destroy"},
    {"physical-left-open", PHYSICAL "unmap destroy > map read unmap"},
    {"physical-destroyed-twice", PHYSICAL "unmap destroy > map read unmap destroy destroy?"},
    {"physical-destroyed-while-mapped", PHYSICAL "destroy unmap > map read unmap destroy"},
    {"physical-copied", PHYSICAL "unmap destroy > map read copy let-go await unmap destroy"},
    {"physical-unmapped-while-copied", PHYSICAL "unmap destroy > map read copy unmap let-go await destroy"},
    {"physical-without-flag", "unshared-physical map fill export-physical? unmap destroy"},

    {"pool-right", "pool in-pool get-pool " POOL "close-pool < destroy-event destroy-pool"},
    {"pool-two-pools", "pool swap pool get-pool swap get-pool put-pool swap put-pool destroy-pool swap "
                       "in-pool get-pool " POOL "close-pool < destroy-event destroy-pool"},
    {"pool-put-twice", "pool in-pool get-pool " POOL "close-pool < put-pool put-pool destroy-event destroy-pool"},
    {"pool-never-put", "pool in-pool 301*get-pool " POOL "close-pool < destroy-event destroy-pool"},
    {"pool-left-open", "pool in-pool get-pool " POOL "< destroy-event destroy-pool"},
    {"pool-close-twice", "pool in-pool get-pool " POOL "close-pool close-pool? < destroy-event destroy-pool"},
    {"pool-after-destroy", "pool in-pool get-pool > fetch < destroy-event destroy-pool > open-pool? close-descriptor"},
    {"pool-destroyed-first", "pool in-pool get-pool > fetch open-pool in-pool < signal > wait < destroy-event destroy-pool > "
                             "destroy-event close-pool"},
    {"pool-without-flag", "unshared-pool in-pool get-pool? destroy-event destroy-pool"},

    {"event-right", "event get-event > " EVENT "close-event < destroy-event"},
    {"event-by-extension", "extension event get-event > extension " EVENT "close-event < destroy-event"},
    {"event-two-events",
     "event get-event swap event get-event swap > " EVENT "close-event < destroy-event swap destroy-event"},
    {"event-left-open", "event get-event > " EVENT "< destroy-event"},
    {"event-closed-twice", "event get-event > " EVENT "close-event close-event? < destroy-event"},
    {"event-close-of-own", "event get-event > " EVENT "close-event < close-event? destroy-event"},
    {"event-after-destroy", "event get-event > take < destroy-event > open-event?"},
    {"event-destroyed-first", "event get-event > take open-event < signal-by-command > wait < destroy-event > close-event"},
    {"event-never-signalled", "event get-event > take open-event < signal-later > start-wait < leave | give-up"},
    {"event-signalled-late",
     "event get-event > take open-event < signal-later > start-wait < open-gate | end-wait close-event < destroy-event"},
    {"event-without-flag", "unshared-event get-event? destroy-event"},
};

// What a process has. It can have as much again aside.
struct Objects {
  void *memory = nullptr;
  ze_handle_t physical = nullptr, pool = nullptr, event = nullptr;
  ze_ipc_mem_handle_t handle = {};
};

// One of the two processes.
struct Side : Ze {
  Objects own, aside;
  Bytes received;
  std::optional<HeldCopy> copied;
  const Peer *other = nullptr;
  // A command waits for it.
  ze_handle_t gate = nullptr;
  // A list, and the queue that executes it.
  ze_handle_t list = nullptr, queue = nullptr;
  std::optional<Sleeper> waiting;
  char copy[SIZE];

  void fill() const { std::memset(own.memory, shared_byte, SIZE); }
  uint32_t allocate_filled(const ze_external_memory_t *extension = nullptr) {
    own.memory = allocate(SIZE, extension);
    return fill(), 0;
  }
  uint32_t make_physical(ze_external_memory_t *extension) {
    ze_physical_mem_desc_t desc = {0x1b, extension, 0, SIZE};
    return zePhysicalMemCreate(context, device, &desc, &own.physical);
  }
  uint32_t make_event(uint32_t flags) {
    const ze_event_counter_based_desc_t desc = {0x3001c, nullptr, flags, 4, 4};
    return zeEventCounterBasedCreate(context, device, &desc, &own.event);
  }
  void make_list() {
    const ze_command_list_desc_t desc = {0xf, nullptr, 0, 0};
    check(zeCommandListCreate(context, device, &desc, &list), "zeCommandListCreate");
  }
  uint32_t append(void *to, const void *from) {
    const ze_command_queue_desc_t desc = {0xe, nullptr, 0, 0, 0, 1, 0};
    check(zeCommandQueueCreate(context, device, &desc, &queue), "zeCommandQueueCreate");
    make_list();
    check(zeCommandListAppendMemoryCopy(list, to, from, SIZE, nullptr, 0, nullptr), "zeCommandListAppendMemoryCopy");
    return zeCommandListClose(list);
  }
  uint32_t opened(uint32_t result) const {
    print(result == 0 ? "opened" : "refused");
    return ::close(descriptor(own.handle)), result;
  }
  // The descriptor stays that of the program.
  void set_descriptor(int number) { std::memcpy(own.handle.data, &number, sizeof number); }

  void make(std::string step);
};

// ze_external_memory_export_desc_t, and ze_external_memory_import_fd_t
ze_external_memory_t exportable = {0x18, nullptr, DMA_BUF, 0};
ze_external_memory_t import_of(const ze_ipc_mem_handle_t &handle) {
  return {0x19, nullptr, DMA_BUF, descriptor(handle)};
}

// ze_event_pool_flag_t, ze_event_counter_based_flag_t
constexpr uint32_t POOL_HOST_VISIBLE = 1, POOL_IPC = 2, IMMEDIATE = 1, HOST_VISIBLE = 4, IPC = 8;

#define MAKES []([[maybe_unused]] Side & my) -> uint32_t

const std::map<std::string, uint32_t (*)(Side &)> operations = {
    {"swap", MAKES { return std::swap(my.own, my.aside), 0; }},
    {"end-context", MAKES { return my.zeContextDestroy(my.context); }},
    {"fetch", MAKES { return my.own.handle = fetched(my.received), 0; }},
    // The bytes are passed on as they came: the driver fetches what belongs to them.
    {"take", MAKES { return std::memcpy(&my.own.handle, my.received.data(), sizeof my.own.handle), 0; }},
    // What libfabric leaves of a handle: its descriptor.
    {"bare", MAKES { return std::memset(my.own.handle.data + 4, 0, sizeof my.own.handle.data - 4), 0; }},

    {"alloc", MAKES { return my.allocate_filled(); }},
    {"alloc-exportable", MAKES { return my.allocate_filled(&exportable); }},
    {"fill", MAKES { return my.fill(), 0; }},
    {"read", MAKES { return require_shared(my.own.memory, SIZE), 0; }},
    {"free", MAKES { return my.zeMemFree(my.context, my.own.memory); }},
    {"get", MAKES { return my.zeMemGetIpcHandle(my.context, my.own.memory, &my.own.handle); }},
    // The driver may return the same descriptor, and each get has its put.
    {"get-and-put", MAKES { return my.put(my.get(my.own.memory)), 0; }},
    {"get-by-extension", MAKES {
       const Zex zex(my);
       uint32_t count = 0;
       Ze::check(zex.get(my.context, my.own.memory, &count, nullptr), "zexMemGetIpcHandles");
       require(count == 1, "the memory has several parts");
       return zex.get(my.context, my.own.memory, &count, &my.own.handle);
     }},
    {"put", MAKES { return my.put(my.own.handle); }},
    {"open", MAKES { return my.opened(my.try_open(my.own.handle, &my.own.memory)); }},
    {"open-by-extension", MAKES {
       return my.opened(Zex(my).open(my.context, my.device, 1, &my.own.handle, 0, &my.own.memory));
     }},
    {"open-bytes", MAKES {
       const uint32_t result = my.try_open(my.own.handle, &my.own.memory);
       return print(result == 0 ? "opened" : "refused"), result;
     }},
    {"occupy", MAKES { return require(dup2(0, descriptor(my.own.handle)) >= 0, "dup2"), 0; }},
    // Intel SHMEM writes a descriptor as eight bytes, and -1 into the upper half.
    {"set-upper-half", MAKES { return std::memset(my.own.handle.data + 4, 0xff, 4), 0; }},
    {"close", MAKES { return my.zeMemCloseIpcHandle(my.context, my.own.memory); }},

    {"export", MAKES {
       // This asks for no descriptor, and is not recorded.
       require(my.id(my.own.memory) != 0, "the memory has no number");
       const int number = my.exported(my.own.memory), before = descriptor(my.own.handle);
       require(before == 0 || number == before, "another descriptor");
       return my.set_descriptor(number), 0;
     }},
    {"handle-of", MAKES { return my.own.handle = my.handle_of(descriptor(my.own.handle)), 0; }},
    {"descriptor-of", MAKES {
       uint64_t inside = 0;
       const uint32_t result = my.zeMemGetFileDescriptorFromIpcHandleExp(my.context, my.own.handle, &inside);
       require(static_cast<int>(inside) == descriptor(my.own.handle), "the handle has another descriptor");
       return result;
     }},
    {"import", MAKES {
       const ze_external_memory_t import = import_of(my.own.handle);
       my.own.memory = my.allocate(SIZE, &import);
       return ::close(import.descriptor);
     }},
    {"close-descriptor", MAKES { return ::close(descriptor(my.own.handle)); }},

    {"copy", MAKES { return my.copied.emplace(my, my.copy, my.own.memory, SIZE), 0; }},
    {"map-host", MAKES {
       const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
       return mmap(my.own.memory, SIZE, PROT_READ | PROT_WRITE, how, -1, 0) == my.own.memory ? 0 : 1;
     }},
    {"copy-into", MAKES { return my.copied.emplace(my, my.own.memory, my.copy, SIZE), 0; }},
    {"copy-rows", MAKES { return my.copied.emplace(my, my.copy, my.own.memory, SIZE, By::rows), 0; }},
    {"execute-again", MAKES { return my.copied.emplace(my, my.copy, my.own.memory, SIZE, By::closed_list), 0; }},
    {"copy-at-once", MAKES { return copy_at_once(my, my.copy, my.own.memory, SIZE, false), 0; }},
    {"copy-in-other-context", MAKES { return copy_at_once(Ze(), my.copy, my.own.memory, SIZE, false), 0; }},
    {"execute-at-once", MAKES { return copy_at_once(my, my.copy, my.own.memory, SIZE, true), 0; }},
    {"append", MAKES { return my.append(my.copy, my.own.memory); }},
    {"append-into", MAKES { return my.append(my.own.memory, my.copy); }},
    {"execute", MAKES { return my.zeCommandQueueExecuteCommandLists(my.queue, 1, &my.list, nullptr); }},
    {"reset", MAKES { return my.zeCommandListReset(my.list) + my.zeCommandListClose(my.list); }},
    {"destroy-list", MAKES { return my.zeCommandListDestroy(my.list); }},
    {"make-list", MAKES { return my.make_list(), my.zeCommandListClose(my.list); }},
    {"let-go", MAKES { return my.copied->let_go(), 0; }},
    {"await", MAKES { return my.copied->wait(), 0; }},
    {"poll", MAKES { return my.copied->poll(), 0; }},

    {"physical", MAKES { return my.make_physical(&exportable); }},
    {"unshared-physical", MAKES { return my.make_physical(nullptr); }},
    {"map", MAKES {
       Ze::check(my.zeVirtualMemReserve(my.context, nullptr, SIZE, &my.own.memory), "zeVirtualMemReserve");
       // ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE
       return my.zeVirtualMemMap(my.context, my.own.memory, SIZE, my.own.physical, 0, 1);
     }},
    {"unmap", MAKES {
       Ze::check(my.zeVirtualMemUnmap(my.context, my.own.memory, SIZE), "zeVirtualMemUnmap");
       return my.zeVirtualMemFree(my.context, my.own.memory, SIZE);
     }},
    {"destroy", MAKES { return my.zePhysicalMemDestroy(my.context, my.own.physical); }},
    {"get-physical", MAKES { return my.zeMemGetIpcHandle(my.context, my.own.physical, &my.own.handle); }},
    {"export-physical", MAKES {
       ze_external_memory_t exported = {0x1a, nullptr, DMA_BUF, -1};
       ze_physical_mem_properties_t properties = {0x2001f, &exported, 0, 0};
       const uint32_t result = my.zePhysicalMemGetProperties(my.context, my.own.physical, &properties);
       return my.set_descriptor(exported.descriptor), result;
     }},
    {"import-physical", MAKES {
       ze_external_memory_t import = import_of(my.own.handle);
       const uint32_t result = my.make_physical(&import);
       return ::close(import.descriptor), result;
     }},

    {"pool", MAKES { return my.own.pool = my.pool(POOL_HOST_VISIBLE | POOL_IPC), 0; }},
    {"unshared-pool", MAKES { return my.own.pool = my.pool(POOL_HOST_VISIBLE), 0; }},
    {"in-pool", MAKES { return my.own.event = my.Ze::event(my.own.pool), 0; }},
    {"get-pool", MAKES { return my.zeEventPoolGetIpcHandle(my.own.pool, &my.own.handle); }},
    {"put-pool", MAKES { return my.zeEventPoolPutIpcHandle(my.context, my.own.handle); }},
    {"open-pool", MAKES { return my.zeEventPoolOpenIpcHandle(my.context, my.own.handle, &my.own.pool); }},
    {"close-pool", MAKES { return my.zeEventPoolCloseIpcHandle(my.own.pool); }},
    {"destroy-pool", MAKES { return my.zeEventPoolDestroy(my.own.pool); }},

    // From here on, the functions for counter-based events are those of Intel's driver.
    {"extension", MAKES {
       my.find("zexCounterBasedEventCreate2", my.zeEventCounterBasedCreate);
       my.find("zexCounterBasedEventGetIpcHandle", my.zeEventCounterBasedGetIpcHandle);
       my.find("zexCounterBasedEventOpenIpcHandle", my.zeEventCounterBasedOpenIpcHandle);
       my.find("zexCounterBasedEventCloseIpcHandle", my.zeEventCounterBasedCloseIpcHandle);
       return 0;
     }},
    {"event", MAKES { return my.make_event(IMMEDIATE | HOST_VISIBLE | IPC); }},
    {"unshared-event", MAKES { return my.make_event(IMMEDIATE | HOST_VISIBLE); }},
    {"get-event", MAKES { return my.zeEventCounterBasedGetIpcHandle(my.own.event, &my.own.handle); }},
    {"open-event", MAKES { return my.zeEventCounterBasedOpenIpcHandle(my.context, my.own.handle, &my.own.event); }},
    {"close-event", MAKES { return my.zeEventCounterBasedCloseIpcHandle(my.own.event); }},
    {"destroy-event", MAKES { return my.zeEventDestroy(my.own.event); }},
    {"signal", MAKES { return my.zeEventHostSignal(my.own.event); }},
    {"signal-by-command", MAKES {
       const ze_handle_t list = my.immediate_list();
       Ze::check(my.zeCommandListAppendSignalEvent(list, my.own.event), "zeCommandListAppendSignalEvent");
       Ze::check(my.zeEventHostSynchronize(my.own.event, UINT64_MAX), "zeEventHostSynchronize");
       return my.zeCommandListDestroy(list);
     }},
    {"wait", MAKES { return my.zeEventHostSynchronize(my.own.event, UINT64_MAX); }},
    {"signal-later", MAKES {
       static char from = 1, to = 0;
       my.gate = my.Ze::event(my.pool(POOL_HOST_VISIBLE));
       return my.zeCommandListAppendMemoryCopy(my.immediate_list(), &to, &from, 1, my.own.event, 1, &my.gate);
     }},
    {"open-gate", MAKES { return my.zeEventHostSignal(my.gate); }},
    {"start-wait", MAKES {
       return my.waiting.emplace([&my] { my.zeEventHostSynchronize(my.own.event, UINT64_MAX); }), 0;
     }},
    {"end-wait", MAKES { return my.waiting->thread.join(), 0; }},
    {"leave", MAKES {
       print("producer is done");
       _exit(0);
     }},
    {"give-up", MAKES {
       char byte;
       require(recv(my.other->socket, &byte, 1, 0) == 0, "the producer goes on");
       _exit(0);
     }},
};

void Side::make(std::string step) {
  const size_t star = step.find('*');
  const int times = star == std::string::npos ? 1 : std::stoi(step);
  step.erase(0, star + 1);
  const bool may_be_refused = step.back() == '?';
  if (may_be_refused) step.pop_back();
  for (int time = 0; time < times; ++time) {
    const uint32_t result = operations.at(step)(*this);
    if (!may_be_refused) check(result, step);
  }
}

void play(const char *steps, Peer &other, bool is_producer) {
  Side me;
  me.other = &other;
  bool is_producers = true;
  std::istringstream words(steps);
  for (std::string step; words >> step;) {
    const bool is_mine = is_producer == is_producers;
    if (step == "|") {
      is_producers = !is_producers;
    } else if (step == ">" || step == "<") {
      if (is_mine) other.send(message(me.own.handle));
      else me.received = other.receive();
      is_producers = step == "<";
    } else if (is_mine) {
      me.make(step);
    }
  }
  if (is_producer) print("producer is done");
}

} // namespace

int main(int argc, char **argv) {
  for (const auto &[name, steps] : cases) {
    const auto side = [=](bool is_producer) { return [=](Peer &other) { play(steps, other, is_producer); }; };
    modes().emplace_back(name, side(true), side(false));
  }
  return run_modes(argc, argv);
}
