// Intel SHMEM from the host: put, get, one element, a reduction, a broadcast and an atomic, between all processing elements. Prints
// whether the data are right.
#include <ishmem.h>

#include <cstdio>
#include <vector>

namespace {
constexpr int length = 1000;

std::vector<int> of(int element) {
  std::vector<int> data(length);
  for (int at = 0; at < length; ++at) data[at] = element * 10000 + at;
  return data;
}

std::vector<int> fetched(const int *memory, int element) {
  std::vector<int> data(length);
  ishmem_getmem(data.data(), memory, length * sizeof(int), element);
  return data;
}
} // namespace

int main() {
  ishmem_init();
  const int me = ishmem_my_pe(), all = ishmem_n_pes(), next = (me + 1) % all, previous = (me + all - 1) % all;
  auto *mine = static_cast<int *>(ishmem_malloc(length * sizeof(int)));
  auto *received = static_cast<int *>(ishmem_malloc(length * sizeof(int)));
  auto *words = static_cast<int *>(ishmem_malloc(2 * sizeof(int)));
  bool right = true;

  ishmem_putmem(mine, of(me).data(), length * sizeof(int), me);
  ishmem_putmem(received, of(me).data(), length * sizeof(int), next);
  ishmem_barrier_all();
  right &= fetched(received, me) == of(previous) && fetched(mine, next) == of(next);
  ishmem_barrier_all();

  ishmem_int_p(words, me + 5, next);
  ishmem_int_p(words + 1, 0, me);
  ishmem_barrier_all();
  right &= ishmem_int_g(words, me) == previous + 5;
  ishmem_int_atomic_add(words + 1, 1, 0);
  ishmem_barrier_all();
  right &= me != 0 || ishmem_int_g(words + 1, 0) == all;

  ishmem_int_sum_reduce(received, mine, length);
  std::vector<int> sum(length);
  for (int element = 0; element < all; ++element) {
    const auto data = of(element);
    for (int at = 0; at < length; ++at) sum[at] += data[at];
  }
  right &= fetched(received, me) == sum;
  ishmem_barrier_all();
  ishmem_int_broadcast(received, mine, length, 0);
  right &= me == 0 || fetched(received, me) == of(0);
  ishmem_barrier_all();

  std::printf("processing element %d of %d: %s\n", me, all, right ? "right" : "wrong");
  for (auto *memory : {words, received, mine}) ishmem_free(memory);
  ishmem_finalize();
  return right ? 0 : 1;
}
