// A program to try urscope with: two processes share memory, without a mistake.
#include <cstddef>
#include <string_view>
#include <vector>

#include <sycl/detail/core.hpp>
#include <sycl/ext/oneapi/experimental/ipc_memory.hpp>
#include <sycl/usm.hpp>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ipc = sycl::ext::oneapi::experimental::ipc::memory;
using Bytes = std::vector<std::byte>;

static void send(int socket, const Bytes &data) { (void)!write(socket, data.data(), data.size()); }
static void send(int socket, std::string_view text) { (void)!write(socket, text.data(), text.size()); }

static Bytes receive(int socket) {
  Bytes data(4096);
  data.resize(std::max(read(socket, data.data(), data.size()), ssize_t{0}));
  return data;
}

static void consume(int producer) {
  sycl::queue gpu{sycl::gpu_selector_v};
  void *memory = ipc::open(receive(producer), gpu.get_context(), gpu.get_device());
  send(producer, "open");
  receive(producer);
  ipc::close(memory, gpu.get_context());
  send(producer, "closed");
}

static void produce(int consumer) {
  sycl::queue gpu{sycl::gpu_selector_v};
  void *memory = sycl::malloc_device(8 << 20, gpu);
  auto handle = ipc::get(memory, gpu.get_context());
  send(consumer, handle.data());
  receive(consumer); // it is open
  ipc::put(handle, gpu.get_context());
  send(consumer, "close it");
  receive(consumer); // it is closed
  sycl::free(memory, gpu);
}

int main() {
  int sockets[2];
  socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets);
  // Each process starts the runtime by itself: a fork after that would break it.
  if (fork() == 0) {
    consume(sockets[0]);
  } else {
    // Some kernels let the child open what the parent shares only if the parent permits it.
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    produce(sockets[1]);
    while (wait(nullptr) > 0) {
    }
  }
}
