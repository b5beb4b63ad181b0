// A process shares memory with another one, which runs kernels on it and closes it too early: before the last launch, whose kernel
// does nothing with its argument. The memory is named in a structure, as libraries do. Fixed, it closes it afterwards. "by_library" launches a
// CUkernel, as libcudart does.
#include "museum_cuda.hpp"

using namespace app;

// Writes a value to the memory, unless it is 0.
const char *const image = R"(
.version 6.3
.target sm_75
.address_size 64
.visible .entry write(.param .align 8 .b8 write_buffer[16], .param .u32 write_value)
{
  .reg .pred %nothing;
  .reg .b32 %value;
  .reg .b64 %memory;
  ld.param.u32 %value, [write_value];
  setp.eq.u32 %nothing, %value, 0;
  @%nothing ret;
  ld.param.u64 %memory, [write_buffer+8];
  cvta.to.global.u64 %memory, %memory;
  st.global.u32 [%memory], %value;
  ret;
}
)";

struct Buffer {
  size_t size;
  CUdeviceptr memory;
};

static void owner(Peer &user) {
  use_device();
  CUdeviceptr memory = filled('a');
  CUipcMemHandle handle;
  check(cuIpcGetMemHandle(&handle, memory), "cuIpcGetMemHandle");
  user.send(message(handle));
  const bool is_written = user.receive().size() == 1;
  if (is_written) {
    unsigned value = 0;
    check(cuMemcpyDtoH(&value, memory, sizeof value), "cuMemcpyDtoH");
    require(value == 42, "the kernel has not written");
  }
  check(cuMemFree(memory), "cuMemFree");
  print(is_written ? "the kernel has written" : "kernels are refused");
}

static void user(Peer &owner) {
  use_device();
  Buffer buffer = {message_size, 0};
  check(cuIpcOpenMemHandle(&buffer.memory, handle_in(owner.receive()), CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), "cuIpcOpenMemHandle");
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  CUfunction kernel = nullptr;
  const bool by_library = !arguments.empty() && arguments.front() == "by_library";
  const CUresult loaded = by_library ? cuLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0) : cuModuleLoadData(&module, image);
  if (loaded == CUDA_SUCCESS) {
    if (by_library) {
      CUkernel of_library = nullptr;
      check(cuLibraryGetKernel(&of_library, library, "write"), "cuLibraryGetKernel");
      kernel = reinterpret_cast<CUfunction>(of_library);
    } else {
      check(cuModuleGetFunction(&kernel, module, "write"), "cuModuleGetFunction");
    }
    const auto launch = [&](unsigned value) {
      void *parameters[] = {&buffer, &value};
      check(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), "cuLaunchKernel");
      check(cuCtxSynchronize(), "cuCtxSynchronize");
    };
    launch(42);
    if (is_fixed()) launch(0);
    check(cuIpcCloseMemHandle(buffer.memory), "cuIpcCloseMemHandle");
    if (!is_fixed()) launch(0);
  } else {
    require(loaded == CUDA_ERROR_NOT_SUPPORTED, "the kernel was not loaded: " + std::to_string(loaded));
    check(cuIpcCloseMemHandle(buffer.memory), "cuIpcCloseMemHandle");
  }
  owner.send(Bytes(loaded == CUDA_SUCCESS ? 1 : 2));
}

int main(int argc, char **argv) { return run(argc, argv, owner, user); }
