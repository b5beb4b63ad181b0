// A mistake to try urscope with: a mapping of Level Zero is closed twice.
//
//     urscope run --device software -- ./level_zero          with the mistake
//     urscope run --device software -- ./level_zero right    without it
//
// The consumer closes the mapping where it is done with it, and its cleanup closes it again. To fix it, remove the
// second close, as with the argument "right".
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

// As in ze_api.h, so that no SDK is needed.
typedef uint32_t ze_result_t;
typedef struct _ze_driver_handle_t *ze_driver_handle_t;
typedef struct _ze_device_handle_t *ze_device_handle_t;
typedef struct _ze_context_handle_t *ze_context_handle_t;
typedef struct { char data[64]; } ze_ipc_mem_handle_t;
typedef struct { uint32_t stype; const void *pNext; uint32_t flags; } ze_context_desc_t;
typedef struct { uint32_t stype; const void *pNext; uint32_t flags, ordinal; } ze_device_mem_alloc_desc_t;
ze_result_t zeInit(uint32_t flags);
ze_result_t zeDriverGet(uint32_t *count, ze_driver_handle_t *drivers);
ze_result_t zeDeviceGet(ze_driver_handle_t driver, uint32_t *count, ze_device_handle_t *devices);
ze_result_t zeContextCreate(ze_driver_handle_t driver, const ze_context_desc_t *desc, ze_context_handle_t *context);
ze_result_t zeMemAllocDevice(ze_context_handle_t context, const ze_device_mem_alloc_desc_t *desc, size_t size,
                             size_t alignment, ze_device_handle_t device, void **memory);
ze_result_t zeMemFree(ze_context_handle_t context, void *memory);
ze_result_t zeMemGetIpcHandle(ze_context_handle_t context, const void *memory, ze_ipc_mem_handle_t *handle);
ze_result_t zeMemOpenIpcHandle(ze_context_handle_t context, ze_device_handle_t device, ze_ipc_mem_handle_t handle,
                               uint32_t flags, void **memory);
ze_result_t zeMemCloseIpcHandle(ze_context_handle_t context, const void *memory);

static ze_device_handle_t device;
static ze_context_handle_t context;

static void check(ze_result_t result, const char *what) {
  if (result == 0) return;
  fprintf(stderr, "%s returned 0x%x\n", what, result);
  exit(3);
}

static void put(int to, const void *data, size_t size) {
  if (write(to, data, size) != (ssize_t)size) exit(4);
}

static void take(int from, void *data, size_t size) {
  if (read(from, data, size) != (ssize_t)size) exit(4);
}

static void start(void) {
  ze_driver_handle_t driver;
  ze_context_desc_t desc = {0xd, NULL, 0};
  uint32_t one = 1;
  check(zeInit(0), "zeInit");
  check(zeDriverGet(&one, &driver), "zeDriverGet");
  one = 1;
  check(zeDeviceGet(driver, &one, &device), "zeDeviceGet");
  check(zeContextCreate(driver, &desc, &context), "zeContextCreate");
}

static void produce(int consumer) {
  ze_device_mem_alloc_desc_t desc = {0x15, NULL, 0, 0};
  ze_ipc_mem_handle_t handle;
  void *memory;
  char answer;
  start();
  check(zeMemAllocDevice(context, &desc, 1 << 20, 64, device, &memory), "zeMemAllocDevice");
  check(zeMemGetIpcHandle(context, memory, &handle), "zeMemGetIpcHandle");
  put(consumer, &handle, sizeof handle);
  take(consumer, &answer, 1); // it is closed
  check(zeMemFree(context, memory), "zeMemFree");
}

static void consume(int producer, int right) {
  ze_ipc_mem_handle_t handle;
  void *memory;
  start();
  take(producer, &handle, sizeof handle);
  check(zeMemOpenIpcHandle(context, device, handle, 0, &memory), "zeMemOpenIpcHandle");
  check(zeMemCloseIpcHandle(context, memory), "zeMemCloseIpcHandle");
  if (!right) zeMemCloseIpcHandle(context, memory);
  put(producer, "c", 1);
}

int main(int argc, char **argv) {
  int sockets[2], status = 0;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets)) return 3;
  // Each process starts the driver by itself: a fork after that would break it.
  pid_t child = fork();
  close(sockets[child == 0 ? 0 : 1]);
  if (child == 0) {
    consume(sockets[1], argc > 1 && strcmp(argv[1], "right") == 0);
  } else {
    // Some kernels let the child open what the parent shares only if the parent permits it.
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    produce(sockets[0]);
    waitpid(child, &status, 0);
  }
  return status != 0;
}
