#pragma once

// Element-wise formulas are written once and run on the host and in kernels.
#ifdef __CUDACC__
#define DDP_HOST_DEVICE __host__ __device__
#else
#define DDP_HOST_DEVICE
#endif
