// The violation: a handle is put that no get has handed out: a copy of a good one, as a program has it that received the
// bytes from elsewhere.
//
// The adapters give the buffer to the allocator they made it with, which trusts the word in front of it. So the
// copy brings that word along and has room to spare: what the adapter does with it later is then harmless.
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
