// Ranks broadcast and gather device memory with oneCCL, which shares it between processes through Level Zero.
//
// The argument is a file through which rank 0 tells the others its address. A launcher starts the ranks.
#include <oneapi/ccl.hpp>
#include <sycl/sycl.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

static constexpr size_t COUNT = 1 << 16;

using Address = ccl::kvs::address_type;

// The store through which the ranks find each other.
static ccl::shared_ptr_class<ccl::kvs> meeting(int rank, const std::string &file) {
  if (rank == 0) {
    auto store = ccl::create_main_kvs();
    const Address address = store->get_address();
    std::ofstream(file + ".new", std::ios::binary).write(address.data(), address.size());
    std::rename((file + ".new").c_str(), file.c_str());
    return store;
  }
  while (access(file.c_str(), R_OK) != 0) usleep(1000);
  Address address;
  std::ifstream(file, std::ios::binary).read(address.data(), address.size());
  return ccl::create_kvs(address);
}

int main(int, char **argv) {
  const int rank = std::atoi(std::getenv("PMI_RANK")), size = std::atoi(std::getenv("PMI_SIZE"));
  ccl::init();
  const auto store = meeting(rank, argv[1]);
  const auto devices = sycl::device::get_devices(sycl::info::device_type::gpu);
  sycl::queue queue{devices.at(rank % devices.size()), sycl::property::queue::in_order()};
  auto device = ccl::create_device(queue.get_device());
  auto context = ccl::create_context(queue.get_context());
  auto ranks = ccl::create_communicator(size, rank, device, context, store);
  auto stream = ccl::create_stream(queue);
  int *mine = sycl::malloc_device<int>(COUNT, queue), *all = sycl::malloc_device<int>(COUNT * size, queue);
  std::vector<int> host(COUNT), gathered(COUNT * size);
  bool right = true;
  for (int turn = 0; turn < 3; turn++) {
    host.assign(COUNT, rank == 0 ? 42 + turn : 0);
    queue.memcpy(mine, host.data(), COUNT * sizeof(int)).wait();
    ccl::broadcast(mine, COUNT, 0, ranks, stream).wait();
    queue.memcpy(host.data(), mine, COUNT * sizeof(int)).wait();
    for (int value : host) right &= value == 42 + turn;
    host.assign(COUNT, rank + 1);
    queue.memcpy(mine, host.data(), COUNT * sizeof(int)).wait();
    ccl::allgather(mine, all, COUNT, ranks, stream).wait();
    queue.memcpy(gathered.data(), all, COUNT * size * sizeof(int)).wait();
    for (size_t at = 0; at < gathered.size(); at++) right &= gathered[at] == static_cast<int>(at / COUNT) + 1;
  }
  std::printf("rank %d: %s\n", rank, right ? "right" : "wrong");
  std::fflush(stdout);
  sycl::free(mine, queue);
  sycl::free(all, queue);
}
