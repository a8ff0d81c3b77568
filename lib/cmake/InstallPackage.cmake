include(CMakePackageConfigHelpers)
set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/linear_ddp)
set(_targets linear_ddp)
if(LINEAR_DDP_HAS_CUDA)
  list(APPEND _targets linear_ddp_kernels)
endif()
install(TARGETS ${_targets} EXPORT linear_ddp_targets FILE_SET HEADERS)
install(EXPORT linear_ddp_targets NAMESPACE linear_ddp:: DESTINATION ${_package_dir})
configure_package_config_file(lib/cmake/linear_ddpConfig.cmake.in linear_ddpConfig.cmake
  INSTALL_DESTINATION ${_package_dir})
write_basic_package_version_file(linear_ddpConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/linear_ddpConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/linear_ddpConfigVersion.cmake
              lib/cmake/FindCBLAS.cmake lib/cmake/FindHDF5C.cmake lib/cmake/FindNCCL.cmake
        DESTINATION ${_package_dir})
if(TARGET linear_ddp_app)
  install(TARGETS linear_ddp_app)
endif()
