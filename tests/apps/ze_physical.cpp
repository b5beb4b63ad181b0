// Two processes share physical memory through Level Zero's own functions: by a descriptor that its properties export, or by an IPC handle,
// for which the physical memory's handle, an address that it is mapped at or the descriptor of such an address stands for it. The argument
// names what is right or wrong with it; "list" prints the names.
#include "ze_app.hpp"

using namespace app;

static constexpr size_t SIZE = 1 << 16;
static const char *const CASES[] = {"right",           "by-handle",              "by-address",  "by-address-exported", "left-open",
                                    "destroyed-twice", "destroyed-while-mapped", "without-flag"};

// Where physical memory is mapped.
class View {
public:
  View(const Ze &ze, ze_handle_t physical) : ze(ze) {
    Ze::check(ze.zeVirtualMemReserve(ze.context, nullptr, SIZE, &address), "zeVirtualMemReserve");
    // ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE
    Ze::check(ze.zeVirtualMemMap(ze.context, address, SIZE, physical, 0, 1), "zeVirtualMemMap");
  }
  void unmap() const {
    Ze::check(ze.zeVirtualMemUnmap(ze.context, address, SIZE), "zeVirtualMemUnmap");
    Ze::check(ze.zeVirtualMemFree(ze.context, address, SIZE), "zeVirtualMemFree");
  }

  void *address = nullptr;

private:
  const Ze &ze;
};

static ze_handle_t made(const Ze &ze, ze_external_memory_t *extension) {
  ze_physical_mem_desc_t desc = {0x1b, extension, 0, SIZE};
  ze_handle_t physical = nullptr;
  Ze::check(ze.zePhysicalMemCreate(ze.context, ze.device, &desc, &physical), "zePhysicalMemCreate");
  return physical;
}

// A handle whose descriptor is the one that the properties export.
static uint32_t try_export(const Ze &ze, ze_handle_t physical, ze_ipc_mem_handle_t *handle) {
  ze_external_memory_t exported = {0x1a, nullptr, DMA_BUF, -1};
  ze_physical_mem_properties_t properties = {0x2001f, &exported, 0, 0};
  const uint32_t result = ze.zePhysicalMemGetProperties(ze.context, physical, &properties);
  std::memcpy(handle->data, &exported.descriptor, sizeof exported.descriptor);
  return result;
}

static bool by_descriptor(const std::string &what) { return what.rfind("by-", 0) != 0; }

static void producer(const Ze &ze, Peer &consumer, const std::string &what) {
  ze_external_memory_t exportable = {0x18, nullptr, DMA_BUF, 0};
  const ze_handle_t physical = made(ze, what == "without-flag" ? nullptr : &exportable);
  const View view(ze, physical);
  std::memset(view.address, shared_byte, SIZE);
  ze_ipc_mem_handle_t handle = {};
  uint32_t result = 0;
  if (by_descriptor(what)) result = try_export(ze, physical, &handle);
  if (what == "by-handle") handle = ze.get(physical);
  if (what == "by-address") handle = ze.get(view.address);
  if (what == "by-address-exported") handle = ze.handle_of(ze.exported(view.address));
  if (result == 0) {
    consumer.send(message(handle));
    consumer.await("opened");
    // An exported descriptor is the program's.
    if (by_descriptor(what)) close(descriptor(handle));
    else ze.put(handle);
  } else {
    print("refused");
    consumer.say("refused");
  }
  if (what != "destroyed-while-mapped") view.unmap();
  Ze::check(ze.zePhysicalMemDestroy(ze.context, physical), "zePhysicalMemDestroy");
  if (what == "destroyed-while-mapped") view.unmap();
  if (result == 0) consumer.say("destroyed");
  print("producer is done");
}

static void consumer(const Ze &ze, Peer &producer, const std::string &what) {
  const Bytes received = producer.receive();
  if (received.size() < sizeof(ze_ipc_mem_handle_t)) return print("there is no handle");
  const ze_ipc_mem_handle_t handle = fetched(received);
  if (!by_descriptor(what)) {
    void *memory = ze.open(handle);
    require_shared(memory, SIZE);
    ze.close(memory);
    producer.say("opened");
    producer.await("destroyed");
    return;
  }
  ze_external_memory_t import = {0x19, nullptr, DMA_BUF, descriptor(handle)};
  const ze_handle_t physical = made(ze, &import);
  close(descriptor(handle));
  producer.say("opened");
  producer.await("destroyed");
  const View view(ze, physical);
  require_shared(view.address, SIZE);
  view.unmap();
  print("the memory outlives its exporter");
  if (what != "left-open") Ze::check(ze.zePhysicalMemDestroy(ze.context, physical), "zePhysicalMemDestroy");
  if (what == "destroyed-twice") ze.zePhysicalMemDestroy(ze.context, physical);
}

int main(int argc, char **argv) { return run_case(argc, argv, CASES, producer, consumer); }
