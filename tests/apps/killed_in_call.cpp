// The consumer (the child here) is killed in the middle of urIPCOpenMemHandleExp, after it has finished some cycles.
//
// The adapter fetches the producer's descriptor inside that call, with syscall(SYS_pidfd_getfd). This program brings
// a `syscall` of its own, which the adapter finds first, and which kills the process at that point.
#include "ipc_app.hpp"

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <sys/syscall.h>

using namespace app;

static std::atomic<bool> armed{false};

extern "C" __attribute__((visibility("default"))) long syscall(long number, ...) noexcept {
  if (armed && number == SYS_pidfd_getfd) ::kill(getpid(), SIGKILL);
  va_list arguments;
  va_start(arguments, number);
  long a[6];
  for (long &argument : a) argument = va_arg(arguments, long);
  va_end(arguments);
  register long r10 asm("r10") = a[3], r8 asm("r8") = a[4], r9 asm("r9") = a[5];
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  if (result >= 0 || result < -4095) return result;
  errno = static_cast<int>(-result);
  return -1;
}

constexpr size_t size = unpooled;
constexpr int cycles = 10;

static void producer(Peer &consumer) {
  Gpu gpu;
  auto first = export_pattern(gpu, size, 15);
  auto second = export_pattern(gpu, size, 16);
  consumer.send(first.handle.data());
  consumer.send(second.handle.data());
  consumer.require_killed(); // inside its last open
  print("consumer was killed");
  for (auto &[memory, handle] : {first, second}) {
    put(handle, gpu);
    gpu.free(memory);
  }
}

static void consumer(Peer &producer) {
  Gpu gpu;
  const Bytes first = producer.receive(), second = producer.receive();
  for (int cycle = 0; cycle < cycles; cycle++) close(open(first, gpu), gpu);
  print("consumer finished open " + std::to_string(cycles) + ", close " + std::to_string(cycles));
  armed = true;
  open(second, gpu);
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
