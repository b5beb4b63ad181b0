/* What the program and the library need of hip_runtime_api.h. */
#include <stddef.h>
typedef struct { char reserved[64]; } hipIpcMemHandle_t;
typedef struct { unsigned x, y, z; } dim3;
int hipMalloc(void **pointer, size_t size);
int hipFree(void *pointer);
int hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *pointer);
int hipIpcOpenMemHandle(void **pointer, hipIpcMemHandle_t handle, unsigned flags);
int hipIpcCloseMemHandle(void *pointer);
int hipMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream);
int hipLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream);
int hipStreamSynchronize(void *stream);
int hipDeviceReset(void);
