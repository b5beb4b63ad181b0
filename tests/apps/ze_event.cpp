// Two processes share a counter-based event through Level Zero's own functions: a command of the producer signals it, and the consumer
// waits for it. The argument names what is right or wrong with it; "list" prints the names.
#include "ze_app.hpp"

using namespace app;

// ze_event_counter_based_flag_t
static constexpr uint32_t IMMEDIATE = 1, HOST_VISIBLE = 4, IPC = 8;

static const char *const CASES[] = {"right",        "by-extension", "two-events",    "left-open",
                                    "closed-twice", "close-of-own", "after-destroy", "without-flag"};

// The functions, by their own names or by those that they have in Intel's driver.
struct Functions {
  explicit Functions(const Ze &ze, bool by_extension) {
    create = ze.zeEventCounterBasedCreate;
    get = ze.zeEventCounterBasedGetIpcHandle;
    open = ze.zeEventCounterBasedOpenIpcHandle;
    close = ze.zeEventCounterBasedCloseIpcHandle;
    if (!by_extension) return;
    ze.find("zexCounterBasedEventCreate2", create);
    ze.find("zexCounterBasedEventGetIpcHandle", get);
    ze.find("zexCounterBasedEventOpenIpcHandle", open);
    ze.find("zexCounterBasedEventCloseIpcHandle", close);
  }

  decltype(Ze::zeEventCounterBasedCreate) create;
  decltype(Ze::zeEventCounterBasedGetIpcHandle) get;
  decltype(Ze::zeEventCounterBasedOpenIpcHandle) open;
  decltype(Ze::zeEventCounterBasedCloseIpcHandle) close;
};

static ze_handle_t made(const Ze &ze, const Functions &functions, uint32_t flags) {
  const ze_event_counter_based_desc_t desc = {0x3001c, nullptr, flags, 4, 4};
  ze_handle_t event = nullptr;
  Ze::check(functions.create(ze.context, ze.device, &desc, &event), "the creation of an event");
  return event;
}

static void signal(const Ze &ze, ze_handle_t event) {
  const ze_handle_t list = ze.immediate_list();
  Ze::check(ze.zeCommandListAppendSignalEvent(list, event), "zeCommandListAppendSignalEvent");
  Ze::check(ze.zeEventHostSynchronize(event, UINT64_MAX), "zeEventHostSynchronize");
  Ze::check(ze.zeCommandListDestroy(list), "zeCommandListDestroy");
}

static void producer(const Ze &ze, Peer &consumer, const std::string &what) {
  const Functions functions(ze, what == "by-extension");
  const uint32_t flags = IMMEDIATE | HOST_VISIBLE;
  const ze_handle_t event = made(ze, functions, what == "without-flag" ? flags : flags | IPC);
  // Its handle is another one, though both may be in one file.
  ze_handle_t other = nullptr;
  ze_ipc_mem_handle_t handle = {}, of_other = {};
  if (what == "without-flag") {
    print(functions.get(event, &handle) == 0 ? "got" : "refused");
    consumer.say("refused");
  } else {
    Ze::check(functions.get(event, &handle), "a get");
    if (what == "two-events") {
      other = made(ze, functions, flags | IPC);
      Ze::check(functions.get(other, &of_other), "a get");
    }
    consumer.send(message(handle));
    consumer.await("received");
    if (what == "after-destroy") Ze::check(ze.zeEventDestroy(event), "zeEventDestroy");
    consumer.say("open");
    consumer.await("opened");
    if (what != "after-destroy") signal(ze, event);
    consumer.say("signalled");
    consumer.await("closed");
  }
  if (what == "close-of-own") functions.close(event);
  if (what != "after-destroy") Ze::check(ze.zeEventDestroy(event), "zeEventDestroy");
  if (other) Ze::check(ze.zeEventDestroy(other), "zeEventDestroy");
  print("producer is done");
}

static void consumer(const Ze &ze, Peer &producer, const std::string &what) {
  const Functions functions(ze, what == "by-extension");
  const Bytes received = producer.receive();
  if (received.size() < sizeof(ze_ipc_mem_handle_t)) return print("there is no handle");
  // The bytes are passed on as they came: the driver fetches what belongs to them.
  ze_ipc_mem_handle_t handle = {};
  std::memcpy(&handle, received.data(), sizeof handle);
  producer.say("received");
  producer.await("open");
  ze_handle_t event = nullptr;
  const uint32_t result = functions.open(ze.context, handle, &event);
  print(result == 0 ? "opened" : "refused");
  producer.say("opened");
  producer.await("signalled");
  if (result == 0) {
    Ze::check(ze.zeEventHostSynchronize(event, UINT64_MAX), "zeEventHostSynchronize");
    print("the event is signalled");
    if (what != "left-open") Ze::check(functions.close(event), "a close");
    if (what == "closed-twice") functions.close(event);
  }
  producer.say("closed");
}

int main(int argc, char **argv) { return run_case(argc, argv, CASES, producer, consumer); }
