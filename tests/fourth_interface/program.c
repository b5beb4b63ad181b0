/* `program export FILE` shares an allocation; `program open FILE` opens it, and uses and closes it after its close. With a third argument,
   the library is found by dlsym(3). */
#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "hip.h"

#define FIND(name) __typeof__(name) *its_##name = library ? (__typeof__(name) *)dlsym(library, #name) : name

int main(int count, char **arguments) {
    void *library = count > 3 ? dlopen(arguments[3], RTLD_NOW) : NULL;
    FIND(hipMalloc); FIND(hipFree); FIND(hipIpcGetMemHandle); FIND(hipIpcOpenMemHandle); FIND(hipIpcCloseMemHandle);
    FIND(hipMemcpyAsync); FIND(hipLaunchKernel); FIND(hipStreamSynchronize); FIND(hipDeviceReset);
    int exports = !strcmp(arguments[1], "export");
    FILE *file = fopen(arguments[2], exports ? "w" : "r");
    hipIpcMemHandle_t handle, zeros = {{0}};
    void *memory, *stream = (void *)0x57;
    if (exports) {
        assert(!its_hipMalloc(&memory, 4096) && !its_hipIpcGetMemHandle(&handle, memory));
        fwrite(&handle, sizeof handle, 1, file);
        fclose(file);
        return 0;
    }
    assert(fread(&handle, sizeof handle, 1, file) == 1);
    assert(its_hipIpcOpenMemHandle(&memory, zeros, 1) == 400);
    assert(!its_hipIpcOpenMemHandle(&memory, handle, 1));
    dim3 grid = {1, 2, 3}, block = {4, 5, 6};
    void *parameters[] = {&memory};
    assert(!its_hipLaunchKernel(main, grid, block, parameters, 7, stream));
    assert(!its_hipMemcpyAsync(memory, &handle, 64, 1, stream) && !its_hipStreamSynchronize(stream));
    assert(!its_hipIpcCloseMemHandle(memory));
    assert(!its_hipMemcpyAsync(memory, &handle, 64, 1, stream));
    assert(its_hipIpcCloseMemHandle(memory) == 1);
    return its_hipDeviceReset();
}
