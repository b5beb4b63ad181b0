// Two processes share memory by a descriptor: the producer asks the properties of its memory for one, and the consumer imports it by an
// allocation, or makes an IPC handle of it. The argument names what is right or wrong with it; "list" prints the names.
#include "ze_app.hpp"

#include <optional>

using namespace app;

static constexpr size_t SIZE = 1 << 16;
static const char *const CASES[] = {"right",     "again-and-again", "as-handle",  "of-handle",   "free-first",
                                    "left-open", "closed",          "freed-twice", "freed-while-copied"};

static void *allocated(const Ze &ze, ze_external_memory_t *extension) {
  const ze_device_mem_alloc_desc_t desc = {0x15, extension, 0, 0};
  void *memory = nullptr;
  Ze::check(ze.zeMemAllocDevice(ze.context, &desc, SIZE, 64, ze.device, &memory), "zeMemAllocDevice");
  return memory;
}

// A descriptor that the properties of memory export. It belongs to the driver.
static int exported(const Ze &ze, const void *memory) {
  ze_external_memory_t asked = {0x1a, nullptr, DMA_BUF, -1};
  ze_memory_allocation_properties_t properties = {0x17, &asked, 0, 0, 0};
  Ze::check(ze.zeMemGetAllocProperties(ze.context, memory, &properties, nullptr), "zeMemGetAllocProperties");
  return asked.descriptor;
}

static void producer(Peer &consumer) {
  const std::string what = chosen(CASES[0]);
  const Ze ze;
  ze_external_memory_t exportable = {0x18, nullptr, DMA_BUF, 0};
  void *memory = allocated(ze, &exportable);
  std::memset(memory, 42, SIZE);
  // This asks for no descriptor, and is not recorded.
  require(ze.id(memory) != 0, "the memory has no number");
  ze_ipc_mem_handle_t handle = {};
  if (what == "of-handle") {
    handle = ze.get(memory);
    uint64_t inside = 0;
    Ze::check(ze.zeMemGetFileDescriptorFromIpcHandleExp(ze.context, handle, &inside), "a descriptor of a handle");
    require(static_cast<int>(inside) == descriptor(handle), "the handle has another descriptor");
  } else {
    const int number = exported(ze, memory);
    if (what == "again-and-again")
      for (int more = 0; more < 300; more++) require(exported(ze, memory) == number, "another descriptor");
    std::memcpy(handle.data, &number, sizeof number);
    if (what == "as-handle")
      Ze::check(ze.zeMemGetIpcHandleFromFileDescriptorExp(ze.context, static_cast<uint64_t>(number), &handle), "a handle");
  }
  consumer.send(message(handle));
  consumer.await("opened");
  if (what == "of-handle" || what == "as-handle") ze.put(handle);
  if (what == "free-first") ze.free(memory);
  consumer.say("end");
  consumer.await("ended");
  if (what != "free-first") ze.free(memory);
  print("producer is done");
}

static void consumer(Peer &producer) {
  const std::string what = chosen(CASES[0]);
  const Ze ze;
  const ze_ipc_mem_handle_t handle = fetched(producer.receive());
  void *memory = nullptr;
  if (what == "as-handle") {
    memory = ze.open(handle);
  } else {
    ze_external_memory_t import = {0x19, nullptr, DMA_BUF, descriptor(handle)};
    memory = allocated(ze, &import);
  }
  close(descriptor(handle));
  producer.say("opened");
  producer.await("end");
  require(static_cast<const char *>(memory)[SIZE - 1] == 42, "the memory holds something else");
  print("the memory is shared");
  char other[SIZE];
  std::optional<HeldCopy> copy;
  if (what == "freed-while-copied") copy.emplace(ze, other, memory, SIZE);
  if (what == "as-handle") Ze::check(ze.zeMemCloseIpcHandle(ze.context, memory), "zeMemCloseIpcHandle");
  if (what == "closed") ze.zeMemCloseIpcHandle(ze.context, memory);
  if (what != "left-open" && what != "as-handle") ze.free(memory);
  if (what == "freed-twice") ze.zeMemFree(ze.context, memory);
  if (copy) {
    copy->let_go();
    copy->wait();
  }
  producer.say("ended");
}

int main(int argc, char **argv) { return run_case(argc, argv, CASES, producer, consumer); }
