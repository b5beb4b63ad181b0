// Measures a get and a put of one allocation through Level Zero, as communication libraries call it. `bench_ze_get_put [ROUNDS [PAIRS
// [fstat]]]` prints the nanoseconds of processor time for one pair, one line per round. With `fstat`, the kernel is asked in each pair which
// file the descriptor of the handle refers to. See bench_get_put.cpp for the same through SYCL.
#include "ze_app.hpp"

#include <cstring>
#include <ctime>
#include <sys/stat.h>

using namespace app;

namespace {

double processor_time() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

} // namespace

int main(int argc, char **argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  const int pairs = argc > 2 ? std::atoi(argv[2]) : 100000;
  const bool asks = argc > 3 && std::strcmp(argv[3], "fstat") == 0;
  return guarded([=] {
    const Ze ze;
    void *memory = ze.allocate(1 << 20);
    for (int round = 0; round < rounds; round++) {
      const double begin = processor_time();
      for (int pair = 0; pair < pairs; pair++) {
        ze_ipc_mem_handle_t handle = {};
        Ze::check(ze.zeMemGetIpcHandle(ze.context, memory, &handle), "zeMemGetIpcHandle");
        int descriptor = 0;
        struct stat status = {};
        std::memcpy(&descriptor, &handle, sizeof descriptor);
        if (asks) require(fstat(descriptor, &status) == 0, "fstat");
        Ze::check(ze.zeMemPutIpcHandle(ze.context, handle), "zeMemPutIpcHandle");
      }
      print(std::to_string((processor_time() - begin) / pairs));
    }
    Ze::check(ze.zeMemFree(ze.context, memory), "zeMemFree");
  });
}
