// A clean program in plain C: two processes that share memory, physical memory and an event through the UR loader's C interface.
//
// The program starts itself a second time, as the consumer. The two take turns over a socket pair that keeps message boundaries.
#define _GNU_SOURCE
#include <stdbool.h> // ur_api.h uses bool and does not say so.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ur_api.h>

extern char **environ;

enum { SIZE = 1 << 20, LARGEST = 4096 };

static void require(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "test program: %s\n", what);
  exit(3);
}
#define CHECK(call) require((call) == UR_RESULT_SUCCESS, #call " failed")

// The first GPU, and a context and a queue on it.
struct ur {
  ur_adapter_handle_t adapters[8];
  uint32_t adapter_count;
  ur_device_handle_t device;
  ur_context_handle_t context;
  ur_queue_handle_t queue;
};

static void set_up(struct ur *ur) {
  memset(ur, 0, sizeof *ur);
  CHECK(urLoaderInit(0, NULL));
  CHECK(urAdapterGet(0, NULL, &ur->adapter_count));
  require(ur->adapter_count <= 8, "so many adapters");
  CHECK(urAdapterGet(ur->adapter_count, ur->adapters, NULL));
  for (uint32_t at = 0; at < ur->adapter_count && ur->device == NULL; ++at) {
    ur_platform_handle_t platform = NULL;
    uint32_t count = 0;
    CHECK(urPlatformGet(ur->adapters[at], 0, NULL, &count));
    if (count == 0) continue;
    CHECK(urPlatformGet(ur->adapters[at], 1, &platform, NULL));
    if (urDeviceGet(platform, UR_DEVICE_TYPE_GPU, 0, NULL, &count) != UR_RESULT_SUCCESS || count == 0) continue;
    CHECK(urDeviceGet(platform, UR_DEVICE_TYPE_GPU, 1, &ur->device, NULL));
  }
  require(ur->device != NULL, "no adapter has a GPU");
  CHECK(urContextCreate(1, &ur->device, NULL, &ur->context));
  CHECK(urQueueCreate(ur->context, ur->device, NULL, &ur->queue));
}

static void tear_down(struct ur *ur) {
  CHECK(urQueueRelease(ur->queue));
  CHECK(urContextRelease(ur->context));
  CHECK(urDeviceRelease(ur->device));
  for (uint32_t at = 0; at < ur->adapter_count; ++at) CHECK(urAdapterRelease(ur->adapters[at]));
  CHECK(urLoaderTearDown());
}

static void send_data(int peer, const void *data, size_t size) {
  require(send(peer, data, size, MSG_NOSIGNAL) == (ssize_t)size, "the other process takes no message");
}
static size_t receive_data(int peer, void *data) {
  const ssize_t size = recv(peer, data, LARGEST, 0);
  require(size > 0, "the other process went away before it sent its message");
  return (size_t)size;
}
// One step of the other process.
static void await(int peer) {
  char step[LARGEST];
  receive_data(peer, step);
}

// Device memory of SIZE bytes, and the host's view of it.
static void fill(struct ur *ur, void *memory, uint8_t byte) {
  uint8_t *data = malloc(SIZE);
  memset(data, byte, SIZE);
  CHECK(urEnqueueUSMMemcpy(ur->queue, true, memory, data, SIZE, 0, NULL, NULL));
  free(data);
}
static void print_bytes(struct ur *ur, const char *what, const void *memory) {
  uint8_t *data = malloc(SIZE);
  CHECK(urEnqueueUSMMemcpy(ur->queue, true, data, memory, SIZE, 0, NULL, NULL));
  bool same = true;
  for (size_t at = 1; at < SIZE; ++at) same = same && data[at] == data[0];
  printf("%s: %s%u\n", what, same ? "all " : "not all ", data[0]);
  free(data);
}

// Physical memory of `size` bytes at an address of its own.
static void *map(struct ur *ur, ur_physical_mem_handle_t physical, size_t size) {
  void *start = NULL;
  CHECK(urVirtualMemReserve(ur->context, NULL, size, &start));
  CHECK(urVirtualMemMap(ur->context, start, size, physical, 0, UR_VIRTUAL_MEM_ACCESS_FLAG_READ_WRITE));
  return start;
}
static void unmap(struct ur *ur, void *start, size_t size) {
  CHECK(urVirtualMemUnmap(ur->context, start, size));
  CHECK(urVirtualMemFree(ur->context, start, size));
}
static size_t physical_size(struct ur *ur) {
  size_t granularity = 0;
  CHECK(urVirtualMemGranularityGetInfo(ur->context, ur->device, SIZE, UR_VIRTUAL_MEM_GRANULARITY_INFO_RECOMMENDED,
                                       sizeof granularity, &granularity, NULL));
  return (SIZE + granularity - 1) / granularity * granularity;
}

static void producer(int peer) {
  struct ur ur;
  set_up(&ur);

  void *memory = NULL;
  CHECK(urUSMDeviceAlloc(ur.context, ur.device, NULL, NULL, SIZE, &memory));
  fill(&ur, memory, 42);

  const ur_physical_mem_properties_t properties = {UR_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES, NULL, UR_PHYSICAL_MEM_FLAG_ENABLE_IPC};
  const size_t size = physical_size(&ur);
  ur_physical_mem_handle_t physical = NULL;
  CHECK(urPhysicalMemCreate(ur.context, ur.device, size, &properties, &physical));
  void *mapped = map(&ur, physical, size);
  fill(&ur, mapped, 7);

  const ur_exp_event_desc_t description = {UR_STRUCTURE_TYPE_EXP_EVENT_DESC, NULL, UR_EXP_EVENT_FLAG_IPC_EXP};
  ur_event_handle_t event = NULL;
  CHECK(urEventCreateExp(ur.context, ur.device, &description, &event));

  void *data[3];
  size_t sizes[3];
  CHECK(urIPCGetMemHandleExp(ur.context, memory, &data[0], &sizes[0]));
  CHECK(urIPCGetPhysMemHandleExp(ur.context, physical, &data[1], &sizes[1]));
  CHECK(urIPCGetEventHandleExp(event, &data[2], &sizes[2]));
  for (int kind = 0; kind < 3; ++kind) send_data(peer, data[kind], sizes[kind]);
  await(peer);

  // The consumer waits for this from now on.
  fill(&ur, memory, 43);
  ur_event_handle_t signalled = event;
  CHECK(urEnqueueEventsWaitWithBarrierExt(ur.queue, NULL, 0, NULL, &signalled));
  CHECK(urQueueFinish(ur.queue));
  send_data(peer, "signalled", 9);
  await(peer);

  CHECK(urIPCPutMemHandleExp(ur.context, data[0]));
  CHECK(urIPCPutPhysMemHandleExp(ur.context, data[1]));
  CHECK(urIPCPutEventHandleExp(ur.context, data[2]));
  CHECK(urEventRelease(event));
  unmap(&ur, mapped, size);
  CHECK(urPhysicalMemRelease(physical));
  CHECK(urUSMFree(ur.context, memory));
  tear_down(&ur);
}

static void consumer(int peer) {
  struct ur ur;
  set_up(&ur);

  char data[LARGEST];
  void *memory = NULL;
  ur_physical_mem_handle_t physical = NULL;
  ur_event_handle_t event = NULL;
  CHECK(urIPCOpenMemHandleExp(ur.context, ur.device, data, receive_data(peer, data), &memory));
  CHECK(urIPCOpenPhysMemHandleExp(ur.context, ur.device, data, receive_data(peer, data), &physical));
  CHECK(urIPCOpenEventHandleExp(ur.context, data, receive_data(peer, data), &event));
  print_bytes(&ur, "memory", memory);

  const size_t size = physical_size(&ur);
  void *mapped = map(&ur, physical, size);
  print_bytes(&ur, "physical memory", mapped);
  send_data(peer, "opened", 6);
  await(peer);

  CHECK(urEventWait(1, &event));
  print_bytes(&ur, "memory behind the event", memory);
  fflush(stdout);

  CHECK(urEventRelease(event));
  unmap(&ur, mapped, size);
  CHECK(urIPCClosePhysMemHandleExp(ur.context, physical));
  CHECK(urIPCCloseMemHandleExp(ur.context, memory));
  send_data(peer, "closed", 6);
  tear_down(&ur);
}

int main(int argc, char **argv) {
  // The consumer fetches our descriptors, which asks for the right to trace us.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  if (argc == 2) {
    consumer(atoi(argv[1]));
    return 0;
  }
  int ends[2], status = 0;
  char number[16];
  pid_t child = 0;
  require(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "no socket pair");
  require(fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0, "cannot keep a socket from the child");
  snprintf(number, sizeof number, "%d", ends[1]);
  char *const arguments[] = {argv[0], number, NULL};
  require(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) == 0, "cannot start the child");
  close(ends[1]);
  producer(ends[0]);
  require(waitpid(child, &status, 0) == child && status == 0, "the child failed");
  return 0;
}
