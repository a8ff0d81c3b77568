# Defines CBLAS::cblas and CBLAS_FOUND: a BLAS with cblas.h, OpenBLAS first.
find_library(CBLAS_LIBRARY NAMES openblas blis cblas blas PATH_SUFFIXES openblas-serial openblas)
find_path(CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas-serial openblas blis)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CBLAS REQUIRED_VARS CBLAS_LIBRARY CBLAS_INCLUDE_DIR)
if(CBLAS_FOUND AND NOT TARGET CBLAS::cblas)
  add_library(CBLAS::cblas UNKNOWN IMPORTED)
  set_target_properties(CBLAS::cblas PROPERTIES IMPORTED_LOCATION ${CBLAS_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${CBLAS_INCLUDE_DIR})
endif()
mark_as_advanced(CBLAS_LIBRARY CBLAS_INCLUDE_DIR)
