// For the programs after public reports of CUDA programs: each has a mistake, and is without it if its argument is "fixed".
#pragma once

#include "cuda_driver.hpp"
#include "peer.hpp"

#include <cstring>

namespace app {

constexpr size_t message_size = 2 << 20;

inline void check(CUresult result, const char *what) {
  require(result == CUDA_SUCCESS, std::string(what) + " returned " + std::to_string(result));
}

// Makes the primary context of the first device current.
inline void use_device() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  check(cuInit(0), "cuInit");
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

// Device memory that is full of one letter.
inline CUdeviceptr filled(unsigned char letter) {
  CUdeviceptr memory = 0;
  check(cuMemAlloc(&memory, message_size), "cuMemAlloc");
  check(cuMemsetD8(memory, letter, message_size), "cuMemsetD8");
  return memory;
}

inline Bytes message(const CUipcMemHandle &handle) {
  const auto *begin = reinterpret_cast<const std::byte *>(&handle);
  return Bytes(begin, begin + sizeof handle);
}

// A handle that came in a message.
inline CUipcMemHandle handle_in(const Bytes &message) {
  CUipcMemHandle handle = {};
  require(message.size() == sizeof handle, "the message is no handle");
  std::memcpy(&handle, message.data(), sizeof handle);
  return handle;
}

} // namespace app
