// A small adapter, and a program that shares memory through it. It is compiled in several ways:
//
//   LIBRARY     the adapter as a library that exports its functions, and calls them through its PLT, as one does that was not built with
//               hidden symbols
//   LOADER      a program that opens this library, whose path is its first argument, as a loader of several adapters does
//   LINKED      a program that the adapter is linked into: it asks nobody for a table. With NAMESPACE, its functions are in a namespace of
//               C++, as those of adapters are that are linked into libsycl. With SHOWN, it shows its calls in XPTI's stream `ur.call`, as the
//               tracing layer of a loader does.
//   UNKNOWN=n   with one of the first two: the adapter has what urscope does not recognise, and must leave alone:
//               1  it implements a version of Unified Runtime that does not exist yet
//               2  its dispatch table is where no library has its data
//               3  its getters name other functions than its dispatch table has
//               4  the same functions are in two places of its dispatch table
//               5  as 1, and its dispatch table is longer, with other functions in front
//               6  its dispatch table is longer in the same way; nothing else is unknown, so it is traced
//               7  its table of IPC functions is longer, with one in front of those that were there
//               8  as 1, and one of its functions has another parameter
//
// The program gets a handle of its memory, opens and closes it, and puts the handle. With the last argument "twice" it puts it twice, with
// "throw" it first asks for a handle of nothing. It prints how often the adapter did something. Signatures and tables are those of the
// runtime's headers.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <stdbool.h>

#include <ur_api.h>
#include <ur_ddi.h>

#ifndef UNKNOWN
#define UNKNOWN 0
#endif
// How many functions stand in front of the known ones in the dispatch table.
static constexpr int IN_FRONT = UNKNOWN == 5 || UNKNOWN == 6 ? 24 : 0;
static constexpr auto VERSION = static_cast<ur_api_version_t>(UR_API_VERSION_CURRENT + (UNKNOWN == 1 || UNKNOWN == 5 || UNKNOWN == 8));

#if UNKNOWN == 7
// The table of IPC functions that counts is behind the others, and hides the known one.
struct Table : ur_dditable_t {
  void *added;
  ur_ipc_exp_dditable_t IPCExp;
};
#else
using Table = ur_dditable_t;
#endif

// An open that has one more parameter.
using OpenWithFlags = ur_result_t (*)(ur_context_handle_t, ur_device_handle_t, uint64_t, void *, size_t, void **);
static constexpr uint64_t FLAGS = 5;

#ifndef LOADER

#if UNKNOWN == 2
static ur_dditable_t &table = *new ur_dditable_t{};
#elif UNKNOWN == 5 || UNKNOWN == 6
static struct {
  void *in_front[IN_FRONT];
  ur_dditable_t table;
  void *behind[40];
} longer;
static ur_dditable_t &table = longer.table;
#else
static Table table;
#endif

// What all handles begin with: the address of the adapter's table.
struct Object {
#if UNKNOWN == 5 || UNKNOWN == 6
  void *table = &longer;
#else
  void *table = &::table;
#endif
};
static Object object;
static int done;

template <class Handle> static Handle handle() { return reinterpret_cast<Handle>(&object); }

#ifdef NAMESPACE
#define OWN(name) ur::own::name
namespace ur::own {
#else
#define OWN(name) name
extern "C" {
#endif

// Each function is of a real size: its code is changed only if it is long enough.
#define FUNCTION __attribute__((noinline)) ur_result_t
FUNCTION urDeviceGetInfo(ur_device_handle_t device, ur_device_info_t property, size_t size, void *value, size_t *size_ret) {
  if (!device || property != UR_DEVICE_INFO_MAX_MEM_ALLOC_SIZE) return UR_RESULT_ERROR_UNSUPPORTED_ENUMERATION;
  const uint64_t answer = 1 << 20;
  if (value && size == sizeof answer) memcpy(value, &answer, sizeof answer);
  if (size_ret) *size_ret = sizeof answer;
  return UR_RESULT_SUCCESS;
}

FUNCTION urUSMDeviceAlloc(ur_context_handle_t context, ur_device_handle_t device, const ur_usm_desc_t *, ur_usm_pool_handle_t, size_t size,
                          void **memory) {
  uint64_t limit = 0;
  const ur_result_t asked = OWN(urDeviceGetInfo)(device, UR_DEVICE_INFO_MAX_MEM_ALLOC_SIZE, sizeof limit, &limit, nullptr);
  if (asked != UR_RESULT_SUCCESS) return asked;
  if (!context || size > limit) return UR_RESULT_ERROR_INVALID_USM_SIZE;
  *memory = aligned_alloc(4096, size);
  done++;
  return UR_RESULT_SUCCESS;
}

FUNCTION urUSMFree(ur_context_handle_t context, void *memory) {
  if (!context) return UR_RESULT_ERROR_INVALID_NULL_HANDLE;
  free(memory);
  done++;
  return UR_RESULT_SUCCESS;
}

FUNCTION urIPCGetMemHandleExp(ur_context_handle_t context, void *memory, void **data, size_t *size) {
  if (!context) return UR_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (!memory) throw 1; // As an adapter may do where it finds nothing; its loader catches it.
  *size = 64;
  *data = calloc(1, *size);
  memcpy(*data, &memory, sizeof memory);
  done++;
  return UR_RESULT_SUCCESS;
}

FUNCTION urIPCPutMemHandleExp(ur_context_handle_t context, void *data) {
  if (!context || !data) return UR_RESULT_ERROR_INVALID_NULL_POINTER;
  // It is not freed, so that a second put harms nothing.
  done++;
  return UR_RESULT_SUCCESS;
}

// The mapping is an allocation, so that its address is another one. The call of the last line is a jump.
FUNCTION urIPCOpenMemHandleExp(ur_context_handle_t context, ur_device_handle_t device, void *data, size_t size, void **memory) {
  if (!data || size != 64) return UR_RESULT_ERROR_INVALID_VALUE;
  return OWN(urUSMDeviceAlloc)(context, device, nullptr, nullptr, 4096, memory);
}

FUNCTION urIPCCloseMemHandleExp(ur_context_handle_t context, void *memory) {
  if (!memory) return UR_RESULT_ERROR_INVALID_NULL_POINTER;
  const ur_result_t freed = OWN(urUSMFree)(context, memory);
  done++;
  return freed;
}

#ifdef NAMESPACE
} // namespace ur::own
#else
}
#endif

#if UNKNOWN == 8
static ur_result_t open_with_flags(ur_context_handle_t context, ur_device_handle_t device, uint64_t flags, void *data, size_t size,
                                   void **memory) {
  if (flags != FLAGS) return UR_RESULT_ERROR_INVALID_VALUE;
  return OWN(urIPCOpenMemHandleExp)(context, device, data, size, memory);
}
#endif

static ur_result_t adapter_get(uint32_t count, ur_adapter_handle_t *adapters, uint32_t *total) {
  if (UNKNOWN == 4) memcpy(static_cast<void *>(&table.CommandBufferExp), &table.IPCExp, sizeof table.IPCExp);
  if (count > 0 && adapters) *adapters = handle<ur_adapter_handle_t>();
  if (total) *total = 1;
  return UR_RESULT_SUCCESS;
}

static void fill() {
  if (table.Adapter.pfnGet) return; // Somebody may have changed it since.
  table.Adapter.pfnGet = adapter_get;
  table.Device.pfnGetInfo = OWN(urDeviceGetInfo);
  table.USM.pfnDeviceAlloc = OWN(urUSMDeviceAlloc);
  table.USM.pfnFree = OWN(urUSMFree);
  table.IPCExp.pfnGetMemHandleExp = OWN(urIPCGetMemHandleExp);
  table.IPCExp.pfnPutMemHandleExp = OWN(urIPCPutMemHandleExp);
  table.IPCExp.pfnOpenMemHandleExp = OWN(urIPCOpenMemHandleExp);
  table.IPCExp.pfnCloseMemHandleExp = OWN(urIPCCloseMemHandleExp);
#if UNKNOWN == 7
  table.added = reinterpret_cast<void *>(OWN(urUSMFree));
#elif UNKNOWN == 8
  table.IPCExp.pfnOpenMemHandleExp = reinterpret_cast<ur_pfnIPCOpenMemHandleExp_t>(reinterpret_cast<void *>(open_with_flags));
#endif
}

#endif

#ifdef LIBRARY

template <class T> static void alter(T &) {}
static void alter(ur_ipc_exp_dditable_t &filled) {
  const auto get = [](auto... arguments) { return urIPCGetMemHandleExp(arguments...); };
  if (UNKNOWN == 3) filled.pfnGetMemHandleExp = get;
#if UNKNOWN == 7
  memcpy(static_cast<void *>(&filled), &table.added, sizeof table.added + sizeof table.IPCExp);
#endif
}

#define GETTER(name, type, field)                                                                                                          \
  extern "C" ur_result_t name(ur_api_version_t version, type *filled) {                                                                    \
    fill();                                                                                                                                \
    if (version != VERSION) return UR_RESULT_ERROR_UNSUPPORTED_VERSION;                                                                    \
    *filled = table.field;                                                                                                                 \
    alter(*filled);                                                                                                                        \
    return UR_RESULT_SUCCESS;                                                                                                              \
  }
GETTER(urGetAdapterProcAddrTable, ur_adapter_dditable_t, Adapter)
GETTER(urGetIPCExpProcAddrTable, ur_ipc_exp_dditable_t, IPCExp)
#if !UNKNOWN
GETTER(urGetDeviceProcAddrTable, ur_device_dditable_t, Device)
GETTER(urGetUSMProcAddrTable, ur_usm_dditable_t, USM)
#endif

extern "C" int adapter_has_done() { return done; }

#else

#ifdef SHOWN

#include <xpti/xpti_trace_framework.h>

template <class T> struct Same {
  using type = T;
};

// An exception passes without an end, as it passes the layer.
template <class... P>
__attribute__((noinline)) static ur_result_t call(uint32_t id, const char *name, ur_result_t (*function)(P...), typename Same<P>::type... arguments) {
  static const uint8_t stream = xptiRegisterStream("ur.call");
  void *addresses[] = {&arguments...};
  const uint64_t instance = xptiGetUniqueId();
  const auto notify = [&](xpti::trace_point_type_t point, ur_result_t *result) {
    xpti::function_with_args_t shown{id, name, addresses, result, nullptr};
    xptiNotifySubscribers(stream, static_cast<uint16_t>(point), nullptr, nullptr, instance, &shown);
  };
  notify(xpti::trace_point_type_t::function_with_args_begin, nullptr);
  ur_result_t result = function(arguments...);
  notify(xpti::trace_point_type_t::function_with_args_end, &result);
  return result;
}
#define CALL(id, name, slot, ...) call(UR_FUNCTION_##id, #name, slots->slot, __VA_ARGS__)

static void begin_to_show() {
  xptiFrameworkInitialize();
  const auto version = UR_API_VERSION_CURRENT;
  xptiInitialize("ur.call", UR_MAJOR_VERSION(version), UR_MINOR_VERSION(version), "");
}

#else

#define CALL(id, name, slot, ...) slots->slot(__VA_ARGS__)

static void begin_to_show() {}

#endif

static int use(void *first, int (*has_done)(), const char *mistake) {
  auto *of_handle = reinterpret_cast<Table *>(*static_cast<void ***>(first) + IN_FRONT);
  // A loader reads the table for each call.
  auto *volatile slots = of_handle;
  auto context = static_cast<ur_context_handle_t>(first);
  auto device = static_cast<ur_device_handle_t>(first);
  void *memory = nullptr, *data = nullptr, *opened = nullptr;
  size_t size = 0;
  const auto say = [](const char *what, ur_result_t result) { printf("%s: %d\n", what, result); };
  say("alloc", CALL(USM_DEVICE_ALLOC, urUSMDeviceAlloc, USM.pfnDeviceAlloc, context, device, nullptr, nullptr, 4096, &memory));
  if (strcmp(mistake, "throw") == 0) {
    try {
      CALL(IPC_GET_MEM_HANDLE_EXP, urIPCGetMemHandleExp, IPCExp.pfnGetMemHandleExp, context, nullptr, &data, &size);
    } catch (int) { printf("thrown\n"); }
  }
  say("get", CALL(IPC_GET_MEM_HANDLE_EXP, urIPCGetMemHandleExp, IPCExp.pfnGetMemHandleExp, context, memory, &data, &size));
#if UNKNOWN == 8
  const auto open = reinterpret_cast<OpenWithFlags>(reinterpret_cast<void *>(slots->IPCExp.pfnOpenMemHandleExp));
  say("open", open(context, device, FLAGS, data, size, &opened));
#else
  say("open", CALL(IPC_OPEN_MEM_HANDLE_EXP, urIPCOpenMemHandleExp, IPCExp.pfnOpenMemHandleExp, context, device, data, size, &opened));
#endif
  say("close", CALL(IPC_CLOSE_MEM_HANDLE_EXP, urIPCCloseMemHandleExp, IPCExp.pfnCloseMemHandleExp, context, opened));
  say("put", CALL(IPC_PUT_MEM_HANDLE_EXP, urIPCPutMemHandleExp, IPCExp.pfnPutMemHandleExp, context, data));
  if (strcmp(mistake, "twice") == 0) say("put", CALL(IPC_PUT_MEM_HANDLE_EXP, urIPCPutMemHandleExp, IPCExp.pfnPutMemHandleExp, context, data));
  say("free", CALL(USM_FREE, urUSMFree, USM.pfnFree, context, memory));
  printf("done: %d\n", has_done());
  return 0;
}

int main(int argc, char **arguments) {
  const char *mistake = arguments[argc - 1];
  begin_to_show();
#ifdef LOADER
  void *adapter = dlopen(arguments[1], RTLD_LAZY | RTLD_LOCAL);
  if (!adapter) return fprintf(stderr, "%s\n", dlerror()), 1;
  const auto ask = [adapter](const char *getter, void *into) {
    auto get = reinterpret_cast<ur_result_t (*)(ur_api_version_t, void *)>(dlsym(adapter, getter));
    return get && get(VERSION, into) == UR_RESULT_SUCCESS;
  };
  static struct : ur_dditable_t {
    void *room[16]; // An adapter's table may be longer.
  } asked;
  if (!ask("urGetAdapterProcAddrTable", &asked.Adapter) || !ask("urGetIPCExpProcAddrTable", &asked.IPCExp)) return 2;
  const bool others = ask("urGetDeviceProcAddrTable", &asked.Device) && ask("urGetUSMProcAddrTable", &asked.USM);
  if (!others && !UNKNOWN) return 2;
  ur_adapter_handle_t first = nullptr;
  if (asked.Adapter.pfnGet(1, &first, nullptr) != UR_RESULT_SUCCESS || !first) return 3;
  return use(first, reinterpret_cast<int (*)()>(dlsym(adapter, "adapter_has_done")), mistake);
#else
  fill();
  ur_adapter_handle_t first = nullptr;
  adapter_get(1, &first, nullptr);
  return use(first, [] { return done; }, mistake);
#endif
}

#endif
