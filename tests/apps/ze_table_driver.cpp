// A Level Zero driver, as a library, whose handles begin with its tables: with `ZE_extension_driver_ddi_handles`, a loader (1.24 and later)
// that has several drivers calls through these instead of through those that it has asked for. It has what ze_table_loader.cpp calls:
// memory of one context, which is shared by the descriptors of its files.
//
// The layout is that of ze_ddi_common.h (ze_handle_t) and of ze_ddi.h 1.17 (ze_dditable_driver_t).
#include <cstdint>
#include <cstring>
#include <map>
#include <string>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

constexpr uint32_t SUCCESS = 0, INVALID_ARGUMENT = 0x78000004, UNSUPPORTED_FEATURE = 0x78000003;

struct Dispatch {
  uint32_t version;
  uint8_t is_valid;
  void **tables[32];
};
struct Object {
  Dispatch *core;
  void *tools, *sysman, *runtime;
};
struct IpcHandle {
  char data[64];
};
struct Properties {
  uint32_t stype;
  Properties *next;
  uint32_t flags;
};
// An allocation or a mapping.
struct Memory {
  int file;
  size_t size;
  bool is_opened;
};

extern Dispatch dispatch;
Object driver = {&dispatch, nullptr, nullptr, nullptr}, device = driver, context = driver;
std::map<void *, Memory> memories;

uint32_t init(uint32_t) { return SUCCESS; }

uint32_t get_one(uint32_t *count, Object **handles, Object *one) {
  if (handles && *count > 0) handles[0] = one;
  *count = 1;
  return SUCCESS;
}
uint32_t get_drivers(uint32_t *count, Object **drivers) { return get_one(count, drivers, &driver); }
uint32_t get_devices(Object *, uint32_t *count, Object **devices) { return get_one(count, devices, &device); }

// ze_driver_ddi_handles_ext_properties_t: its handles begin with tables.
uint32_t get_properties(Object *, Properties *properties) {
  for (Properties *next = properties->next; next; next = next->next)
    if (next->stype == 0x20027) next->flags = 1;
  return SUCCESS;
}

uint32_t create_context(Object *, const void *, Object **made) {
  *made = &context;
  return SUCCESS;
}

uint32_t map(int file, size_t size, bool is_opened, void **pointer) {
  *pointer = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  memories[*pointer] = {file, size, is_opened};
  return SUCCESS;
}
uint32_t end(void *pointer, bool is_opened) {
  const auto found = memories.find(pointer);
  if (found == memories.end() || found->second.is_opened != is_opened) return INVALID_ARGUMENT;
  munmap(pointer, found->second.size);
  if (!is_opened) close(found->second.file);
  memories.erase(found);
  return SUCCESS;
}
uint32_t allocate(Object *, const void *, size_t size, size_t, Object *, void **pointer) {
  const int file = memfd_create("memory", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(size)) != 0) return INVALID_ARGUMENT;
  return map(file, size, false, pointer);
}
uint32_t free_memory(Object *, void *pointer) { return end(pointer, false); }
uint32_t get_handle(Object *, void *pointer, IpcHandle *handle) {
  const auto found = memories.find(pointer);
  if (found == memories.end()) return INVALID_ARGUMENT;
  *handle = {};
  std::memcpy(handle->data, &found->second.file, sizeof found->second.file);
  return SUCCESS;
}
uint32_t get_handles(Object *of, void *pointer, uint32_t *count, IpcHandle *handles) {
  *count = 1;
  return handles ? get_handle(of, pointer, handles) : SUCCESS;
}
uint32_t put_handle(Object *, IpcHandle) { return SUCCESS; }
uint32_t open_handle(Object *, Object *, IpcHandle handle, uint32_t, void **pointer) {
  int file = -1;
  struct stat about = {};
  std::memcpy(&file, handle.data, sizeof file);
  return fstat(file, &about) == 0 ? map(file, static_cast<size_t>(about.st_size), true, pointer) : INVALID_ARGUMENT;
}
uint32_t close_handle(Object *, void *pointer) { return end(pointer, true); }

uint32_t get_extension(Object *, const char *name, void **address) {
  *address = std::string(name) == "zexMemGetIpcHandles" ? reinterpret_cast<void *>(get_handles) : nullptr;
  return *address ? SUCCESS : INVALID_ARGUMENT;
}

// The first ones of each table.
void *globals[] = {reinterpret_cast<void *>(init)};
void *drivers[] = {reinterpret_cast<void *>(get_drivers), nullptr, reinterpret_cast<void *>(get_properties),
                   nullptr,                               nullptr, reinterpret_cast<void *>(get_extension)};
void *devices[] = {reinterpret_cast<void *>(get_devices)};
void *contexts[] = {reinterpret_cast<void *>(create_context)};
void *memory[13] = {nullptr, reinterpret_cast<void *>(allocate), nullptr, reinterpret_cast<void *>(free_memory), nullptr, nullptr,
                    reinterpret_cast<void *>(get_handle), reinterpret_cast<void *>(open_handle),
                    reinterpret_cast<void *>(close_handle), nullptr, reinterpret_cast<void *>(put_handle)};

Dispatch dispatch = {0x10011, 1, {nullptr, nullptr, nullptr, nullptr, globals, drivers, nullptr, devices, nullptr, contexts,
                                  nullptr, nullptr, nullptr, nullptr, nullptr, memory}};

template <size_t N> uint32_t fill(void *const (&own)[N], void **table) {
  std::memcpy(table, own, sizeof own);
  return SUCCESS;
}

} // namespace

extern "C" {
uint32_t zeGetGlobalProcAddrTable(uint32_t, void **table) { return fill(globals, table); }
uint32_t zeGetDriverProcAddrTable(uint32_t, void **table) { return fill(drivers, table); }
uint32_t zeGetDeviceProcAddrTable(uint32_t, void **table) { return fill(devices, table); }
uint32_t zeGetContextProcAddrTable(uint32_t, void **table) { return fill(contexts, table); }
uint32_t zeGetMemProcAddrTable(uint32_t, void **table) { return fill(memory, table); }
uint32_t zeGetEventPoolProcAddrTable(uint32_t, void **) { return UNSUPPORTED_FEATURE; }
}
