// Two processes share memory by a descriptor: the producer asks the properties of its memory for one, and the consumer imports it by an
// allocation, or makes an IPC handle of it. The argument names what is right or wrong with it; "list" prints the names.
#include "ze_app.hpp"

#include <optional>

using namespace app;

static constexpr size_t SIZE = 1 << 16;
static const char *const CASES[] = {"right",     "again-and-again", "as-handle",  "of-handle",   "free-first",
                                    "left-open", "closed",          "freed-twice", "freed-while-copied"};

static void producer(const Ze &ze, Peer &consumer, const std::string &what) {
  ze_external_memory_t exportable = {0x18, nullptr, DMA_BUF, 0};
  void *memory = ze.allocate(SIZE, &exportable);
  std::memset(memory, shared_byte, SIZE);
  // This asks for no descriptor, and is not recorded.
  require(ze.id(memory) != 0, "the memory has no number");
  ze_ipc_mem_handle_t handle = {};
  if (what == "of-handle") {
    handle = ze.get(memory);
    uint64_t inside = 0;
    Ze::check(ze.zeMemGetFileDescriptorFromIpcHandleExp(ze.context, handle, &inside), "a descriptor of a handle");
    require(static_cast<int>(inside) == descriptor(handle), "the handle has another descriptor");
  } else {
    const int number = ze.exported(memory);
    if (what == "again-and-again")
      for (int more = 0; more < 300; more++) require(ze.exported(memory) == number, "another descriptor");
    std::memcpy(handle.data, &number, sizeof number);
    if (what == "as-handle") handle = ze.handle_of(number);
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

static void consumer(const Ze &ze, Peer &producer, const std::string &what) {
  const ze_ipc_mem_handle_t handle = fetched(producer.receive());
  void *memory = nullptr;
  if (what == "as-handle") {
    memory = ze.open(handle);
  } else {
    ze_external_memory_t import = {0x19, nullptr, DMA_BUF, descriptor(handle)};
    memory = ze.allocate(SIZE, &import);
  }
  close(descriptor(handle));
  producer.say("opened");
  producer.await("end");
  require_shared(memory, SIZE);
  print("the memory is shared");
  char other[SIZE];
  std::optional<HeldCopy> copy;
  if (what == "freed-while-copied") copy.emplace(ze, other, memory, SIZE);
  if (what == "as-handle") ze.close(memory);
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
