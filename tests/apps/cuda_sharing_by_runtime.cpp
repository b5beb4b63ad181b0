// The cases of cuda_sharing.cpp through libcudart, as programs that nvcc compiles make them.
#define CUDA_BY_RUNTIME
#include "cuda_sharing.cpp"
