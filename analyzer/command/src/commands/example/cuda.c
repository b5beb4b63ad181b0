// A mistake to try urscope with: memory of the CUDA driver is freed while another process has it open.
//
//     urscope run --device software-cuda -- ./cuda          with the mistake
//     urscope run --device software-cuda -- ./cuda right    without it
//
// The producer frees each buffer as soon as the worker has opened it, and not when the worker has closed it. To fix it,
// free it at the end of produce, as with the argument "right".
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

// As in cuda.h, so that no toolkit is needed.
typedef int CUresult, CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct { char reserved[64]; } CUipcMemHandle;
CUresult cuInit(unsigned flags);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuMemAlloc_v2(CUdeviceptr *memory, size_t size);
CUresult cuMemFree_v2(CUdeviceptr memory);
CUresult cuMemsetD8_v2(CUdeviceptr memory, unsigned char value, size_t count);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size);
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr memory);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *memory, CUipcMemHandle handle, unsigned flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr memory);

enum { BATCHES = 3, BYTES = 1 << 20 };

static void check(CUresult result, const char *what) {
  if (result == 0) return;
  fprintf(stderr, "%s returned %d\n", what, result);
  exit(3);
}

static void put(int to, const void *data, size_t size) {
  if (write(to, data, size) != (ssize_t)size) exit(4);
}

static void take(int from, void *data, size_t size) {
  if (read(from, data, size) != (ssize_t)size) exit(4);
}

static void start(void) {
  CUdevice device;
  CUcontext context;
  check(cuInit(0), "cuInit");
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

static void produce(int worker, int right) {
  char answer;
  start();
  for (int batch = 0; batch < BATCHES; ++batch) {
    CUdeviceptr memory;
    CUipcMemHandle handle;
    check(cuMemAlloc_v2(&memory, BYTES), "cuMemAlloc");
    check(cuMemsetD8_v2(memory, 'a' + batch, BYTES), "cuMemsetD8");
    check(cuIpcGetMemHandle(&handle, memory), "cuIpcGetMemHandle");
    put(worker, &handle, sizeof handle);
    take(worker, &answer, 1); // it is open
    if (!right) check(cuMemFree_v2(memory), "cuMemFree");
    put(worker, "c", 1);
    take(worker, &answer, 1); // it is closed
    if (right) check(cuMemFree_v2(memory), "cuMemFree");
  }
}

static void work(int producer) {
  static char copy[BYTES];
  char answer;
  start();
  for (int batch = 0; batch < BATCHES; ++batch) {
    CUdeviceptr memory;
    CUipcMemHandle handle;
    take(producer, &handle, sizeof handle);
    check(cuIpcOpenMemHandle_v2(&memory, handle, 1), "cuIpcOpenMemHandle");
    check(cuMemcpyDtoH_v2(copy, memory, BYTES), "cuMemcpyDtoH");
    put(producer, "o", 1);
    take(producer, &answer, 1);
    check(cuIpcCloseMemHandle(memory), "cuIpcCloseMemHandle");
    put(producer, "c", 1);
  }
}

int main(int argc, char **argv) {
  int sockets[2], status = 0;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets)) return 3;
  // Each process starts the driver by itself: a fork after that would break it.
  pid_t child = fork();
  close(sockets[child == 0 ? 0 : 1]);
  if (child == 0) {
    work(sockets[1]);
  } else {
    produce(sockets[0], argc > 1 && strcmp(argv[1], "right") == 0);
    waitpid(child, &status, 0);
  }
  return status != 0;
}
