// Ranks broadcast and gather device memory with oneCCL, which shares it between processes through Level Zero.
//
//
//     ccl_collectives FILE WHAT
//
// FILE is one through which rank 0 tells the others its address. WHAT is `move` for what needs no kernels, `without-pairs` for the same
// without send and receive, `reduce` for sums, and `forgetful` for a mistake. A launcher starts the ranks.
#include "../../device/interface/ze_soft.h"
#include "witness.hpp"
#include "ze_app.hpp"

#include <oneapi/ccl.hpp>
#include <sycl/sycl.hpp>

#include <algorithm>
#include <fstream>

static constexpr size_t COUNT = 1 << 16;

static int number_in(const char *variable) { return std::atoi(std::getenv(variable)); }

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

// One rank with its device.
class Rank {
public:
  explicit Rank(const std::string &file) : store(meeting(number, file)) {}

  int *allocate(size_t size) { return sycl::malloc_device<int>(size, queue); }
  void free(std::initializer_list<int *> buffers) {
    for (int *buffer : buffers) sycl::free(buffer, queue);
  }
  void fill(int *buffer, size_t size, int value) {
    const std::vector<int> host(size, value);
    queue.memcpy(buffer, host.data(), size * sizeof(int)).wait();
  }
  // Whether that is what an operation has left there.
  bool holds(const char *operation, const int *buffer, size_t size, int value) {
    std::vector<int> host(size, -1);
    queue.memcpy(host.data(), buffer, size * sizeof(int)).wait();
    const auto wrong = std::find_if(host.begin(), host.end(), [&](int found) { return found != value; });
    if (wrong == host.end()) return true;
    app::print("rank " + std::to_string(number) + ": after " + operation + ", element " +
               std::to_string(wrong - host.begin()) + " is " + std::to_string(*wrong) + ", not " + std::to_string(value));
    return false;
  }

  const int number = number_in("PMI_RANK"), count = number_in("PMI_SIZE");
  bool exchanges = true;

private:
  ccl::shared_ptr_class<ccl::kvs> store;
  const std::vector<sycl::device> devices = sycl::device::get_devices(sycl::info::device_type::gpu);

public:
  sycl::queue queue{devices.at(number % devices.size()), sycl::property::queue::in_order()};
  ccl::device device = ccl::create_device(queue.get_device());
  ccl::context context = ccl::create_context(queue.get_context());
  ccl::communicator ranks = ccl::create_communicator(count, number, device, context, store);
  ccl::stream stream = ccl::create_stream(queue);
};

// The first arguments of zeModuleCreate (ze_api.h).
struct ModuleCreate {
  void **context, **device;
  const app::ze_module_desc_t **desc;
};

// Before a module is built: it is built without optimization, which would take longer than all that its kernels do here.
static void build_as_it_is(const void *arguments, uint32_t, void *, void **) {
  static thread_local app::ze_module_desc_t changed;
  const app::ze_module_desc_t *&desc = *static_cast<const ModuleCreate *>(arguments)->desc;
  changed = *desc;
  changed.flags = "-ze-opt-disable";
  desc = &changed;
}

// Sums of all ranks' values, which take kernels.
static bool reduces(Rank &rank) {
  int *mine = rank.allocate(COUNT), *sums = rank.allocate(COUNT);
  bool right = true;
  for (int turn = 0; turn < 2; turn++) {
    rank.fill(mine, COUNT, rank.number + turn + 1);
    ccl::allreduce(mine, sums, COUNT, ccl::reduction::sum, rank.ranks, rank.stream).wait();
    const int sum = rank.count * (rank.count + 1) / 2 + turn * rank.count;
    right &= rank.holds("allreduce", sums, COUNT, sum);
  }
  rank.free({mine, sums});
  return right;
}

// Everything else.
static bool moves(Rank &rank) {
  const size_t size = rank.count;
  int *mine = rank.allocate(COUNT), *all = rank.allocate(COUNT * size);
  bool right = true;
  for (int turn = 0; turn < 3; turn++) {
    rank.fill(mine, COUNT, rank.number == 0 ? 42 + turn : 0);
    ccl::broadcast(mine, COUNT, 0, rank.ranks, rank.stream).wait();
    right &= rank.holds("broadcast", mine, COUNT, 42 + turn);

    rank.fill(mine, COUNT, rank.number + 1 + turn);
    ccl::allgather(mine, all, COUNT, rank.ranks, rank.stream).wait();
    for (size_t at = 0; at < size; at++) right &= rank.holds("allgather", all + at * COUNT, COUNT, at + 1 + turn);

    // Each rank has half as much as the one before it.
    std::vector<size_t> counts(size);
    for (size_t at = 0; at < size; at++) counts[at] = COUNT >> at;
    rank.fill(all, COUNT * size, 0);
    ccl::allgatherv(mine, counts[rank.number], all, counts, rank.ranks, rank.stream).wait();
    size_t begin = 0;
    for (size_t at = 0; at < size; begin += counts[at++]) {
      right &= rank.holds("allgatherv", all + begin, counts[at], at + 1 + turn);
    }

    // Neighbours exchange: even ranks send first.
    if (rank.exchanges) {
      const int other = rank.number ^ 1;
      if (rank.number % 2 == 0) ccl::send(mine, COUNT, other, rank.ranks, rank.stream).wait();
      ccl::recv(all, COUNT, other, rank.ranks, rank.stream).wait();
      if (rank.number % 2 == 1) ccl::send(mine, COUNT, other, rank.ranks, rank.stream).wait();
      // A send of oneCCL 2022.1 is over before the receiver has read the buffer.
      ccl::barrier(rank.ranks).wait();
      right &= rank.holds("receive", all, COUNT, other + 1 + turn);
    }
  }
  rank.free({mine, all});
  return right;
}

// The mistake: nobody waits for the collective, and its buffer is freed while a copy of it has not finished.
static bool forgets_to_wait(Rank &rank) {
  int *mine = rank.allocate(COUNT), *all = rank.allocate(COUNT * rank.count);
  void *library = dlopen("libze_loader.so.1", RTLD_LAZY);
  auto device = static_cast<const ze_soft_interface_t *>(dlsym(library, "zeSoftInterface"));
  ccl::event done = ccl::allgather(mine, all, COUNT, rank.ranks, rank.stream);
  while (device->unfinished_from(all) >= COUNT * rank.count * sizeof(int)) sched_yield();
  sycl::free(all, rank.queue);
  done.wait();
  rank.free({mine});
  return true;
}

int main(int, char **argv) {
  const app::Witness witness{{"ModuleCreate", build_as_it_is}};
  ccl::init();
  const std::string what = argv[2];
  Rank rank(argv[1]);
  rank.exchanges = what != "without-pairs";
  const bool right = what == "reduce" ? reduces(rank) : what == "forgetful" ? forgets_to_wait(rank) : moves(rank);
  app::print("rank " + std::to_string(rank.number) + ": " + (right ? "right" : "wrong"));
}
