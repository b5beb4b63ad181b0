// A mistake to try urscope with: a rank frees its memory while the others have it open.
//
//     mpiexec -n 4 ./ranks          the ranks of a job on one host; the same under srun
//     ./ranks                       two processes, without a launcher
//     ./ranks right                 the same without the mistake
//
// Rank 0 shares memory, the others open it. It frees the memory before they have closed it. To fix it, free it at the
// end, as with the argument "right".
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include <sycl/detail/core.hpp>
#include <sycl/ext/oneapi/experimental/ipc_memory.hpp>
#include <sycl/usm.hpp>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ipc = sycl::ext::oneapi::experimental::ipc::memory;
using Bytes = std::vector<std::byte>;

static void send(int socket, const Bytes &data) { (void)!write(socket, data.data(), data.size()); }
static void send(int socket, std::string_view text) { (void)!write(socket, text.data(), text.size()); }

static Bytes receive(int socket) {
  Bytes data(4096);
  const ssize_t size = read(socket, data.data(), data.size());
  if (size <= 0) std::exit(3); // the other rank is gone
  data.resize(size_t(size));
  return data;
}

// The first number that a launcher has set: MPICH, Open MPI, Slurm.
static int of_launcher(std::initializer_list<const char *> names, int otherwise) {
  for (const char *name : names)
    if (const char *value = std::getenv(name)) return std::atoi(value);
  return otherwise;
}

// Slurm lists the ranks of the host instead.
static int ranks_of_host() {
  int ranks = 1;
  if (const char *listed = std::getenv("SLURM_GTIDS"))
    for (; *listed; ++listed) ranks += *listed == ',';
  return of_launcher({"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"}, ranks);
}

// The ranks of a host meet at a socket in the current folder.
static sockaddr_un meeting() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "ranks.socket");
  return address;
}

static std::vector<int> accept_others(int count) {
  const sockaddr_un address = meeting();
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  unlink(address.sun_path);
  if (bind(listener, reinterpret_cast<const sockaddr *>(&address), sizeof address) || listen(listener, count)) std::exit(3);
  std::vector<int> others;
  while (int(others.size()) < count) others.push_back(accept(listener, nullptr, nullptr));
  unlink(address.sun_path);
  return others;
}

static int connect_to_first() {
  const sockaddr_un address = meeting();
  for (int tries = 0; tries < 3000; ++tries) {
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (!connect(socket, reinterpret_cast<const sockaddr *>(&address), sizeof address)) return socket;
    close(socket);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::exit(3);
}

static void share(const std::vector<int> &others, bool right) {
  sycl::queue gpu{sycl::gpu_selector_v};
  void *memory = sycl::malloc_device(8 << 20, gpu);
  gpu.memset(memory, 7, 8 << 20).wait();
  auto handle = ipc::get(memory, gpu.get_context());
  for (int other : others) send(other, handle.data());
  for (int other : others) receive(other); // it is open
  ipc::put(handle, gpu.get_context());
  if (!right) sycl::free(memory, gpu); // too early: the others have it open
  for (int other : others) send(other, "close it");
  for (int other : others) receive(other); // it is closed
  if (right) sycl::free(memory, gpu);
}

static void use(int first) {
  sycl::queue gpu{sycl::gpu_selector_v};
  void *memory = ipc::open(receive(first), gpu.get_context(), gpu.get_device());
  std::vector<char> copy(8 << 20);
  gpu.memcpy(copy.data(), memory, copy.size()).wait();
  send(first, "open");
  receive(first);
  ipc::close(memory, gpu.get_context());
  send(first, "closed");
}

int main(int argc, char **argv) {
  const bool right = argc > 1 && std::string_view(argv[1]) == "right";
  int rank = of_launcher({"MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}, -1);
  int ranks = ranks_of_host();
  if (rank < 0) {
    // Each process starts the runtime by itself: a fork after that would break it.
    rank = fork() == 0 ? 1 : 0;
    ranks = 2;
  }
  if (rank > 0) {
    use(connect_to_first());
  } else {
    // Some kernels let other processes open what this one shares only if it permits them.
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    share(accept_others(ranks - 1), right);
    while (wait(nullptr) > 0) {
    }
  }
}
