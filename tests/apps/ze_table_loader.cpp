// Calls a Level Zero driver as a loader does: `tables` through the tables that it asks the driver for, `handles` through those that the
// handles begin with (ze_ldrddi.cpp and ze_ldrddi_driver_ddi.cpp of the loader). Before it does the latter, it asks the driver whether its
// handles do. The first argument is the path of the driver (ze_table_driver.cpp), the second one the way; with `close-twice` behind it, the
// mapping is closed twice.
#include "ze_app.hpp"

using namespace app;

struct Dispatch {
  uint32_t version;
  uint8_t is_valid;
  void **tables[32];
};

// ze_driver_properties_t, and ze_driver_ddi_handles_ext_properties_t behind it.
struct Supported {
  uint32_t stype;
  void *next;
  uint32_t flags;
};
struct DriverProperties {
  uint32_t stype;
  void *next;
  char rest[64];
};

// The places of tables in ze_dditable_driver_t, and of functions in tables (ze_ddi.h 1.17).
enum Table { GLOBAL = 4, DRIVER = 5, DEVICE = 7, CONTEXT = 9, MEMORY = 15 };

static constexpr uint32_t VERSION = 0x10011;

class Driver {
public:
  explicit Driver(const char *path) : library(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    require(library != nullptr, "cannot open the driver");
    ask("zeGetGlobalProcAddrTable", GLOBAL);
    ask("zeGetDriverProcAddrTable", DRIVER);
    ask("zeGetDeviceProcAddrTable", DEVICE);
    ask("zeGetContextProcAddrTable", CONTEXT);
    ask("zeGetMemProcAddrTable", MEMORY);
  }

  // The function in a slot of a table that was asked for.
  template <typename Function> Function asked(Table table, size_t slot) const { return reinterpret_cast<Function>(tables[table][slot]); }
  // The function in a slot of the table that a handle begins with.
  template <typename Function> static Function behind(ze_handle_t handle, Table table, size_t slot) {
    const Dispatch *core = *reinterpret_cast<Dispatch **>(handle);
    require(core->is_valid && core->tables[table], "there is no table behind the handle");
    return reinterpret_cast<Function>(core->tables[table][slot]);
  }

private:
  void ask(const char *getter, Table table) {
    const auto get = reinterpret_cast<uint32_t (*)(uint32_t, void **)>(dlsym(library, getter));
    require(get != nullptr && get(VERSION, tables[table]) == 0, "the driver does not fill a table");
  }

  void *library;
  void *tables[32][64] = {};
};

int main(int argc, char **argv) {
  require(argc >= 3, "which driver, and which way?");
  const Driver driver(argv[1]);
  const bool by_handles = std::string(argv[2]) == "handles";
  Ze::check(driver.asked<uint32_t (*)(uint32_t)>(GLOBAL, 0)(0), "zeInit");
  uint32_t one = 1;
  ze_handle_t handle = nullptr, device = nullptr, context = nullptr;
  Ze::check(driver.asked<uint32_t (*)(uint32_t *, ze_handle_t *)>(DRIVER, 0)(&one, &handle), "zeDriverGet");
  if (by_handles) {
    Supported supported = {0x20027, nullptr, 0};
    DriverProperties properties = {0x1, &supported, {}};
    Ze::check(driver.asked<uint32_t (*)(ze_handle_t, DriverProperties *)>(DRIVER, 2)(handle, &properties), "zeDriverGetProperties");
    require((supported.flags & 1) != 0, "the driver's handles have no tables");
  }
  const auto function = [&](auto signature, ze_handle_t of, Table table, size_t slot) {
    using Function = decltype(signature);
    return by_handles ? Driver::behind<Function>(of, table, slot) : driver.asked<Function>(table, slot);
  };
#define CALL(of, table, slot, name, ...)                                                                               \
  function(decltype(Ze::name)(), of, table, slot)(__VA_ARGS__)
  Ze::check(CALL(handle, DEVICE, 0, zeDeviceGet, handle, &one, &device), "zeDeviceGet");
  Ze::check(CALL(handle, CONTEXT, 0, zeContextCreate, handle, nullptr, &context), "zeContextCreate");
  void *memory = nullptr, *opened = nullptr, *address = nullptr;
  Ze::check(CALL(context, MEMORY, 1, zeMemAllocDevice, context, nullptr, 4096, 64, device, &memory), "zeMemAllocDevice");
  ze_ipc_mem_handle_t ipc = {};
  Ze::check(CALL(context, MEMORY, 6, zeMemGetIpcHandle, context, memory, &ipc), "zeMemGetIpcHandle");
  Ze::check(CALL(context, MEMORY, 7, zeMemOpenIpcHandle, context, device, ipc, 0, &opened), "zeMemOpenIpcHandle");
  static_cast<char *>(memory)[0] = 42;
  require(static_cast<char *>(opened)[0] == 42, "the memory holds something else");
  Ze::check(CALL(context, MEMORY, 8, zeMemCloseIpcHandle, context, opened), "zeMemCloseIpcHandle");
  if (argc > 3) CALL(context, MEMORY, 8, zeMemCloseIpcHandle, context, opened);
  Ze::check(CALL(context, MEMORY, 10, zeMemPutIpcHandle, context, ipc), "zeMemPutIpcHandle");
  Ze::check(CALL(handle, DRIVER, 5, zeDriverGetExtensionFunctionAddress, handle, "zexMemGetIpcHandles", &address), "a look-up");
  Ze::check(reinterpret_cast<Zex::Get>(address)(context, memory, &one, &ipc), "zexMemGetIpcHandles");
  Ze::check(CALL(context, MEMORY, 10, zeMemPutIpcHandle, context, ipc), "zeMemPutIpcHandle");
  Ze::check(CALL(context, MEMORY, 3, zeMemFree, context, memory), "zeMemFree");
  print("the memory was shared through " + std::string(argv[2]));
}
