// A producer and a consumer with different backends: handles of each kind, and the results of using them.
//
// The arguments are environment variables for the consumer only, as NAME=VALUE. Results are ur_result_t.
#include "ur_app.hpp"

using namespace app;

constexpr size_t size = 8 << 20;

static void write_word(const Ur &ur, void *memory, uint64_t word) { ur.copy(memory, &word, sizeof word); }
static std::string read_word(const Ur &ur, const void *memory) {
  uint64_t word = 0;
  ur.copy(&word, memory, sizeof word);
  return " read " + std::to_string(word);
}

// The handle data that a get returned, or nothing.
static void send(const Peer &consumer, ur_result_t got, const Data &data) {
  consumer.send(got == UR_RESULT_SUCCESS ? data.copy() : Bytes(1));
}

static void producer(Peer &consumer) {
  Ur ur;
  Data data;
  void *memory = ur.allocate(size);
  write_word(ur, memory, 42);
  ur_result_t got = urIPCGetMemHandleExp(ur.context, memory, &data.data, &data.size);
  send(consumer, got, data);

  ur_physical_mem_handle_t physical = ur.make_memory(UR_PHYSICAL_MEM_FLAG_ENABLE_IPC, size);
  write_word(ur, ur.map(physical, size), 43);
  got = urIPCGetPhysMemHandleExp(ur.context, physical, &data.data, &data.size);
  send(consumer, got, data);

  ur_event_handle_t event = nullptr;
  got = ur.try_create(UR_EXP_EVENT_FLAG_IPC_EXP, &event);
  if (got == UR_RESULT_SUCCESS) data = ur.get(event);
  send(consumer, got, data);
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
  ur_result_t result = ur.try_open(data, &memory);
  say("memory", data, result, memory != nullptr ? read_word(ur, memory) : " nothing");
  if (memory != nullptr) ur.close(memory);

  data = producer.receive();
  ur_physical_mem_handle_t physical = nullptr;
  result = urIPCOpenPhysMemHandleExp(ur.context, ur.device, data.data(), data.size(), &physical);
  say("physical memory", data, result, physical != nullptr ? read_word(ur, ur.map(physical, size)) : " nothing");

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
