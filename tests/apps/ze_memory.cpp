// Two processes share memory through Level Zero's own functions, as communication libraries do: the bytes of a handle travel, and the
// consumer fetches the descriptor in them. The argument names what is right or wrong with it; "list" prints the names.
#include "ze_app.hpp"

#include <optional>

using namespace app;

static constexpr size_t SIZE = 1 << 16;
static const char *const CASES[] = {"right",          "without-put", "free-first", "one-byte-left", "close-twice",
                                    "put-twice",      "after-put",   "after-free", "close-of-own",  "left-open",
                                    "put-after-free", "by-extension", "copied", "closed-while-copied",
                                    "closed-unproved", "freed-while-copied", "got-twice", "rows-copied",
                                    "closed-while-rows-copied", "executed-again", "closed-while-executed-again"};

// How a copy is given to the device in a case with one.
static std::optional<By> copied_by(const std::string &what) {
  if (what == "rows-copied" || what == "closed-while-rows-copied") return By::rows;
  if (what == "executed-again" || what == "closed-while-executed-again") return By::closed_list;
  if (what == "copied" || what == "closed-while-copied" || what == "closed-unproved") return By::copy;
  return std::nullopt;
}

// What libfabric leaves of a handle: its descriptor.
static ze_ipc_mem_handle_t bare(ze_ipc_mem_handle_t handle) {
  std::memset(handle.data + 4, 0, sizeof handle.data - 4);
  return handle;
}

static void producer(const Ze &ze, Peer &consumer, const std::string &what) {
  void *memory = ze.allocate(SIZE);
  std::memset(memory, shared_byte, SIZE);
  ze_ipc_mem_handle_t handle = {};
  if (what == "by-extension") {
    const Zex zex(ze);
    uint32_t count = 0;
    Ze::check(zex.get(ze.context, memory, &count, nullptr), "zexMemGetIpcHandles");
    require(count == 1, "the memory has several parts");
    Ze::check(zex.get(ze.context, memory, &count, &handle), "zexMemGetIpcHandles");
  } else {
    handle = ze.get(memory);
  }
  // The driver may return the same descriptor, and each get has its put.
  if (what == "got-twice") ze.put(ze.get(memory));
  consumer.send(message(handle));
  consumer.await("fetched");
  if (what == "after-put") ze.put(handle);
  if (what == "after-free") ze.free(memory);
  consumer.say("open");
  consumer.await("opened");
  if (what == "free-first") ze.free(memory);
  consumer.say("close");
  consumer.await("closed");
  if (what == "close-of-own") ze.zeMemCloseIpcHandle(ze.context, memory);
  if (what == "put-after-free") ze.free(memory);
  if (what == "freed-while-copied") {
    char other[SIZE];
    const HeldCopy copy(ze, memory, other, SIZE);
    ze.put(handle);
    ze.free(memory);
    copy.let_go();
    copy.wait();
    print("producer is done");
    return;
  }
  const bool puts = what != "without-put" && what != "after-put" && what != "free-first" && what != "after-free";
  if (puts) ze.put(handle);
  if (what == "put-twice") ze.put(handle);
  if (what != "free-first" && what != "after-free" && what != "put-after-free") ze.free(memory);
  print("producer is done");
}

static void consumer(const Ze &ze, Peer &producer, const std::string &what) {
  ze_ipc_mem_handle_t handle = fetched(producer.receive());
  if (what == "one-byte-left") handle = bare(handle);
  producer.say("fetched");
  producer.await("open");
  void *memory = nullptr;
  const uint32_t result = what == "by-extension" ? Zex(ze).open(ze.context, ze.device, 1, &handle, 0, &memory)
                                                 : ze.try_open(handle, &memory);
  print(result == 0 ? "opened" : "refused");
  if (result == 0 && what != "after-free") require_shared(memory, SIZE);
  producer.say("opened");
  producer.await("close");
  char other[SIZE];
  std::optional<HeldCopy> copy;
  const bool early = what.rfind("closed-while", 0) == 0;
  if (const auto by = copied_by(what)) copy.emplace(ze, other, memory, SIZE, *by);
  if (copy && !early) copy->let_go();
  if (what == "closed-unproved") copy->poll();
  else if (copy && !early) copy->wait();
  if (result == 0 && what != "left-open") ze.close(memory);
  if (early) {
    copy->let_go();
    copy->wait();
  }
  if (what == "close-twice") ze.zeMemCloseIpcHandle(ze.context, memory);
  close(descriptor(handle));
  producer.say("closed");
}

int main(int argc, char **argv) { return run_case(argc, argv, CASES, producer, consumer); }
