// The cases of cuda_sharing.cpp, with every function from cuGetProcAddress.
#define CUDA_BY_PROC_ADDRESS
#include "cuda_sharing.cpp"
