// Two processes share an event pool through Level Zero's own functions: the producer signals its event, and the consumer waits for it.
// The argument names what is right or wrong with it; "list" prints the names.
#include "ze_app.hpp"

using namespace app;

// ze_event_pool_flag_t
static constexpr uint32_t HOST_VISIBLE = 1, IPC = 2;

static const char *const CASES[] = {"right", "two-pools", "put-twice", "never-put", "left-open", "close-twice", "without-flag"};

static void producer(const Ze &ze, Peer &consumer, const std::string &what) {
  const ze_handle_t pool = ze.pool(what == "without-flag" ? HOST_VISIBLE : HOST_VISIBLE | IPC);
  const ze_handle_t event = ze.event(pool);
  ze_ipc_mem_handle_t handle = {};
  const auto put = [&ze](const ze_ipc_mem_handle_t &handle) {
    Ze::check(ze.zeEventPoolPutIpcHandle(ze.context, handle), "zeEventPoolPutIpcHandle");
  };
  if (what == "two-pools") {
    const ze_handle_t other = ze.pool(HOST_VISIBLE | IPC);
    ze_ipc_mem_handle_t of_other = {};
    Ze::check(ze.zeEventPoolGetIpcHandle(pool, &handle), "zeEventPoolGetIpcHandle");
    Ze::check(ze.zeEventPoolGetIpcHandle(other, &of_other), "zeEventPoolGetIpcHandle");
    put(handle);
    put(of_other);
    Ze::check(ze.zeEventPoolDestroy(other), "zeEventPoolDestroy");
  }
  if (what == "never-put")
    for (int more = 0; more < 300; more++) Ze::check(ze.zeEventPoolGetIpcHandle(pool, &handle), "zeEventPoolGetIpcHandle");
  if (ze.zeEventPoolGetIpcHandle(pool, &handle) == 0) {
    consumer.send(message(handle));
    consumer.await("opened");
    Ze::check(ze.zeEventHostSignal(event), "zeEventHostSignal");
    consumer.await("closed");
    if (what == "put-twice") {
      put(handle);
      put(handle);
    }
  } else {
    consumer.say("refused");
  }
  Ze::check(ze.zeEventDestroy(event), "zeEventDestroy");
  Ze::check(ze.zeEventPoolDestroy(pool), "zeEventPoolDestroy");
  print("producer is done");
}

static void consumer(const Ze &ze, Peer &producer, const std::string &what) {
  const Bytes received = producer.receive();
  if (received.size() < sizeof(ze_ipc_mem_handle_t)) return print("there is no handle");
  const ze_ipc_mem_handle_t handle = fetched(received);
  ze_handle_t pool = nullptr;
  Ze::check(ze.zeEventPoolOpenIpcHandle(ze.context, handle, &pool), "zeEventPoolOpenIpcHandle");
  const ze_handle_t event = ze.event(pool);
  producer.say("opened");
  Ze::check(ze.zeEventHostSynchronize(event, UINT64_MAX), "zeEventHostSynchronize");
  print("the event is signalled");
  Ze::check(ze.zeEventDestroy(event), "zeEventDestroy");
  if (what != "left-open") Ze::check(ze.zeEventPoolCloseIpcHandle(pool), "zeEventPoolCloseIpcHandle");
  if (what == "close-twice") ze.zeEventPoolCloseIpcHandle(pool);
  close(descriptor(handle));
  producer.say("closed");
}

int main(int argc, char **argv) { return run_case(argc, argv, CASES, producer, consumer); }
