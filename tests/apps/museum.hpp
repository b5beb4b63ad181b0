// For the programs after public reports: each has a mistake, and is without it if its argument is "fixed".
#pragma once

#include "ze_app.hpp"

namespace app {

constexpr size_t message_size = 1 << 16;

// Device memory of a sender, full of one letter.
inline char *filled(const Ze &ze, char letter, size_t size = message_size) {
  auto *memory = static_cast<char *>(ze.allocate(size));
  std::memset(memory, letter, size);
  return memory;
}

// Frees memory and allocates as much again, at the same address.
inline char *replaced(const Ze &ze, char *memory, char letter) {
  ze.free(memory);
  char *other = filled(ze, letter);
  require(other == memory, "the driver hands out another address");
  return other;
}

// What a receiver got: the letter that all its bytes are.
inline void print_received(const char *what, const char *data, size_t size = message_size) {
  for (size_t i = 1; i < size; ++i) require(data[i] == data[0], "the data is mixed");
  print(std::string(what) + " is " + data[0]);
}

// A copy out of opened memory that is complete when it returns.
inline void receive_by_copy(const Ze &ze, char *to, const void *from, size_t size = message_size) {
  const HeldCopy copy(ze, to, from, size);
  copy.let_go();
  copy.wait();
}

// What messaging libraries do with one descriptor and no more of a handle.
inline ze_ipc_mem_handle_t only_descriptor(int number) {
  ze_ipc_mem_handle_t handle = {};
  std::memcpy(handle.data, &number, sizeof number);
  return handle;
}

// A handle that came in a message, opened; its descriptor is closed again.
inline char *opened(const Ze &ze, const Bytes &message) {
  const ze_ipc_mem_handle_t handle = fetched(message);
  void *memory = ze.open(handle);
  ::close(descriptor(handle));
  return static_cast<char *>(memory);
}

} // namespace app
