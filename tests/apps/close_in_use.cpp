// The violation: the consumer closes memory that its copy still reads. With the argument "mended" it waits for the copy first.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = 1 << 20;

int main(int argc, char **argv) {
  Bytes data(size);
  return close_while_read(argc, argv, pattern(size, 31), pattern(size, 32), [&](Gpu &gpu, const std::byte *memory) {
    return Reading{gpu.queue.memcpy(data.data(), memory, size), [&] { return data == pattern(size, 31); }};
  });
}
