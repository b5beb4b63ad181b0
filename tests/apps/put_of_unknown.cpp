// The violation: a put of a handle that no get has returned: a copy, as in a program that received the bytes from another
// process.
//
// The adapters free the buffer with their allocator, which trusts the word before it. So the copy includes that word and has
// room to spare, and what the adapter does with it later is harmless.
#include "ipc_app.hpp"

using namespace app;

alignas(64) static std::byte foreign[4096];

int main() {
  return run_alone([] {
    Gpu gpu;
    auto [memory, handle] = export_pattern(gpu, 1 << 20, 13);
    const Bytes data = handle.data();
    std::byte *real;
    std::memcpy(&real, &handle, sizeof real); // The pointer is its first member.

    std::byte *copy = foreign + 64;
    std::memcpy(copy - sizeof(size_t), real - sizeof(size_t), sizeof(size_t));
    std::memcpy(copy, data.data(), data.size());
    const Handle unknown = with_data_at(handle, copy);

    print("put of a copy " + outcome([&] { put(unknown, gpu); }));
    put(handle, gpu);
    gpu.free(memory);
  });
}
