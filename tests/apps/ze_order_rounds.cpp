// The rounds of order_rounds.hpp with Level Zero: on an immediate list in order, on one out of order, and in a list that a queue executes.
#include "order_rounds.hpp"
#include "ze_app.hpp"

using namespace app;

namespace {

class Device {
public:
  explicit Device(size_t size) {
    memory = static_cast<char *>(ze.allocate(size));
    fill(elsewhere, memory, 0, size, nullptr);
    ze.wait_for(elsewhere);
    got = ze.get(memory);
  }
  explicit Device(const Bytes &handle) { memory = static_cast<char *>(ze.open(fetched(handle))); }

  Bytes handle() const { return message(got); }
  std::vector<Bytes> make_events() {
    std::vector<Bytes> handles;
    for (Shared *shared : {&mine, &theirs}) {
      *shared = Shared(ze.pool(HOST_VISIBLE | IPC));
      ze_ipc_mem_handle_t of_pool = {};
      Ze::check(ze.zeEventPoolGetIpcHandle(shared->pool, &of_pool), "zeEventPoolGetIpcHandle");
      handles.push_back(message(of_pool));
      shared->event = ze.event(shared->pool);
    }
    return handles;
  }
  void open_events(const Bytes &of_theirs, const Bytes &of_mine) { theirs = opened(of_theirs), mine = opened(of_mine); }
  void close() {
    end_events(ze.zeEventPoolCloseIpcHandle);
    ze.close(memory);
  }
  void free() {
    end_events(ze.zeEventPoolDestroy);
    ze.free(memory);
  }

  // What is enqueued in a list is so when the list is executed.
  void begin(const std::string &queue) {
    if (queue == "third") third.reset();
  }
  void end(const std::string &queue) {
    if (queue == "third") third.close(), third.execute();
  }

  void enqueue(const std::string &queue, bool writes, size_t at, size_t size) {
    const ze_handle_t on = list(queue);
    reset(latest);
    if (writes && at / stride % 2) fill(on, memory + at, 7, size, latest);
    else copy(on, writes ? memory + at : own, writes ? own : memory + at, size, latest);
  }

  // All that waits for the event has completed when the next round begins.
  void signal(const std::string &queue) {
    reset(mine.event);
    barrier(list(queue), mine.event);
  }
  void await_event(const std::string &queue) { barrier(list(queue), nullptr, &theirs.event); }

  void write_flag(const std::string &queue, size_t at) { fill(list(queue), memory + at, 1, 4, nullptr, &latest); }
  void write_flag_elsewhere(size_t at) {
    fill(elsewhere, memory + at, 1, 4, nullptr);
    ze.wait_for(elsewhere);
  }
  void await_flag(size_t at) {
    for (uint32_t word = 0; word == 0;) {
      copy(elsewhere, &word, memory + at, sizeof word, nullptr);
      ze.wait_for(elsewhere);
    }
  }

  void wait(const std::string &queue, const std::string &how) {
    if (how == "queue") wait_for(queue);
    else if (how == "event") Ze::check(ze.zeEventHostSynchronize(latest, UINT64_MAX), "zeEventHostSynchronize");
    else if (how == "polled") {
      while (ze.zeEventQueryStatus(latest) == NOT_READY) {}
    } else if (how == "elsewhere") {
      Ze::check(ze.zeCommandListAppendWaitOnEvents(elsewhere, 1, &latest), "zeCommandListAppendWaitOnEvents");
      ze.wait_for(elsewhere);
    } else if (how == "barrier" || how == "behind") {
      begin(queue);
      if (how == "barrier") {
        reset(behind);
        barrier(list(queue), behind);
      } else {
        copy(list(queue), own, own + 64, 64, nullptr);
      }
      end(queue);
      if (how == "behind") wait_for(queue);
      else Ze::check(ze.zeEventHostSynchronize(behind, UINT64_MAX), "zeEventHostSynchronize");
    } else require(false, "there is no such wait: " + how);
  }
  void wait_for_all() {
    for (const char *queue : {"first", "second", "third"}) wait_for(queue);
  }

private:
  static constexpr uint32_t NOT_READY = 1, HOST_VISIBLE = 1, IPC = 2;

  // An event that processes share, in a pool of its own.
  struct Shared {
    explicit Shared(ze_handle_t pool = nullptr) : pool(pool) {}
    ze_handle_t pool, event = nullptr;
  };
  Shared opened(const Bytes &handle) const {
    Shared shared;
    Ze::check(ze.zeEventPoolOpenIpcHandle(ze.context, fetched(handle), &shared.pool), "zeEventPoolOpenIpcHandle");
    shared.event = ze.event(shared.pool);
    return shared;
  }
  void end_events(uint32_t (*end_pool)(ze_handle_t)) const {
    for (const Shared &shared : {mine, theirs}) {
      if (shared.pool == nullptr) continue;
      Ze::check(ze.zeEventDestroy(shared.event), "zeEventDestroy");
      Ze::check(end_pool(shared.pool), "the end of a pool");
    }
  }

  ze_handle_t list(const std::string &queue) const { return queue == "first" ? first : queue == "second" ? second : third.list; }
  void reset(ze_handle_t event) const { Ze::check(ze.zeEventHostReset(event), "zeEventHostReset"); }
  void copy(ze_handle_t on, void *to, const void *from, size_t size, ze_handle_t signal) const {
    Ze::check(ze.zeCommandListAppendMemoryCopy(on, to, from, size, signal, 0, nullptr), "zeCommandListAppendMemoryCopy");
  }
  void fill(ze_handle_t on, void *to, char byte, size_t size, ze_handle_t signal, ze_handle_t *wait = nullptr) const {
    const uint32_t waits = wait == nullptr ? 0 : 1;
    Ze::check(ze.zeCommandListAppendMemoryFill(on, to, &byte, 1, size, signal, waits, wait), "zeCommandListAppendMemoryFill");
  }
  void barrier(ze_handle_t on, ze_handle_t signal, ze_handle_t *wait = nullptr) const {
    Ze::check(ze.zeCommandListAppendBarrier(on, signal, wait == nullptr ? 0 : 1, wait), "zeCommandListAppendBarrier");
  }
  void wait_for(const std::string &queue) const {
    if (queue == "third") third.wait();
    else ze.wait_for(list(queue));
  }

  Ze ze;
  const ze_handle_t first = ze.immediate_list(2, 2), second = ze.immediate_list(), elsewhere = ze.immediate_list(2, 2);
  ListInQueue third{ze};
  const ze_handle_t behind = ze.event(ze.pool(1));
  ze_handle_t latest = ze.event(ze.pool(1));
  // The event that this process signals, and the one that the other process does.
  Shared mine, theirs;
  char *memory = nullptr;
  char *const own = static_cast<char *>(ze.allocate(2 * stride));
  ze_ipc_mem_handle_t got{};
};

} // namespace

int main(int argc, char **argv) { return run_rounds<Device>(argc, argv); }
