# Decides once who computes the CPU's matrix products: a CBLAS (OpenBLAS first), else Eigen.
# Defines LINEAR_DDP_HAS_BLAS, LINEAR_DDP_BLAS_IS_OPENBLAS, LINEAR_DDP_BLAS_HAS_LAPACK and LINEAR_DDP_BLAS_NAME; the library is CBLAS::cblas.
set(LINEAR_DDP_HAS_BLAS FALSE)
set(LINEAR_DDP_BLAS_NAME "Eigen")
if(LINEAR_DDP_BLAS STREQUAL "OFF")
  return()
endif()

include(CheckSourceCompiles)
function(_linear_ddp_check_blas result statement)
  set(CMAKE_REQUIRED_LIBRARIES CBLAS::cblas)
  check_source_compiles(CXX "#include <cblas.h>\nextern \"C\" void dsyevd_();\nint main() { ${statement} }" ${result})
endfunction()

find_package(CBLAS QUIET)
if(CBLAS_FOUND)
  _linear_ddp_check_blas(LINEAR_DDP_BLAS_WORKS "float a = 0; cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, 1, 1, 1, 1, &a, 1, &a, 1, 0, &a, 1);")
  _linear_ddp_check_blas(LINEAR_DDP_BLAS_IS_OPENBLAS "openblas_set_num_threads(1);")
  _linear_ddp_check_blas(LINEAR_DDP_BLAS_HAS_LAPACK "dsyevd_();")
endif()

if(LINEAR_DDP_BLAS_WORKS)
  set(LINEAR_DDP_HAS_BLAS TRUE)
  set(LINEAR_DDP_BLAS_NAME "BLAS")
  if(LINEAR_DDP_BLAS_IS_OPENBLAS)
    set(LINEAR_DDP_BLAS_NAME "OpenBLAS")
  endif()
elseif(LINEAR_DDP_BLAS STREQUAL "ON")
  message(FATAL_ERROR "LINEAR_DDP_BLAS=ON needs a library with cblas.h, e.g. Debian's libopenblas-dev "
    "(library: '${CBLAS_LIBRARY}', header in: '${CBLAS_INCLUDE_DIR}')")
endif()
message(STATUS "linear_ddp: matrix products on the CPU by ${LINEAR_DDP_BLAS_NAME} (LINEAR_DDP_BLAS=${LINEAR_DDP_BLAS})")
