#pragma once

// Element-wise formulas are written once and run on the host and in kernels.
#ifdef __CUDACC__
#define DDP_HOST_DEVICE __host__ __device__ inline
#else
// Inlined even without optimisation: a caller built for wider vectors passes them otherwise than a function of its own would
// take them.
#define DDP_HOST_DEVICE [[gnu::always_inline]] inline
#endif
