# Decides once whether the CUDA path is built. Everything else asks only LINEAR_DDP_HAS_CUDA.
set(LINEAR_DDP_HAS_CUDA FALSE)
if(LINEAR_DDP_CUDA STREQUAL "OFF")
  return()
endif()

include(CheckLanguage)
check_language(CUDA)
find_package(CUDAToolkit QUIET)
find_package(NCCL QUIET)

if(CMAKE_CUDA_COMPILER AND TARGET CUDA::cublasLt AND NCCL_FOUND)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100)  # the last one also as PTX, for GPUs to come
  endif()
  # The shared runtime, so that one copy serves the program, cuBLAS and NCCL, and may be replaced in tests.
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
  # CMake 3.25 turns 20 into C++17 for nvcc 13 without a word; ask for what is meant.
  set(CMAKE_CUDA_STANDARD 17)
  enable_language(CUDA)
  set(LINEAR_DDP_HAS_CUDA TRUE)
elseif(LINEAR_DDP_CUDA STREQUAL "ON")
  message(FATAL_ERROR "LINEAR_DDP_CUDA=ON needs nvcc (found: '${CMAKE_CUDA_COMPILER}'), "
    "cuBLASLt (found: '${CUDA_cublasLt_LIBRARY}') and NCCL (found: '${NCCL_LIBRARY}'); "
    "install them, set CUDAToolkit_ROOT or NCCL_ROOT, or configure with -DLINEAR_DDP_CUDA=OFF")
endif()
message(STATUS "linear_ddp: CUDA ${LINEAR_DDP_HAS_CUDA} (LINEAR_DDP_CUDA=${LINEAR_DDP_CUDA})")
