// After bifrost 138, between two processes: a slot of a ring is passed on while the copy into it is under way. There is an event that was to
// show the end of the copy, and it is recorded in front of it. Fixed, it is recorded behind it.
#include "museum_cuda.hpp"

using namespace app;

constexpr size_t slots = 4, slot_size = message_size / slots;

static void writer(Peer &reader) {
  use_device();
  CUstream stream;
  CUevent written;
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  check(cuEventCreate(&written, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  CUdeviceptr ring = filled('-'), frame = filled('a');
  check(cuCtxSynchronize(), "cuCtxSynchronize");
  CUipcMemHandle handle;
  check(cuIpcGetMemHandle(&handle, ring), "cuIpcGetMemHandle");
  reader.send(message(handle));
  for (size_t slot = 0; slot < slots; ++slot) {
    if (!is_fixed()) check(cuEventRecord(written, stream), "cuEventRecord");
    check(cuMemcpyDtoDAsync(ring + slot * slot_size, frame, slot_size, stream), "cuMemcpyDtoDAsync");
    if (is_fixed()) check(cuEventRecord(written, stream), "cuEventRecord");
    check(cuEventSynchronize(written), "cuEventSynchronize");
    reader.say("slot");
    reader.await("read");
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  }
  reader.await("closed");
  check(cuMemFree(ring), "cuMemFree");
  check(cuMemFree(frame), "cuMemFree");
}

static void reader(Peer &writer) {
  use_device();
  CUdeviceptr ring = 0;
  check(cuIpcOpenMemHandle(&ring, handle_in(writer.receive()), CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), "cuIpcOpenMemHandle");
  Bytes frame(slot_size);
  for (size_t slot = 0; slot < slots; ++slot) {
    writer.await("slot");
    check(cuMemcpyDtoH(frame.data(), ring + slot * slot_size, slot_size), "cuMemcpyDtoH");
    writer.say("read");
  }
  print("all slots were read");
  check(cuIpcCloseMemHandle(ring), "cuIpcCloseMemHandle");
  writer.say("closed");
}

int main(int argc, char **argv) { return run(argc, argv, writer, reader); }
