// Level Zero, as a program or a communication library uses it without SYCL: found by name at run time.
//
// The declarations are those of ze_api.h 1.17, as far as the programs need them.
#pragma once

#include "peer.hpp"

#include <cstring>
#include <optional>

#include <dlfcn.h>
#include <sched.h>
#include <sys/syscall.h>

namespace app {

struct ze_ipc_mem_handle_t { char data[64]; };
struct ze_context_desc_t { uint32_t stype; const void *next; uint32_t flags; };
struct ze_device_mem_alloc_desc_t { uint32_t stype; const void *next; uint32_t flags; uint32_t ordinal; };
struct ze_memory_allocation_properties_t { uint32_t stype; void *next; uint32_t type; uint64_t id; uint64_t page_size; };
struct ze_event_pool_desc_t { uint32_t stype; const void *next; uint32_t flags; uint32_t count; };
struct ze_event_desc_t { uint32_t stype; const void *next; uint32_t index; uint32_t signal; uint32_t wait; };
struct ze_command_queue_desc_t {
  uint32_t stype;
  const void *next;
  uint32_t ordinal;
  uint32_t index;
  uint32_t flags;
  uint32_t mode;
  uint32_t priority;
};
struct ze_command_list_desc_t { uint32_t stype; const void *next; uint32_t ordinal; uint32_t flags; };
struct ze_fence_desc_t { uint32_t stype; const void *next; uint32_t flags; };
struct ze_module_desc_t {
  uint32_t stype;
  const void *next;
  uint32_t format;
  size_t size;
  const void *input;
  const char *flags;
  const void *constants;
};
struct ze_copy_region_t { uint32_t x, y, z, width, height, depth; };
// The two of counter-based events: the function of Intel's driver takes another type, and the same fields.
struct ze_event_counter_based_desc_t { uint32_t stype; const void *next; uint32_t flags; uint32_t signal; uint32_t wait; };
struct ze_physical_mem_desc_t { uint32_t stype; const void *next; uint32_t flags; size_t size; };
struct ze_physical_mem_properties_t { uint32_t stype; void *next; uint64_t id; uint64_t size; };
// ze_external_memory_export_desc_t (0x18, without the descriptor), ..._import_fd_t (0x19) and ..._export_fd_t (0x1a).
struct ze_external_memory_t { uint32_t stype; void *next; uint32_t flags; int descriptor; };
using ze_handle_t = struct ze_object *;

// ze_external_memory_type_flag_t: a dma-buf.
inline constexpr uint32_t DMA_BUF = 2;

// Each function with its C signature.
#define ZE_FUNCTIONS(F)                                                                                                                   \
  F(zeInit, (uint32_t)) F(zeDriverGet, (uint32_t *, ze_handle_t *))                                                                       \
  F(zeDriverGetExtensionFunctionAddress, (ze_handle_t, const char *, void **)) F(zeDeviceGet, (ze_handle_t, uint32_t *, ze_handle_t *))   \
  F(zeContextCreate, (ze_handle_t, const ze_context_desc_t *, ze_handle_t *)) F(zeContextDestroy, (ze_handle_t))                          \
  F(zeMemAllocDevice, (ze_handle_t, const ze_device_mem_alloc_desc_t *, size_t, size_t, ze_handle_t, void **))                            \
  F(zeMemFree, (ze_handle_t, void *)) F(zeMemGetIpcHandleFromFileDescriptorExp, (ze_handle_t, uint64_t, ze_ipc_mem_handle_t *))           \
  F(zeMemGetFileDescriptorFromIpcHandleExp, (ze_handle_t, ze_ipc_mem_handle_t, uint64_t *))                                               \
  F(zePhysicalMemCreate, (ze_handle_t, ze_handle_t, ze_physical_mem_desc_t *, ze_handle_t *))                                             \
  F(zePhysicalMemGetProperties, (ze_handle_t, ze_handle_t, ze_physical_mem_properties_t *))                                               \
  F(zePhysicalMemDestroy, (ze_handle_t, ze_handle_t)) F(zeVirtualMemReserve, (ze_handle_t, const void *, size_t, void **))                \
  F(zeVirtualMemMap, (ze_handle_t, const void *, size_t, ze_handle_t, size_t, uint32_t))                                                  \
  F(zeVirtualMemUnmap, (ze_handle_t, const void *, size_t)) F(zeVirtualMemFree, (ze_handle_t, const void *, size_t))                      \
  F(zeEventCounterBasedCreate, (ze_handle_t, ze_handle_t, const ze_event_counter_based_desc_t *, ze_handle_t *))                          \
  F(zeEventCounterBasedGetIpcHandle, (ze_handle_t, ze_ipc_mem_handle_t *))                                                                \
  F(zeEventCounterBasedOpenIpcHandle, (ze_handle_t, ze_ipc_mem_handle_t, ze_handle_t *))                                                  \
  F(zeEventCounterBasedCloseIpcHandle, (ze_handle_t)) F(zeCommandListAppendSignalEvent, (ze_handle_t, ze_handle_t))                       \
  F(zeMemGetAllocProperties, (ze_handle_t, const void *, ze_memory_allocation_properties_t *, ze_handle_t *))                             \
  F(zeMemGetIpcHandle, (ze_handle_t, const void *, ze_ipc_mem_handle_t *)) F(zeMemPutIpcHandle, (ze_handle_t, ze_ipc_mem_handle_t))       \
  F(zeMemOpenIpcHandle, (ze_handle_t, ze_handle_t, ze_ipc_mem_handle_t, uint32_t, void **))                                               \
  F(zeMemCloseIpcHandle, (ze_handle_t, const void *))                                                                                     \
  F(zeEventPoolCreate, (ze_handle_t, const ze_event_pool_desc_t *, uint32_t, ze_handle_t *, ze_handle_t *))                               \
  F(zeEventPoolDestroy, (ze_handle_t)) F(zeEventPoolGetIpcHandle, (ze_handle_t, ze_ipc_mem_handle_t *))                                   \
  F(zeEventPoolOpenIpcHandle, (ze_handle_t, ze_ipc_mem_handle_t, ze_handle_t *))                                                          \
  F(zeEventPoolPutIpcHandle, (ze_handle_t, ze_ipc_mem_handle_t)) F(zeEventPoolCloseIpcHandle, (ze_handle_t))                              \
  F(zeEventCreate, (ze_handle_t, const ze_event_desc_t *, ze_handle_t *)) F(zeEventDestroy, (ze_handle_t))                                \
  F(zeEventHostSignal, (ze_handle_t)) F(zeEventHostReset, (ze_handle_t)) F(zeEventHostSynchronize, (ze_handle_t, uint64_t))               \
  F(zeCommandListCreateImmediate, (ze_handle_t, ze_handle_t, const ze_command_queue_desc_t *, ze_handle_t *))                             \
  F(zeCommandListAppendMemoryCopy, (ze_handle_t, void *, const void *, size_t, ze_handle_t, uint32_t, ze_handle_t *))                     \
  F(zeCommandListAppendMemoryCopyRegion,                                                                                                  \
    (ze_handle_t, void *, const ze_copy_region_t *, uint32_t, uint32_t, const void *, const ze_copy_region_t *, uint32_t, uint32_t,       \
     ze_handle_t, uint32_t, ze_handle_t *))                                                                                               \
  F(zeCommandListCreate, (ze_handle_t, ze_handle_t, const ze_command_list_desc_t *, ze_handle_t *))                                       \
  F(zeCommandListClose, (ze_handle_t)) F(zeCommandListReset, (ze_handle_t))                                                               \
  F(zeCommandQueueCreate, (ze_handle_t, ze_handle_t, const ze_command_queue_desc_t *, ze_handle_t *))                                     \
  F(zeCommandQueueExecuteCommandLists, (ze_handle_t, uint32_t, ze_handle_t *, ze_handle_t))                                               \
  F(zeEventQueryStatus, (ze_handle_t)) F(zeFenceCreate, (ze_handle_t, const ze_fence_desc_t *, ze_handle_t *))                            \
  F(zeFenceHostSynchronize, (ze_handle_t, uint64_t)) F(zeCommandListHostSynchronize, (ze_handle_t, uint64_t))                             \
  F(zeCommandListAppendBarrier, (ze_handle_t, ze_handle_t, uint32_t, ze_handle_t *))                                                      \
  F(zeCommandListAppendWaitOnEvents, (ze_handle_t, uint32_t, ze_handle_t *)) F(zeCommandListAppendEventReset, (ze_handle_t, ze_handle_t)) \
  F(zeCommandListAppendMemoryFill,                                                                                                        \
    (ze_handle_t, void *, const void *, size_t, size_t, ze_handle_t, uint32_t, ze_handle_t *))                                            \
  F(zeCommandQueueSynchronize, (ze_handle_t, uint64_t)) F(zeCommandQueueDestroy, (ze_handle_t)) F(zeCommandListDestroy, (ze_handle_t))

// One context of the first device: its own, unless it is given one.
class Ze {
public:
#define ZE_MEMBER(name, parameters) uint32_t(*name) parameters = nullptr;
  ZE_FUNCTIONS(ZE_MEMBER)
#undef ZE_MEMBER

  explicit Ze(ze_handle_t given = nullptr) : context(given) {
    void *loader = dlopen("libze_loader.so.1", RTLD_LAZY | RTLD_GLOBAL);
    require(loader != nullptr, "there is no libze_loader.so.1");
#define ZE_FIND(name, parameters)                                                                                      \
  name = reinterpret_cast<uint32_t(*) parameters>(dlsym(loader, #name));                                               \
  require(name != nullptr || is_newer(#name), "the loader has no " #name);
    ZE_FUNCTIONS(ZE_FIND)
#undef ZE_FIND
    uint32_t one = 1;
    check(zeInit(0), "zeInit");
    check(zeDriverGet(&one, &driver), "zeDriverGet");
    one = 1;
    check(zeDeviceGet(driver, &one, &device), "zeDeviceGet");
    const ze_context_desc_t desc = {0xd, nullptr, 0};
    if (context == nullptr) check(zeContextCreate(driver, &desc, &context), "zeContextCreate");
  }

  // A pool of one event, and the event in a pool.
  ze_handle_t pool(uint32_t flags) const {
    const ze_event_pool_desc_t desc = {0x10, nullptr, flags, 1};
    ze_handle_t made = nullptr;
    check(zeEventPoolCreate(context, &desc, 0, nullptr, &made), "zeEventPoolCreate");
    return made;
  }
  ze_handle_t event(ze_handle_t pool) const {
    const ze_event_desc_t desc = {0x11, nullptr, 0, 4, 4};
    ze_handle_t made = nullptr;
    check(zeEventCreate(pool, &desc, &made), "zeEventCreate");
    return made;
  }

  // Functions that an old loader has not got.
  static bool is_newer(const std::string &name) {
    const bool is_put = name.find("PutIpcHandle") != std::string::npos;
    return is_put || name == "zePhysicalMemGetProperties" || name.find("CounterBased") != std::string::npos ||
           name.find("FileDescriptor") != std::string::npos || name == "zeCommandListHostSynchronize";
  }

  static void check(uint32_t result, const std::string &what) { require(result == 0, what + " returned " + std::to_string(result)); }

  // An immediate list. Only a synchronous one (mode 1, otherwise 2) waits for its commands, and only with the flag 2 are they in order.
  ze_handle_t immediate_list(uint32_t mode = 2, uint32_t flags = 0) const {
    const ze_command_queue_desc_t desc = {0xe, nullptr, 0, 0, flags, mode, 0};
    ze_handle_t list = nullptr;
    check(zeCommandListCreateImmediate(context, device, &desc, &list), "zeCommandListCreateImmediate");
    return list;
  }

  // Waits for all commands of an immediate list: by an event where the loader is older than the function.
  void wait_for(ze_handle_t list) const {
    if (zeCommandListHostSynchronize) return check(zeCommandListHostSynchronize(list, UINT64_MAX), "zeCommandListHostSynchronize");
    const ze_handle_t done = event(pool(1));
    check(zeCommandListAppendBarrier(list, done, 0, nullptr), "zeCommandListAppendBarrier");
    check(zeEventHostSynchronize(done, UINT64_MAX), "zeEventHostSynchronize");
  }

  void *allocate(size_t size, const ze_external_memory_t *extension = nullptr) const {
    const ze_device_mem_alloc_desc_t desc = {0x15, extension, 0, 0};
    void *memory = nullptr;
    check(zeMemAllocDevice(context, &desc, size, 64, device, &memory), "zeMemAllocDevice");
    return memory;
  }
  void free(void *memory) const { check(zeMemFree(context, memory), "zeMemFree"); }
  // Which allocation it is: the same number never comes twice, the same address does.
  uint64_t id(const void *memory) const {
    ze_memory_allocation_properties_t properties = {0x17, nullptr, 0, 0, 0};
    check(zeMemGetAllocProperties(context, memory, &properties, nullptr), "zeMemGetAllocProperties");
    return properties.id;
  }
  // A descriptor that the properties of memory export. It belongs to the driver.
  int exported(const void *memory) const {
    ze_external_memory_t asked = {0x1a, nullptr, DMA_BUF, -1};
    ze_memory_allocation_properties_t properties = {0x17, &asked, 0, 0, 0};
    check(zeMemGetAllocProperties(context, memory, &properties, nullptr), "zeMemGetAllocProperties");
    return asked.descriptor;
  }
  // The handle of a descriptor.
  ze_ipc_mem_handle_t handle_of(int descriptor) const {
    ze_ipc_mem_handle_t handle = {};
    check(zeMemGetIpcHandleFromFileDescriptorExp(context, static_cast<uint64_t>(descriptor), &handle), "a handle of a descriptor");
    return handle;
  }
  // The address of a function that only the driver has.
  template <typename Function> void find(const char *name, Function &function) const {
    void *address = nullptr;
    check(zeDriverGetExtensionFunctionAddress(driver, name, &address), name);
    function = reinterpret_cast<Function>(address);
  }
  ze_ipc_mem_handle_t get(const void *memory) const {
    ze_ipc_mem_handle_t handle = {};
    check(zeMemGetIpcHandle(context, memory, &handle), "zeMemGetIpcHandle");
    return handle;
  }
  // Puts a handle; nothing where the loader is older than the function.
  uint32_t put(const ze_ipc_mem_handle_t &handle) const {
    return zeMemPutIpcHandle ? zeMemPutIpcHandle(context, handle) : 0;
  }
  uint32_t try_open(const ze_ipc_mem_handle_t &handle, void **memory) const {
    return zeMemOpenIpcHandle(context, device, handle, 0, memory);
  }
  void *open(const ze_ipc_mem_handle_t &handle) const {
    void *memory = nullptr;
    check(try_open(handle, &memory), "zeMemOpenIpcHandle");
    return memory;
  }
  void close(void *memory) const { check(zeMemCloseIpcHandle(context, memory), "zeMemCloseIpcHandle"); }

  ze_handle_t driver = nullptr, device = nullptr, context;
};

// A queue and a list that it executes. A queue of mode 1 is synchronous, one of mode 2 is not.
struct ListInQueue {
  explicit ListInQueue(const Ze &ze, uint32_t mode = 2) : ze(ze) {
    const ze_command_queue_desc_t desc = {0xe, nullptr, 0, 0, 0, mode, 0};
    const ze_command_list_desc_t list_desc = {0xf, nullptr, 0, 0};
    Ze::check(ze.zeCommandQueueCreate(ze.context, ze.device, &desc, &queue), "zeCommandQueueCreate");
    Ze::check(ze.zeCommandListCreate(ze.context, ze.device, &list_desc, &list), "zeCommandListCreate");
  }
  void close() const { Ze::check(ze.zeCommandListClose(list), "zeCommandListClose"); }
  void reset() const { Ze::check(ze.zeCommandListReset(list), "zeCommandListReset"); }
  void execute(ze_handle_t fence = nullptr) {
    Ze::check(ze.zeCommandQueueExecuteCommandLists(queue, 1, &list, fence), "zeCommandQueueExecuteCommandLists");
  }
  void wait() const { Ze::check(ze.zeCommandQueueSynchronize(queue, UINT64_MAX), "zeCommandQueueSynchronize"); }

  const Ze &ze;
  ze_handle_t queue = nullptr, list = nullptr;
};

// How a copy is given to the device: as one, as a copy of rows, or in a closed list that is executed for the second time.
enum class By { copy, rows, closed_list };

// A copy that has completed when the call returns: on a synchronous list, or in a list on a synchronous queue.
inline void copy_at_once(const Ze &ze, void *to, const void *from, size_t size, bool in_queue) {
  std::optional<ListInQueue> queued;
  if (in_queue) queued.emplace(ze, 1);
  const ze_handle_t list = queued ? queued->list : ze.immediate_list(1);
  Ze::check(ze.zeCommandListAppendMemoryCopy(list, to, from, size, nullptr, 0, nullptr), "zeCommandListAppendMemoryCopy");
  if (queued) queued->close(), queued->execute();
}

// A copy that does not begin before the host lets it.
class HeldCopy {
public:
  HeldCopy(const Ze &ze, void *to, const void *from, size_t size, By by = By::copy) : ze(ze) {
    if (by == By::closed_list) queued.emplace(ze);
    list = queued ? queued->list : ze.immediate_list();
    if (by == By::rows) {
      const uint32_t row = 256;
      const ze_copy_region_t region = {0, 0, 0, row, static_cast<uint32_t>(size / row), 1};
      Ze::check(ze.zeCommandListAppendMemoryCopyRegion(list, to, &region, row, 0, from, &region, row, 0, done, 1, &gate),
                "zeCommandListAppendMemoryCopyRegion");
    } else {
      Ze::check(ze.zeCommandListAppendMemoryCopy(list, to, from, size, done, 1, &gate), "zeCommandListAppendMemoryCopy");
    }
    if (!queued) return;
    queued->close();
    let_go();
    queued->execute();
    queued->wait();
    for (ze_handle_t event : {gate, done}) Ze::check(ze.zeEventHostReset(event), "zeEventHostReset");
    queued->execute();
  }
  void let_go() const { Ze::check(ze.zeEventHostSignal(gate), "zeEventHostSignal"); }
  void wait() const { Ze::check(ze.zeEventHostSynchronize(done, UINT64_MAX), "zeEventHostSynchronize"); }
  // Waits in a way that no tool can see: for the bytes of another copy behind it.
  void poll() const {
    static char from = 1, to = 0;
    Ze::check(ze.zeCommandListAppendMemoryCopy(list, &to, &from, 1, nullptr, 1, const_cast<ze_handle_t *>(&done)),
              "zeCommandListAppendMemoryCopy");
    while (__atomic_load_n(&to, __ATOMIC_ACQUIRE) == 0) sched_yield();
  }
  ~HeldCopy() {
    ze.zeCommandListDestroy(list);
    if (queued) ze.zeCommandQueueDestroy(queued->queue);
    for (ze_handle_t event : {gate, done}) ze.zeEventDestroy(event);
    for (ze_handle_t pool : {gates, dones}) ze.zeEventPoolDestroy(pool);
  }

private:
  const Ze &ze;
  ze_handle_t gates = ze.pool(1), dones = ze.pool(1);
  ze_handle_t gate = ze.event(gates), done = ze.event(dones);
  std::optional<ListInQueue> queued;
  ze_handle_t list = nullptr;
};

// The functions of Intel's driver for memory of several tiles (zex_memory.h), which MPICH prefers. A driver has them by name only.
struct Zex {
  using Get = uint32_t (*)(ze_handle_t, const void *, uint32_t *, ze_ipc_mem_handle_t *);
  using Open = uint32_t (*)(ze_handle_t, ze_handle_t, uint32_t, ze_ipc_mem_handle_t *, uint32_t, void **);

  explicit Zex(const Ze &ze) {
    ze.find("zexMemGetIpcHandles", get);
    ze.find("zexMemOpenIpcHandles", open);
  }

  Get get = nullptr;
  Open open = nullptr;
};

// The descriptor in a handle.
inline int descriptor(const ze_ipc_mem_handle_t &handle) {
  int number = -1;
  std::memcpy(&number, handle.data, sizeof number);
  return number;
}

// The handle of another process, with a descriptor of this one in place of that one's.
inline ze_ipc_mem_handle_t fetched(pid_t pid, ze_ipc_mem_handle_t handle) {
  const int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  require(process >= 0, "cannot open the other process");
  const int here = static_cast<int>(syscall(SYS_pidfd_getfd, process, descriptor(handle), 0));
  require(here >= 0, "cannot fetch a descriptor of the other process");
  ::close(process);
  std::memcpy(handle.data, &here, sizeof here);
  return handle;
}

// A handle as a message, with the process that it comes from.
inline Bytes message(const ze_ipc_mem_handle_t &handle) {
  Bytes bytes(sizeof handle + sizeof(pid_t));
  const pid_t pid = getpid();
  std::memcpy(bytes.data(), &handle, sizeof handle);
  std::memcpy(bytes.data() + sizeof handle, &pid, sizeof pid);
  return bytes;
}

// The handle of a message, fetched.
inline ze_ipc_mem_handle_t fetched(const Bytes &message) {
  ze_ipc_mem_handle_t handle = {};
  pid_t pid = 0;
  require(message.size() == sizeof handle + sizeof pid, "no handle came");
  std::memcpy(&handle, message.data(), sizeof handle);
  std::memcpy(&pid, message.data() + sizeof handle, sizeof pid);
  return fetched(pid, handle);
}

// The first byte of shared memory, and all others.
constexpr char shared_byte = 42;
inline void require_shared(const void *memory, size_t size) {
  require(static_cast<const char *>(memory)[size - 1] == shared_byte, "the memory holds something else");
}

} // namespace app
