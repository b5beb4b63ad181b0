// Intel SHMEM from the host: put, get, one element, a reduction, a broadcast and an atomic, between all processing elements. Prints
// whether the data are right.
//
// With the argument `closed-while-copied`, elements 0 and 1 also share memory of their own, by Level Zero, and element 1 makes a mistake.
#include "ze_app.hpp"

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

// Element 0 sends the handle of memory that is not in the symmetric heap through memory that is. Element 1 closes the memory while it
// copies from there.
void close_while_copying(int me) {
  const app::Ze ze;
  constexpr size_t size = length * sizeof(int), words = sizeof(app::ze_ipc_mem_handle_t) + sizeof(pid_t);
  auto *mail = ishmem_malloc(words);
  void *memory = nullptr;
  app::ze_ipc_mem_handle_t handle = {};
  if (me == 0) {
    memory = ze.allocate(size);
    app::Ze::check(ze.zeMemGetIpcHandle(ze.context, memory, &handle), "zeMemGetIpcHandle");
    ishmem_putmem(mail, app::message(handle).data(), words, 1);
  }
  ishmem_barrier_all();
  if (me == 1) {
    app::Bytes message(words);
    ishmem_getmem(message.data(), mail, words, 1);
    void *opened = nullptr;
    app::Ze::check(ze.zeMemOpenIpcHandle(ze.context, ze.device, app::fetched(message), 0, &opened), "zeMemOpenIpcHandle");
    static char here[size];
    const app::HeldCopy copy(ze, here, opened, size);
    app::Ze::check(ze.zeMemCloseIpcHandle(ze.context, opened), "zeMemCloseIpcHandle");
    copy.let_go();
    copy.wait();
  }
  ishmem_barrier_all();
  if (me == 0) {
    app::Ze::check(ze.zeMemPutIpcHandle(ze.context, handle), "zeMemPutIpcHandle");
    app::Ze::check(ze.zeMemFree(ze.context, memory), "zeMemFree");
  }
  ishmem_free(mail);
}
} // namespace

int main(int count, char **arguments) {
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
  if (count > 1 && std::string(arguments[1]) == "closed-while-copied") close_while_copying(me);

  std::printf("processing element %d of %d: %s\n", me, all, right ? "right" : "wrong");
  for (auto *memory : {words, received, mine}) ishmem_free(memory);
  ishmem_finalize();
  return right ? 0 : 1;
}
