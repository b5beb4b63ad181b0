// The rounds of order_rounds.hpp with Level Zero: on an immediate list in order, on one out of order, and in a list that a queue executes.
#include "order_rounds.hpp"
#include "ze_app.hpp"

using namespace app;

namespace {

class Device {
public:
  explicit Device(size_t size) { memory = static_cast<char *>(ze.allocate(size)), got = ze.get(memory); }
  explicit Device(const Bytes &handle) { memory = static_cast<char *>(ze.open(fetched(handle))); }

  Bytes handle() const { return message(got); }
  void close() { ze.close(memory); }
  void free() { ze.free(memory); }

  void enqueue(const std::string &queue, bool writes, size_t at, size_t size) {
    const bool is_listed = queue == "third";
    const ze_handle_t on = list(queue);
    if (is_listed) third.reset();
    reset(latest);
    const char byte = 7;
    if (writes && at / stride % 2) Ze::check(ze.zeCommandListAppendMemoryFill(on, memory + at, &byte, 1, size, latest, 0, nullptr), "a fill");
    else copy(on, writes ? memory + at : own, writes ? own : memory + at, size, latest);
    if (is_listed) third.close(), third.execute();
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
      const ze_handle_t on = list(queue);
      if (queue == "third") third.reset();
      if (how == "barrier") {
        reset(behind);
        Ze::check(ze.zeCommandListAppendBarrier(on, behind, 0, nullptr), "zeCommandListAppendBarrier");
      } else {
        copy(on, own, own + 64, 64, nullptr);
      }
      if (queue == "third") third.close(), third.execute();
      if (how == "behind") wait_for(queue);
      else Ze::check(ze.zeEventHostSynchronize(behind, UINT64_MAX), "zeEventHostSynchronize");
    } else require(false, "there is no such wait: " + how);
  }

private:
  static constexpr uint32_t NOT_READY = 1;

  ze_handle_t list(const std::string &queue) const { return queue == "first" ? first : queue == "second" ? second : third.list; }
  void reset(ze_handle_t event) const { Ze::check(ze.zeEventHostReset(event), "zeEventHostReset"); }
  void copy(ze_handle_t on, void *to, const void *from, size_t size, ze_handle_t signal) const {
    Ze::check(ze.zeCommandListAppendMemoryCopy(on, to, from, size, signal, 0, nullptr), "zeCommandListAppendMemoryCopy");
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
  char *memory = nullptr;
  char *const own = static_cast<char *>(ze.allocate(2 * stride));
  ze_ipc_mem_handle_t got{};
};

} // namespace

int main(int argc, char **argv) { return run_rounds<Device>(argc, argv); }
