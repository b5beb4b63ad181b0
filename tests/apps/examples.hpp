// What the examples of the rules take as given. A test compiles the examples against it; they are never run.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include <sycl/sycl.hpp>

#include <sycl/ext/oneapi/experimental/ipc_event.hpp>
#include <sycl/ext/oneapi/experimental/ipc_memory.hpp>
#include <sycl/ext/oneapi/experimental/ipc_physical_memory.hpp>
#include <sycl/ext/oneapi/experimental/reusable_events.hpp>
#include <sycl/ext/oneapi/virtual_mem/virtual_mem.hpp>

#include <thread>

#include <sys/prctl.h>
#include <unistd.h>
#include <ur_api.h>
#include <ze_api.h>

#include "cuda_driver.hpp"

// ze_api.h has it from version 1.6 on.
extern "C" ze_result_t zeMemPutIpcHandle(ze_context_handle_t context, ze_ipc_mem_handle_t handle);

using namespace sycl::ext::oneapi::experimental;

namespace example {

extern sycl::queue queue;
extern sycl::context ctx;
extern sycl::device dev;
extern const size_t size, length;
extern void *p;
extern physical_mem mem;

// Carry handle data to and from the other process, and wait for it.
void send(const ipc::handle_data_t &data);
ipc::handle_data_t receive();
void barrier();

// The same for the CUDA driver.
void send(const CUipcMemHandle &handle);
void receive(CUipcMemHandle &handle);
// A buffer of the process, and what it has mapped of the other one's memory; a descriptor, or several, of that.
extern CUdeviceptr buffer, mapped;
extern CUstream stream;
extern void *descriptor;
std::vector<int> descriptors();
// What is wanted of memory that can be exported; and what passes its descriptor on, and leaves it open here.
extern const CUmemAllocationProp wanted;
void send_copy_of(int descriptor);

// Those of Unified Runtime and of Level Zero.
extern ur_context_handle_t ur_ctx;
extern ur_device_handle_t ur_dev;
extern ur_physical_mem_properties_t shared;
extern ze_context_handle_t ze_ctx;
ipc::handle_data_t bytes_of(const ze_ipc_mem_handle_t &handle);

// The address in the exporter, and the handle data, of each message; and an open by Level Zero.
std::vector<std::pair<void *, ipc::handle_data_t>> messages();
void *ze_open(const ipc::handle_data_t &data);

} // namespace example
