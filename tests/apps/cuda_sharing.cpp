// Two processes share memory and events through the CUDA driver, as libraries do. The argument names a case; "list" prints the names.
//
// The steps of a case are those of both processes, in their order. The producer begins. ">" gives the turn to the consumer, with the
// producer's handles and its descriptor, and "<" gives it back. A step with "?" may be refused, and one with "32*" is made so many times.
// Who waits for the other's end has started it.
#include "cuda_driver.hpp"
#include "peer.hpp"

#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sstream>
#include <sys/syscall.h>
#include <thread>

using namespace app;

namespace {

// What a GPU of today maps at once.
constexpr size_t SIZE = 2 << 20;
// The length of a row.
constexpr size_t PITCH = 4096;

// What most cases of a kind begin with.
#define OPENED "alloc get > take open read "
#define IMPORTED "create map fill export > take import map read "
#define POOL "create-pool alloc-in-pool fill export-pool export-pointer > take import-pool import-pointer read "

const std::pair<const char *, const char *> cases[] = {
    {"memory-right", OPENED "close < free"},
    {"memory-of-second-context", "other-context alloc get > take open read close < free"},
    {"memory-by-inner-address", "alloc get get-inner > take open read close < free"},
    {"memory-opened-twice", "alloc get > take open open read close read close < free"},
    {"memory-opened-again", OPENED "close open read close < free"},
    {"memory-with-pitch", "alloc-pitch get > take open read close < free"},
    {"memory-copied", "alloc get > take open copy synchronise check-copy close < free"},
    {"memory-copied-in-rows", OPENED "copy-rows synchronise check-rows close < free"},
    {"memory-copied-in-planes", OPENED "copy-planes synchronise check-planes close < free"},
    {"memory-set-in-rows", OPENED "set-rows close < check-set-rows free"},
    {"memory-written", OPENED "set close < read-set free"},
    {"memory-managed", "alloc-managed get? free"},
    {"memory-used-again", OPENED "close < free alloc get > take open read close < free"},
    {"memory-consumer-ends-first", OPENED "close < await-end free"},
    {"memory-goes-with-context", OPENED "release-context < free"},
    {"memory-goes-with-reset", OPENED "reset-context < free"},

    {"event-right", "event get-event record > take open-event wait destroy-event < destroy-event"},
    {"event-before-copy", "event get-event alloc get set-later record > take open open-event wait-in-stream copy synchronise "
                          "check-set close destroy-event < free destroy-event"},
    {"event-recorded-by-consumer", "event get-event > take open-event record < wait > destroy-event < destroy-event"},
    {"event-not-shared", "plain-event get-event? destroy-event"},

    {"physical-right", IMPORTED "unmap release close-descriptor < unmap release close-descriptor"},
    {"physical-fetched", "create map fill export > fetch import map read unmap release close-descriptor < unmap release close-descriptor"},
    {"physical-released-first", "create map fill export unmap release > take import map read unmap release close-descriptor < close-descriptor"},
    {"physical-released-while-mapped", "create map fill export > take import map release read unmap close-descriptor < unmap release "
                                       "close-descriptor"},
    {"physical-retained", IMPORTED "retain release unmap release close-descriptor < unmap release close-descriptor"},
    {"descriptor-closed-at-once", "create map fill export > take import < close-descriptor unmap release > map read unmap release close-descriptor"},
    {"descriptor-kept-with-memory", IMPORTED "unmap release close-descriptor < unmap"},
    {"descriptor-kept-while-mapped", IMPORTED "unmap release close-descriptor < release"},
    {"descriptor-number-used-again", IMPORTED "unmap release close-descriptor < replace-descriptor unmap release"},

    {"pool-right", POOL "free-in-order close-descriptor < free-in-order synchronise destroy-pool close-descriptor"},
    {"pool-default", "alloc-in-order read get? free-in-order synchronise"},

    // One mistake each.
    {"stale-handle", "alloc get > take < free alloc get > open read-other close < free"},
    {"stale-handle-refused", "alloc get > take < free alloc > open? < free"},
    {"freed-while-open", OPENED "< free > read close"},
    {"mapping-leaked", "alloc get get > take open read < await-end free"},
    {"mappings-leaked", "alloc get > take open read < alloc get > take open read < alloc get > take open read < await-end"},
    {"closed-twice", OPENED "close close? < free"},
    {"closed-inside", OPENED "close-inner? close < free"},
    {"closed-by-free", OPENED "free? close < free"},
    {"used-after-close", OPENED "close read? < free"},
    {"used-after-close-in-rows", OPENED "close copy-rows? < free"},
    {"used-after-close-in-planes", OPENED "close copy-planes? < free"},
    {"set-after-close-in-rows", OPENED "close set-rows? < free"},
    {"used-after-free", OPENED "close < free fill?"},
    {"used-after-reset", OPENED "reset-context retain-context read? < free"},
    {"used-after-last-release", OPENED "retain-context release-context read release-context retain-context read? < free"},
    {"reset-while-open", OPENED "< reset-context > read close"},
    {"opened-by-producer", "alloc get open? free"},
    {"opened-after-free", "alloc get > take < free > open?"},
    {"opened-after-end", "alloc get > take < > await-end open?"},
    {"producer-ends-first", OPENED "< > await-end read close"},
    {"producer-ends-first-and-opened-again", OPENED "< > await-end read close open?"},
    {"got-after-free", "alloc free get?"},
    {"got-of-mapping", OPENED "get? close < free"},
    {"damaged-handle", "alloc get > take damage open? < free"},
    {"event-destroyed-while-open", "event get-event record > take open-event < destroy-event > wait destroy-event"},
    {"event-left-open", "event get-event record > take open-event wait < await-end destroy-event"},
    {"released-twice", IMPORTED "unmap release release? close-descriptor < unmap release close-descriptor"},
    {"used-after-unmap", IMPORTED "unmap read? release close-descriptor < unmap release close-descriptor"},
    {"physical-leaked", IMPORTED "close-descriptor < unmap release close-descriptor"},
    {"descriptors-leaked", "create map fill export > take 160*import-copy < unmap release close-descriptor"},
    {"descriptor-leaked", IMPORTED "unmap release close-descriptor < unmap release"},
    {"descriptors-never-closed", "create map fill 160*export-again unmap release"},
    {"pool-freed-first", POOL "< free-in-order synchronise > free-in-order synchronise close-descriptor < destroy-pool close-descriptor"},
    {"pool-destroyed-first", POOL "< free-in-order synchronise destroy-pool close-descriptor > read? free-in-order? synchronise close-descriptor"},
    {"pool-imported-twice", POOL "import-pointer free-in-order synchronise read? close-descriptor < free-in-order synchronise destroy-pool "
                                 "close-descriptor"},
    {"pool-freed-twice", POOL "import-pointer free-in-order synchronise free-in-order? close-descriptor < free-in-order synchronise "
                              "destroy-pool close-descriptor"},
    {"pool-used-after-free", "create-pool alloc-in-pool fill export-pool export-pointer free-in-order synchronise read? destroy-pool close-descriptor"},
    {"pool-imported-after-free", "create-pool alloc-in-pool fill export-pool export-pointer free-in-order synchronise > take import-pool "
                                 "import-pointer? free-in-order? close-descriptor < destroy-pool close-descriptor"},
    {"physical-still-mapped", IMPORTED "release close-descriptor < unmap release close-descriptor"},
    {"got-without-context", "alloc get-in-thread? free"},
    {"sent-without-get", "alloc get-in-thread? > take open? < free"},
    {"unmapped-while-copied", IMPORTED "buffer hold copy-on-device unmap let-go synchronise? release? close-descriptor < unmap release "
                                    "close-descriptor"},
    {"physical-sent-anew", IMPORTED "unmap release close-descriptor < sleep close-descriptor create map-again fill export > take import map read "
                                    "unmap release close-descriptor < unmap release close-descriptor"},
    {"physical-replaced", IMPORTED "< sleep create map-again fill > read unmap release close-descriptor < unmap release close-descriptor"},
    {"acknowledged-early", OPENED "buffer copy-on-device < set > synchronise close < free"},
    {"acknowledged-late", OPENED "buffer copy-on-device synchronise < set synchronise > close < free"},
    {"told-before-wait", OPENED "buffer < set-later > copy-on-device synchronise < synchronise > close < free"},
    {"told-after-wait", OPENED "buffer < set-later synchronise > copy-on-device synchronise close < free"},
    {"waited-for-stream", OPENED "buffer < set-later synchronise-stream > copy-on-device synchronise close < free"},
    {"waited-for-default-stream", OPENED "buffer < set-later synchronise-default > copy-on-device synchronise < synchronise > close < free"},
    {"waited-for-event", OPENED "buffer < plain-event set-later record wait > copy-on-device synchronise close < destroy-event free"},
    {"waited-for-earlier-event", OPENED "buffer < plain-event record set-later wait > copy-on-device synchronise < synchronise destroy-event > "
                                        "close < free"},
};

// What the producer gives to the consumer.
struct Message {
  CUipcMemHandle memory;
  CUipcEventHandle event;
  CUmemPoolPtrExportData pointer;
  unsigned generation;
  int pid, descriptor, number;
};

unsigned word(unsigned generation, size_t at) { return generation << 24 | static_cast<unsigned>(at); }

struct Side {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0, buffer = 0;
  CUevent event = nullptr;
  CUmemGenericAllocationHandle physical = 0;
  CUmemoryPool pool = nullptr;
  Message own = {}, received = {};
  Peer *other = nullptr;
  std::vector<unsigned> copied = std::vector<unsigned>(SIZE / 4);
  // While it is closed, the stream does not go on.
  std::atomic<bool> gate{true};

  Side();
  CUresult fill();
  CUresult read_at_once() { return cuMemcpyDtoH(copied.data(), memory, SIZE); }
  CUresult allocate_with(CUresult result) { return ++own.generation, result ? result : fill(); }
  void require_copied(unsigned generation) const {
    for (size_t at = 0; at < copied.size(); ++at) require(copied[at] == word(generation, at), "the data are wrong");
  }
  void require_set() const {
    for (const unsigned found : copied) require(found == 0x5e7, "the data are not those that were set");
  }
  void make(std::string step);
};

const char *name_of(CUresult result) {
  const char *name = nullptr;
  return cuGetErrorName(result, &name) == CUDA_SUCCESS ? name : "an unknown error";
}

void check(CUresult result, const std::string &what) {
  require(result == CUDA_SUCCESS, what + " returned " + name_of(result));
}

Side::Side() {
  CUdevice device = 0;
  check(cuInit(0), "cuInit");
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

CUresult Side::fill() {
  std::vector<unsigned> words(SIZE / 4);
  for (size_t at = 0; at < words.size(); ++at) words[at] = word(own.generation, at);
  return cuMemcpyHtoD(memory, words.data(), SIZE);
}

CUmemAllocationProp properties() {
  CUmemAllocationProp made = {};
  made.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  made.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  made.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return made;
}

const CUmemAccessDesc read_and_write = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

CUresult import(Side &my, int descriptor) {
  return cuMemImportFromShareableHandle(&my.physical, reinterpret_cast<void *>(static_cast<intptr_t>(descriptor)),
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

CUresult export_to(int &descriptor, CUmemGenericAllocationHandle memory) {
  return cuMemExportToShareableHandle(&descriptor, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

#define MAKES []([[maybe_unused]] Side & my) -> CUresult

const std::map<std::string, CUresult (*)(Side &)> operations = {
    {"other-context", MAKES {
       check(cuCtxCreate(&my.context, nullptr, 0, 0), "cuCtxCreate");
       return cuStreamCreate(&my.stream, CU_STREAM_NON_BLOCKING);
     }},
    {"retain-context", MAKES {
       check(cuDevicePrimaryCtxRetain(&my.context, 0), "cuDevicePrimaryCtxRetain");
       return cuCtxSetCurrent(my.context);
     }},
    {"release-context", MAKES { return cuDevicePrimaryCtxRelease(0); }},
    {"reset-context", MAKES { return cuDevicePrimaryCtxReset(0); }},
    // The handles are those that came.
    {"take", MAKES { return my.own = my.received, CUDA_SUCCESS; }},
    // As PyTorch does: by the number of the descriptor, and its process.
    {"fetch", MAKES {
       my.own = my.received;
       close(my.own.descriptor);
       const auto process = static_cast<int>(syscall(SYS_pidfd_open, my.own.pid, 0));
       my.own.descriptor = static_cast<int>(syscall(SYS_pidfd_getfd, process, my.own.number, 0));
       require(my.own.descriptor >= 0, "the descriptor cannot be fetched");
       return close(process), CUDA_SUCCESS;
     }},
    {"damage", MAKES { return std::memset(&my.own.memory, 0x5a, sizeof my.own.memory), CUDA_SUCCESS; }},

    {"alloc", MAKES { return my.allocate_with(cuMemAlloc(&my.memory, SIZE)); }},
    {"alloc-pitch", MAKES {
       size_t pitch = 0;
       return my.allocate_with(cuMemAllocPitch(&my.memory, &pitch, 4096, SIZE / 4096, 4));
     }},
    {"alloc-managed", MAKES { return my.allocate_with(cuMemAllocManaged(&my.memory, SIZE, CU_MEM_ATTACH_GLOBAL)); }},
    {"alloc-in-order", MAKES { return my.allocate_with(cuMemAllocAsync(&my.memory, SIZE, nullptr)); }},
    {"free", MAKES { return cuMemFree(my.memory); }},
    {"free-in-order", MAKES { return cuMemFreeAsync(my.memory, nullptr); }},
    {"fill", MAKES { return my.fill(); }},
    {"set", MAKES { return cuMemsetD32(my.memory, 0x5e7, SIZE / 4); }},
    {"hold", MAKES {
       my.gate = false;
       const auto pass = [](void *gate) {
         while (!*static_cast<std::atomic<bool> *>(gate)) std::this_thread::yield();
       };
       return cuLaunchHostFunc(my.stream, pass, &my.gate);
     }},
    {"let-go", MAKES { return my.gate = true, CUDA_SUCCESS; }},
    {"set-later", MAKES { return cuMemsetD32Async(my.memory, 0x5e7, SIZE / 4, my.stream); }},
    {"read", MAKES {
       const CUresult result = my.read_at_once();
       return result == CUDA_SUCCESS ? my.require_copied(my.own.generation), result : result;
     }},
    {"read-set", MAKES { return check(my.read_at_once(), "cuMemcpyDtoH"), my.require_set(), CUDA_SUCCESS; }},
    // Not what the handle was made of.
    {"read-other", MAKES {
       check(my.read_at_once(), "cuMemcpyDtoH");
       require(my.copied[1] != word(my.own.generation, 1), "the data are still there");
       return print("wrong bytes are read"), CUDA_SUCCESS;
     }},
    {"copy", MAKES { return cuMemcpyDtoHAsync(my.copied.data(), my.memory, SIZE, my.stream); }},
    {"buffer", MAKES { return cuMemAlloc(&my.buffer, SIZE); }},
    {"copy-on-device", MAKES { return cuMemcpyDtoDAsync(my.buffer, my.memory, SIZE, my.stream); }},
    // All rows but the first one, without their first 1 KiB.
    {"copy-rows", MAKES {
       std::fill(my.copied.begin(), my.copied.end(), 0);
       CUDA_MEMCPY2D copy = {};
       copy.from = {1024, 1, 2, nullptr, my.memory, nullptr, PITCH};
       copy.to = {1024, 1, 1, my.copied.data(), 0, nullptr, PITCH};
       copy.width = PITCH - 1024;
       copy.height = SIZE / PITCH - 1;
       return cuMemcpy2DAsync(&copy, my.stream);
     }},
    {"check-rows", MAKES {
       for (size_t at = 0; at < my.copied.size(); ++at) {
         const bool is_copied = at * 4 >= PITCH && at * 4 % PITCH >= 1024;
         require(my.copied[at] == (is_copied ? word(my.own.generation, at) : 0), "the data are wrong");
       }
       return CUDA_SUCCESS;
     }},
    // The second half of the second plane of two, from its second row on.
    {"copy-planes", MAKES {
       std::fill(my.copied.begin(), my.copied.end(), 0);
       const size_t rows = SIZE / PITCH / 2;
       CUDA_MEMCPY3D copy = {};
       copy.from = {PITCH / 2, 1, 1, 0, 2, nullptr, my.memory, nullptr, nullptr, PITCH, rows};
       copy.to = {PITCH / 2, 1, 1, 0, 1, my.copied.data(), 0, nullptr, nullptr, PITCH, rows};
       copy.width = PITCH / 2;
       copy.height = rows - 1;
       copy.depth = 1;
       return cuMemcpy3DAsync(&copy, my.stream);
     }},
    {"check-planes", MAKES {
       for (size_t at = 0; at < my.copied.size(); ++at) {
         const bool is_copied = at * 4 >= SIZE / 2 + PITCH && at * 4 % PITCH >= PITCH / 2;
         require(my.copied[at] == (is_copied ? word(my.own.generation, at) : 0), "the data are wrong");
       }
       return CUDA_SUCCESS;
     }},
    // The first half of each row.
    {"set-rows", MAKES { return cuMemsetD2D32(my.memory, PITCH, 0x5e7, PITCH / 8, SIZE / PITCH); }},
    {"check-set-rows", MAKES {
       check(my.read_at_once(), "cuMemcpyDtoH");
       for (size_t at = 0; at < my.copied.size(); ++at) {
         const unsigned expected = at * 4 % PITCH < PITCH / 2 ? 0x5e7 : word(my.own.generation, at);
         require(my.copied[at] == expected, "the data are not those that were set");
       }
       return CUDA_SUCCESS;
     }},
    {"check-copy", MAKES { return my.require_copied(my.own.generation), CUDA_SUCCESS; }},
    {"check-set", MAKES { return my.require_set(), CUDA_SUCCESS; }},
    {"synchronise", MAKES { return cuCtxSynchronize(); }},
    {"synchronise-stream", MAKES { return cuStreamSynchronize(my.stream); }},
    {"synchronise-default", MAKES { return cuStreamSynchronize(nullptr); }},

    {"get", MAKES { return cuIpcGetMemHandle(&my.own.memory, my.memory); }},
    {"get-in-thread", MAKES {
       CUresult result = CUDA_SUCCESS;
       std::thread([&] { result = cuIpcGetMemHandle(&my.own.memory, my.memory); }).join();
       return result;
     }},
    {"get-inner", MAKES {
       const CUipcMemHandle whole = my.own.memory;
       check(cuIpcGetMemHandle(&my.own.memory, my.memory + 4096), "cuIpcGetMemHandle");
       require(std::memcmp(&whole, &my.own.memory, sizeof whole) == 0, "another handle");
       return CUDA_SUCCESS;
     }},
    {"open", MAKES {
       const CUdeviceptr before = my.memory;
       const CUresult result = cuIpcOpenMemHandle(&my.memory, my.own.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
       if (result != CUDA_SUCCESS) my.memory = before;
       return result;
     }},
    {"close", MAKES { return cuIpcCloseMemHandle(my.memory); }},
    {"close-inner", MAKES { return cuIpcCloseMemHandle(my.memory + 4096); }},

    {"event", MAKES { return cuEventCreate(&my.event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS); }},
    {"plain-event", MAKES { return cuEventCreate(&my.event, CU_EVENT_DISABLE_TIMING); }},
    {"get-event", MAKES { return cuIpcGetEventHandle(&my.own.event, my.event); }},
    {"open-event", MAKES { return cuIpcOpenEventHandle(&my.event, my.own.event); }},
    {"record", MAKES { return cuEventRecord(my.event, my.stream); }},
    {"wait", MAKES {
       check(cuEventSynchronize(my.event), "cuEventSynchronize");
       return cuEventQuery(my.event);
     }},
    {"wait-in-stream", MAKES { return cuStreamWaitEvent(my.stream, my.event, 0); }},
    {"destroy-event", MAKES { return cuEventDestroy(my.event); }},

    {"create", MAKES {
       const CUmemAllocationProp wanted = properties();
       size_t unit = 0;
       check(cuMemGetAllocationGranularity(&unit, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "cuMemGetAllocationGranularity");
       require(SIZE % unit == 0, "the size is no multiple of " + std::to_string(unit));
       return ++my.own.generation, cuMemCreate(&my.physical, SIZE, &wanted, 0);
     }},
    {"map", MAKES {
       check(cuMemAddressReserve(&my.memory, SIZE, 0, 0, 0), "cuMemAddressReserve");
       check(cuMemMap(my.memory, SIZE, 0, my.physical, 0), "cuMemMap");
       return cuMemSetAccess(my.memory, SIZE, &read_and_write, 1);
     }},
    {"unmap", MAKES {
       check(cuMemUnmap(my.memory, SIZE), "cuMemUnmap");
       return cuMemAddressFree(my.memory, SIZE);
     }},
    // The memory is given back, and its address is kept for other memory.
    {"sleep", MAKES {
       check(cuMemUnmap(my.memory, SIZE), "cuMemUnmap");
       return cuMemRelease(my.physical);
     }},
    {"map-again", MAKES {
       check(cuMemMap(my.memory, SIZE, 0, my.physical, 0), "cuMemMap");
       return cuMemSetAccess(my.memory, SIZE, &read_and_write, 1);
     }},
    {"retain", MAKES { return cuMemRetainAllocationHandle(&my.physical, reinterpret_cast<void *>(my.memory)); }},
    {"release", MAKES { return cuMemRelease(my.physical); }},
    {"export", MAKES { return export_to(my.own.descriptor, my.physical); }},
    // As who exports anew for each worker. Some work comes between two.
    {"export-again", MAKES { return usleep(3000), export_to(my.own.descriptor, my.physical); }},
    {"import", MAKES { return import(my, my.own.descriptor); }},
    // As who fetches a descriptor for each tensor and closes none. Some work comes between two.
    {"import-copy", MAKES {
       usleep(3000);
       check(import(my, dup(my.own.descriptor)), "cuMemImportFromShareableHandle");
       return cuMemRelease(my.physical);
     }},
    {"close-descriptor", MAKES {
       const int result = close(my.own.descriptor);
       return my.own.descriptor = 0, result == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
     }},
    // Its number is that of another file.
    {"replace-descriptor", MAKES {
       const int other = open("/dev/null", O_RDONLY);
       require(dup2(other, my.own.descriptor) == my.own.descriptor, "the number is taken");
       return close(other), CUDA_SUCCESS;
     }},

    {"create-pool", MAKES {
       CUmemPoolProps wanted = {};
       wanted.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       wanted.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
       wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       return cuMemPoolCreate(&my.pool, &wanted);
     }},
    {"alloc-in-pool", MAKES {
       return ++my.own.generation, cuMemAllocFromPoolAsync(&my.memory, SIZE, my.pool, nullptr);
     }},
    {"export-pool", MAKES {
       return cuMemPoolExportToShareableHandle(&my.own.descriptor, my.pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
     }},
    {"export-pointer", MAKES { return cuMemPoolExportPointer(&my.own.pointer, my.memory); }},
    {"import-pool", MAKES {
       check(cuMemPoolImportFromShareableHandle(&my.pool, reinterpret_cast<void *>(static_cast<intptr_t>(my.own.descriptor)),
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
             "cuMemPoolImportFromShareableHandle");
       return cuMemPoolSetAccess(my.pool, &read_and_write, 1);
     }},
    {"import-pointer", MAKES { return cuMemPoolImportPointer(&my.memory, my.pool, &my.own.pointer); }},
    {"destroy-pool", MAKES { return cuMemPoolDestroy(my.pool); }},

    {"await-end", MAKES { return my.other->await_end(), CUDA_SUCCESS; }},
};

void Side::make(std::string step) {
  const size_t star = step.find('*');
  const int times = star == std::string::npos ? 1 : std::stoi(step);
  step.erase(0, star + 1);
  const bool may_be_refused = step.back() == '?';
  if (may_be_refused) step.pop_back();
  for (int time = 0; time < times; ++time) {
    const CUresult result = operations.at(step)(*this);
    if (may_be_refused) print(step + " -> " + name_of(result));
    else check(result, step);
  }
}

// A message, with its descriptor if the other one is to have it.
void send(const Peer &to, const Message &message, bool with_descriptor) {
  iovec bytes = {const_cast<Message *>(&message), sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header = {};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  if (with_descriptor) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr *first = CMSG_FIRSTHDR(&header);
    *first = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    std::memcpy(CMSG_DATA(first), &message.descriptor, sizeof(int));
  }
  require(sendmsg(to.socket, &header, MSG_NOSIGNAL) == sizeof message, "the other process takes no message");
}

Message receive(const Peer &from) {
  Message message = {};
  iovec bytes = {&message, sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header = {};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  require(recvmsg(from.socket, &header, 0) == sizeof message, "the other process went away before it sent its message");
  message.number = message.descriptor;
  if (const cmsghdr *first = CMSG_FIRSTHDR(&header)) std::memcpy(&message.descriptor, CMSG_DATA(first), sizeof(int));
  return message;
}

void play(const char *steps, Peer &other, bool is_producer) {
  Side me;
  me.other = &other;
  me.own.pid = getpid();
  bool is_producers = true;
  std::istringstream words(steps);
  for (std::string step; words >> step;) {
    const bool is_mine = is_producer == is_producers;
    if (step == ">" || step == "<") {
      if (is_mine) send(other, me.own, is_producer && me.own.descriptor > 0);
      else me.received = receive(other);
      is_producers = step == "<";
    } else if (is_mine) {
      me.make(step);
    }
  }
  print(is_producer ? "producer is done" : "consumer is done");
}

} // namespace

int main(int argc, char **argv) {
  const bool is_child = argc > 3 && std::string(argv[1]) == "child";
  const std::string chosen = argc > 1 ? argv[is_child ? 3 : 1] : "";
  for (const auto &[name, steps] : cases) {
    if (chosen == "list") print(name);
    if (chosen != name) continue;
    // The consumer waits for the producer's end only behind a turn of its own at the end.
    const std::string text = steps;
    const bool consumer_is_parent = text.find("> await-end") != std::string::npos;
    const auto role = [&, steps = steps](bool is_producer) {
      return [steps, is_producer](Peer &other) { play(steps, other, is_producer); };
    };
    return run(argc, argv, role(!consumer_is_parent), role(consumer_is_parent));
  }
  return chosen == "list" ? 0 : 2;
}
