// The part of the CUDA driver's interface that the programs here use, as in NVIDIA's cuda.h for CUDA 13.0. A function has the
// name that programs write, and the symbol that cuda.h gives it: cuMemAlloc is cuMemAlloc_v2.
//
// Programs link libcuda.so.1. With CUDA_BY_PROC_ADDRESS they load it and ask cuGetProcAddress for every other function, as
// libcudart does. With CUDA_BY_RUNTIME they load libcudart (the file in CUDART, or libcudart.so.13): they call its functions where
// it has one, and those of the driver that it gives them. With CUDA_STUB this file is a library to link against, without a driver.
#pragma once

#include <cstddef>
#include <cstdint>

enum CUresult : int {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_STUB_LIBRARY = 34,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_NOT_PERMITTED = 800,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_UNKNOWN = 999,
};

typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUarray_st *CUarray;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef void (*CUhostFn)(void *);

/// Handles of other processes. They are passed by value.
struct CUipcMemHandle {
    char reserved[64];
};
struct CUipcEventHandle {
    char reserved[64];
};
struct CUmemPoolPtrExportData {
    unsigned char reserved[64];
};
struct CUuuid {
    char bytes[16];
};

/// CUmemLocation and the enumerations of it: type 1 is a device, and the id is its number.
struct CUmemLocation {
    int type;
    int id;
};

struct CUmemAllocationProp {
    int type;
    int requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType;
        unsigned char gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
};

struct CUmemAccessDesc {
    CUmemLocation location;
    int flags;
};

struct CUmemPoolProps {
    int allocType;
    int handleTypes;
    CUmemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
};

/// One side of a copy of rows: type 1 is memory of the host, type 2 of the device.
struct CopySide {
    size_t column, row;
    unsigned type;
    void *host;
    CUdeviceptr device;
    CUarray array;
    size_t pitch;
};

struct CUDA_MEMCPY2D {
    CopySide from, to;
    size_t width, height;
};

enum : int {
    CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
    CU_MEM_ALLOCATION_TYPE_PINNED = 1,
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
    CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
    CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
};

enum : unsigned {
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_EVENT_INTERPROCESS = 4,
    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1,
    CU_MEM_ATTACH_GLOBAL = 1,
};

/// Each function: its name, its symbol, the version of CUDA in which this form of it appeared, its parameters.
// clang-format off
#define CUDA_FUNCTIONS(F) \
    F(cuInit, cuInit, 2000, (unsigned flags)) \
    F(cuDriverGetVersion, cuDriverGetVersion, 2020, (int *version)) \
    F(cuGetErrorName, cuGetErrorName, 6000, (CUresult error, const char **name)) \
    F(cuGetErrorString, cuGetErrorString, 6000, (CUresult error, const char **text)) \
    F(cuDeviceGet, cuDeviceGet, 2000, (CUdevice *device, int ordinal)) \
    F(cuDeviceGetCount, cuDeviceGetCount, 2000, (int *count)) \
    F(cuDeviceGetName, cuDeviceGetName, 2000, (char *name, int length, CUdevice device)) \
    F(cuDeviceGetUuid, cuDeviceGetUuid_v2, 11040, (CUuuid *uuid, CUdevice device)) \
    F(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000, (int *value, int attribute, CUdevice device)) \
    F(cuDeviceTotalMem, cuDeviceTotalMem_v2, 3020, (size_t *bytes, CUdevice device)) \
    F(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, 4000, (int *possible, CUdevice device, CUdevice peer)) \
    F(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, (CUcontext *context, CUdevice device)) \
    F(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11000, (CUdevice device)) \
    F(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 11000, (CUdevice device)) \
    F(cuCtxCreate, cuCtxCreate_v4, 12050, (CUcontext *context, void *parameters, unsigned flags, CUdevice device)) \
    F(cuCtxDestroy, cuCtxDestroy_v2, 4000, (CUcontext context)) \
    F(cuCtxSetCurrent, cuCtxSetCurrent, 4000, (CUcontext context)) \
    F(cuCtxGetCurrent, cuCtxGetCurrent, 4000, (CUcontext *context)) \
    F(cuCtxGetDevice, cuCtxGetDevice, 2000, (CUdevice *device)) \
    F(cuCtxSynchronize, cuCtxSynchronize, 2000, ()) \
    F(cuMemAlloc, cuMemAlloc_v2, 3020, (CUdeviceptr *memory, size_t size)) \
    F(cuMemFree, cuMemFree_v2, 3020, (CUdeviceptr memory)) \
    F(cuMemGetAddressRange, cuMemGetAddressRange_v2, 3020, (CUdeviceptr *base, size_t *size, CUdeviceptr memory)) \
    F(cuMemAllocPitch, cuMemAllocPitch_v2, 3020, (CUdeviceptr *memory, size_t *pitch, size_t width, size_t height, unsigned element)) \
    F(cuMemAllocManaged, cuMemAllocManaged, 6000, (CUdeviceptr *memory, size_t size, unsigned flags)) \
    F(cuMemAllocHost, cuMemAllocHost_v2, 3020, (void **memory, size_t size)) \
    F(cuMemFreeHost, cuMemFreeHost, 2000, (void *memory)) \
    F(cuPointerGetAttribute, cuPointerGetAttribute, 4000, (void *value, int attribute, CUdeviceptr memory)) \
    F(cuMemcpy, cuMemcpy, 4000, (CUdeviceptr to, CUdeviceptr from, size_t size)) \
    F(cuMemcpyAsync, cuMemcpyAsync, 4000, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)) \
    F(cuMemcpyHtoD, cuMemcpyHtoD_v2, 3020, (CUdeviceptr to, const void *from, size_t size)) \
    F(cuMemcpyDtoH, cuMemcpyDtoH_v2, 3020, (void *to, CUdeviceptr from, size_t size)) \
    F(cuMemcpyDtoD, cuMemcpyDtoD_v2, 3020, (CUdeviceptr to, CUdeviceptr from, size_t size)) \
    F(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, 3020, (CUdeviceptr to, const void *from, size_t size, CUstream stream)) \
    F(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, 3020, (void *to, CUdeviceptr from, size_t size, CUstream stream)) \
    F(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, 3020, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)) \
    F(cuMemcpy2DAsync, cuMemcpy2DAsync_v2, 3020, (const CUDA_MEMCPY2D *copy, CUstream stream)) \
    F(cuMemsetD8, cuMemsetD8_v2, 3020, (CUdeviceptr to, unsigned char value, size_t count)) \
    F(cuMemsetD32, cuMemsetD32_v2, 3020, (CUdeviceptr to, unsigned value, size_t count)) \
    F(cuMemsetD8Async, cuMemsetD8Async, 3020, (CUdeviceptr to, unsigned char value, size_t count, CUstream stream)) \
    F(cuMemsetD32Async, cuMemsetD32Async, 3020, (CUdeviceptr to, unsigned value, size_t count, CUstream stream)) \
    F(cuStreamCreate, cuStreamCreate, 2000, (CUstream *stream, unsigned flags)) \
    F(cuStreamDestroy, cuStreamDestroy_v2, 4000, (CUstream stream)) \
    F(cuStreamSynchronize, cuStreamSynchronize, 2000, (CUstream stream)) \
    F(cuStreamQuery, cuStreamQuery, 2000, (CUstream stream)) \
    F(cuStreamWaitEvent, cuStreamWaitEvent, 3020, (CUstream stream, CUevent event, unsigned flags)) \
    F(cuLaunchHostFunc, cuLaunchHostFunc, 10000, (CUstream stream, CUhostFn function, void *data)) \
    F(cuModuleLoadData, cuModuleLoadData, 2000, (CUmodule *module, const void *image)) \
    F(cuModuleGetFunction, cuModuleGetFunction, 2000, (CUfunction *function, CUmodule module, const char *name)) \
    F(cuLaunchKernel, cuLaunchKernel, 4000, (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned memory, CUstream stream, void **arguments, void **extra)) \
    F(cuEventCreate, cuEventCreate, 2000, (CUevent *event, unsigned flags)) \
    F(cuEventDestroy, cuEventDestroy_v2, 4000, (CUevent event)) \
    F(cuEventRecord, cuEventRecord, 2000, (CUevent event, CUstream stream)) \
    F(cuEventQuery, cuEventQuery, 2000, (CUevent event)) \
    F(cuEventSynchronize, cuEventSynchronize, 2000, (CUevent event)) \
    F(cuIpcGetMemHandle, cuIpcGetMemHandle, 4010, (CUipcMemHandle *handle, CUdeviceptr memory)) \
    F(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2, 11000, (CUdeviceptr *memory, CUipcMemHandle handle, unsigned flags)) \
    F(cuIpcCloseMemHandle, cuIpcCloseMemHandle, 4010, (CUdeviceptr memory)) \
    F(cuIpcGetEventHandle, cuIpcGetEventHandle, 4010, (CUipcEventHandle *handle, CUevent event)) \
    F(cuIpcOpenEventHandle, cuIpcOpenEventHandle, 4010, (CUevent *event, CUipcEventHandle handle)) \
    F(cuMemGetAllocationGranularity, cuMemGetAllocationGranularity, 10020, (size_t *granularity, const CUmemAllocationProp *properties, int option)) \
    F(cuMemCreate, cuMemCreate, 10020, (CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties, unsigned long long flags)) \
    F(cuMemRelease, cuMemRelease, 10020, (CUmemGenericAllocationHandle handle)) \
    F(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle, 11000, (CUmemGenericAllocationHandle *handle, void *address)) \
    F(cuMemAddressReserve, cuMemAddressReserve, 10020, (CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr wanted, unsigned long long flags)) \
    F(cuMemAddressFree, cuMemAddressFree, 10020, (CUdeviceptr address, size_t size)) \
    F(cuMemMap, cuMemMap, 10020, (CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)) \
    F(cuMemUnmap, cuMemUnmap, 10020, (CUdeviceptr address, size_t size)) \
    F(cuMemSetAccess, cuMemSetAccess, 10020, (CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t count)) \
    F(cuMemExportToShareableHandle, cuMemExportToShareableHandle, 10020, (void *shareable, CUmemGenericAllocationHandle handle, int type, unsigned long long flags)) \
    F(cuMemImportFromShareableHandle, cuMemImportFromShareableHandle, 10020, (CUmemGenericAllocationHandle *handle, void *shareable, int type)) \
    F(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, 11020, (CUmemoryPool *pool, CUdevice device)) \
    F(cuMemPoolCreate, cuMemPoolCreate, 11020, (CUmemoryPool *pool, const CUmemPoolProps *properties)) \
    F(cuMemPoolDestroy, cuMemPoolDestroy, 11020, (CUmemoryPool pool)) \
    F(cuMemPoolSetAccess, cuMemPoolSetAccess, 11020, (CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)) \
    F(cuMemAllocAsync, cuMemAllocAsync, 11020, (CUdeviceptr *memory, size_t size, CUstream stream)) \
    F(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020, (CUdeviceptr *memory, size_t size, CUmemoryPool pool, CUstream stream)) \
    F(cuMemFreeAsync, cuMemFreeAsync, 11020, (CUdeviceptr memory, CUstream stream)) \
    F(cuMemPoolExportToShareableHandle, cuMemPoolExportToShareableHandle, 11020, (void *shareable, CUmemoryPool pool, int type, unsigned long long flags)) \
    F(cuMemPoolImportFromShareableHandle, cuMemPoolImportFromShareableHandle, 11020, (CUmemoryPool *pool, void *shareable, int type, unsigned long long flags)) \
    F(cuMemPoolExportPointer, cuMemPoolExportPointer, 11020, (CUmemPoolPtrExportData *data, CUdeviceptr memory)) \
    F(cuMemPoolImportPointer, cuMemPoolImportPointer, 11020, (CUdeviceptr *memory, CUmemoryPool pool, CUmemPoolPtrExportData *data))
// clang-format on

#if defined(CUDA_STUB)

#define CUDA_DEFINE(name, symbol, since, parameters) \
    extern "C" CUresult name parameters __asm__(#symbol); \
    CUresult name parameters { return CUDA_ERROR_STUB_LIBRARY; }
CUDA_FUNCTIONS(CUDA_DEFINE)

#elif defined(CUDA_BY_PROC_ADDRESS) || defined(CUDA_BY_RUNTIME)

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

#define CUDA_POINTER(name, symbol, since, parameters) static CUresult(*name) parameters;
CUDA_FUNCTIONS(CUDA_POINTER)

/// cuGetProcAddress, and cudaGetDriverEntryPointByVersion of libcudart.
typedef CUresult (*ProcAddress)(const char *, void **, int, uint64_t, int *);

#ifdef CUDA_BY_RUNTIME
/// What libcudart has with the same arguments. Its errors have the numbers of the driver's.
#define CUDA_RUNTIME_FUNCTIONS(F) \
    F(cuCtxSynchronize, cudaDeviceSynchronize) \
    F(cuMemAlloc, cudaMalloc) \
    F(cuMemFree, cudaFree) \
    F(cuMemAllocPitch, cudaMallocPitch) \
    F(cuMemAllocManaged, cudaMallocManaged) \
    F(cuMemAllocAsync, cudaMallocAsync) \
    F(cuMemAllocFromPoolAsync, cudaMallocFromPoolAsync) \
    F(cuMemFreeAsync, cudaFreeAsync) \
    F(cuStreamCreate, cudaStreamCreateWithFlags) \
    F(cuStreamDestroy, cudaStreamDestroy) \
    F(cuStreamSynchronize, cudaStreamSynchronize) \
    F(cuStreamWaitEvent, cudaStreamWaitEvent) \
    F(cuEventCreate, cudaEventCreateWithFlags) \
    F(cuEventDestroy, cudaEventDestroy) \
    F(cuEventRecord, cudaEventRecord) \
    F(cuEventQuery, cudaEventQuery) \
    F(cuEventSynchronize, cudaEventSynchronize) \
    F(cuIpcGetMemHandle, cudaIpcGetMemHandle) \
    F(cuIpcOpenMemHandle, cudaIpcOpenMemHandle) \
    F(cuIpcCloseMemHandle, cudaIpcCloseMemHandle) \
    F(cuIpcGetEventHandle, cudaIpcGetEventHandle) \
    F(cuIpcOpenEventHandle, cudaIpcOpenEventHandle) \
    F(cuMemPoolCreate, cudaMemPoolCreate) \
    F(cuMemPoolDestroy, cudaMemPoolDestroy) \
    F(cuMemPoolSetAccess, cudaMemPoolSetAccess) \
    F(cuMemPoolExportToShareableHandle, cudaMemPoolExportToShareableHandle) \
    F(cuMemPoolImportFromShareableHandle, cudaMemPoolImportFromShareableHandle) \
    F(cuMemPoolExportPointer, cudaMemPoolExportPointer) \
    F(cuMemPoolImportPointer, cudaMemPoolImportPointer)
#endif

[[noreturn]] static void end_without(const char *what) {
    std::fprintf(stderr, "there is no %s\n", what);
    std::exit(77);
}

static ProcAddress open_library(const char *file, const char *finder) {
    void *library = dlopen(file, RTLD_NOW);
    if (!library) end_without(file);
    ProcAddress found = reinterpret_cast<ProcAddress>(dlsym(library, finder));
    if (!found) end_without(finder);
#ifdef CUDA_BY_RUNTIME
#define CUDA_RUNTIME_FIND(name, symbol) \
    name = reinterpret_cast<decltype(name)>(dlsym(library, #symbol)); \
    if (!name) end_without(#symbol);
    CUDA_RUNTIME_FUNCTIONS(CUDA_RUNTIME_FIND)
#endif
    return found;
}

/// Fills all pointers before main.
__attribute__((constructor)) static void load_cuda() {
#ifdef CUDA_BY_RUNTIME
    const char *named = std::getenv("CUDART");
    const ProcAddress find = open_library(named ? named : "libcudart.so.13", "cudaGetDriverEntryPointByVersion");
#else
    // As libcudart does when it starts.
    ProcAddress find = open_library("libcuda.so.1", "cuGetProcAddress_v2");
    if (find("cuGetProcAddress", reinterpret_cast<void **>(&find), 12000, 0, nullptr)) end_without("cuGetProcAddress");
#endif
#define CUDA_FIND(name, symbol, since, parameters) \
    if (!name && (find(#name, reinterpret_cast<void **>(&name), since, 0, nullptr) || !name)) end_without(#name);
    CUDA_FUNCTIONS(CUDA_FIND)
}

#else

#define CUDA_DECLARE(name, symbol, since, parameters) extern "C" CUresult name parameters __asm__(#symbol);
CUDA_FUNCTIONS(CUDA_DECLARE)

#endif
