/* Stands for HIP's library: memory of the host, handles that name it, and kernels that do nothing. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "hip.h"

int hipMalloc(void **pointer, size_t size) { return (*pointer = calloc(1, size)) ? 0 : 2; }
int hipFree(void *pointer) { free(pointer); return 0; }
int hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *pointer) {
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &pointer, sizeof pointer);
    return 0;
}
/* A mapping is memory of its own, at which nobody looks. Bytes of zeros are no handle. */
int hipIpcOpenMemHandle(void **pointer, hipIpcMemHandle_t handle, unsigned flags) {
    static const hipIpcMemHandle_t zeros;
    if (!memcmp(&handle, &zeros, sizeof handle) || flags != 1) return 400;
    *pointer = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return *pointer == MAP_FAILED ? 2 : 0;
}
static void *closed;
int hipIpcCloseMemHandle(void *pointer) { return closed == pointer ? 1 : munmap(closed = pointer, 4096); }
int hipMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream) {
    (void)to; (void)from; (void)size; (void)kind;
    return stream == (void *)0x57 ? 0 : 400;
}
/* Each argument must have come through: the grid is 1, 2, 3, the block 4, 5, 6. */
int hipLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream) {
    int are_right = kernel && grid.x == 1 && grid.y == 2 && grid.z == 3 && block.x == 4 && block.y == 5 && block.z == 6;
    return are_right && arguments && shared == 7 && stream == (void *)0x57 ? 0 : 1;
}
int hipStreamSynchronize(void *stream) { (void)stream; return 0; }
int hipDeviceReset(void) { return 0; }
