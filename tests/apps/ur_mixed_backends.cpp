// A producer and a consumer with different backends: handles of each kind, and the results of using them.
//
// The arguments are environment variables for the consumer only, as NAME=VALUE. Results are ur_result_t.
#include "ur_app.hpp"

using namespace app;

constexpr size_t size = 8 << 20;

static void write_word(const Ur &ur, void *memory, uint64_t word) {
  CHECK(urEnqueueUSMMemcpy(ur.queue, true, memory, &word, sizeof word, 0, nullptr, nullptr));
}
static std::string read_word(const Ur &ur, const void *memory) {
  uint64_t word = 0;
  CHECK(urEnqueueUSMMemcpy(ur.queue, true, &word, memory, sizeof word, 0, nullptr, nullptr));
  return " read " + std::to_string(word);
}

// Somewhere, until the process ends.
static void *map(const Ur &ur, ur_physical_mem_handle_t memory) {
  void *start = nullptr;
  CHECK(urVirtualMemReserve(ur.context, nullptr, size, &start));
  CHECK(urVirtualMemMap(ur.context, start, size, memory, 0, UR_VIRTUAL_MEM_ACCESS_FLAG_READ_WRITE));
  return start;
}

// The handle data that a get returned, or nothing.
static void send(const Peer &consumer, ur_result_t got, const void *data, size_t length) {
  const auto *bytes = static_cast<const std::byte *>(data);
  consumer.send(got == UR_RESULT_SUCCESS ? Bytes(bytes, bytes + length) : Bytes(1));
}

static void producer(Peer &consumer) {
  Ur ur;
  void *memory = nullptr, *data = nullptr;
  size_t length = 0;
  CHECK(urUSMDeviceAlloc(ur.context, ur.device, nullptr, nullptr, size, &memory));
  write_word(ur, memory, 42);
  ur_result_t got = urIPCGetMemHandleExp(ur.context, memory, &data, &length);
  send(consumer, got, data, length);

  const ur_physical_mem_properties_t shared = {UR_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES, nullptr,
                                               UR_PHYSICAL_MEM_FLAG_ENABLE_IPC};
  ur_physical_mem_handle_t physical = nullptr;
  CHECK(urPhysicalMemCreate(ur.context, ur.device, size, &shared, &physical));
  write_word(ur, map(ur, physical), 43);
  got = urIPCGetPhysMemHandleExp(ur.context, physical, &data, &length);
  send(consumer, got, data, length);

  const ur_exp_event_desc_t desc = {UR_STRUCTURE_TYPE_EXP_EVENT_DESC, nullptr, UR_EXP_EVENT_FLAG_IPC_EXP};
  ur_event_handle_t event = nullptr;
  got = urEventCreateExp(ur.context, ur.device, &desc, &event);
  if (got == UR_RESULT_SUCCESS) CHECK(urIPCGetEventHandleExp(event, &data, &length));
  send(consumer, got, data, length);
  consumer.await("opened");
  if (event != nullptr) CHECK(urEnqueueEventsWaitWithBarrierExt(ur.queue, nullptr, 0, nullptr, &event));
  consumer.say("signalled");
  consumer.await("done");
}

static void say(const char *kind, const Bytes &data, ur_result_t result, const std::string &found) {
  const std::string answer = result == UR_RESULT_SUCCESS ? found : " refused";
  print(std::string(kind) + ": " + (data.size() == 1 ? "not shared" : std::to_string(result) + answer));
}

static void consumer(Peer &producer) {
  Ur ur;
  Bytes data = producer.receive();
  void *memory = nullptr;
  ur_result_t result = urIPCOpenMemHandleExp(ur.context, ur.device, data.data(), data.size(), &memory);
  say("memory", data, result, memory != nullptr ? read_word(ur, memory) : " nothing");
  if (memory != nullptr) CHECK(urIPCCloseMemHandleExp(ur.context, memory));

  data = producer.receive();
  ur_physical_mem_handle_t physical = nullptr;
  result = urIPCOpenPhysMemHandleExp(ur.context, ur.device, data.data(), data.size(), &physical);
  say("physical memory", data, result, physical != nullptr ? read_word(ur, map(ur, physical)) : " nothing");

  data = producer.receive();
  ur_event_handle_t event = nullptr;
  result = urIPCOpenEventHandleExp(ur.context, data.data(), data.size(), &event);
  producer.say("opened");
  producer.await("signalled");
  if (event != nullptr) CHECK(urEventWait(1, &event));
  say("event", data, result, " waited");
  if (event != nullptr) CHECK(urEventRelease(event));
  producer.say("done");
}

int main(int argc, char **argv) {
  const bool child = argc > 1 && std::string(argv[1]) == "child";
  // This process has read its environment already; the other one is about to.
  for (int i = 1; i < argc && !child; ++i) require(putenv(argv[i]) == 0, "no such variable");
  return run(argc, argv, producer, consumer);
}
