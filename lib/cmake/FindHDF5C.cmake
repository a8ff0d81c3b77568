# Defines HDF5C::hdf5 and HDF5C_FOUND: HDF5's C library, 1.10.7 or newer (which can leave out file locks). CMake's own
# module needs the C language, and its target names this machine's files to whoever uses the installed package.
find_path(HDF5C_INCLUDE_DIR hdf5.h PATH_SUFFIXES hdf5/serial)
find_library(HDF5C_LIBRARY NAMES hdf5_serial hdf5 PATH_SUFFIXES hdf5/serial)
if(HDF5C_INCLUDE_DIR)
  file(STRINGS ${HDF5C_INCLUDE_DIR}/H5public.h _hdf5c_version REGEX "#define H5_VERS_(MAJOR|MINOR|RELEASE)[ \t]+[0-9]+")
  string(REGEX REPLACE "[^;]*[ \t]([0-9]+)[^;]*" "\\1" _hdf5c_version "${_hdf5c_version}")
  string(REPLACE ";" "." HDF5C_VERSION "${_hdf5c_version}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(HDF5C REQUIRED_VARS HDF5C_LIBRARY HDF5C_INCLUDE_DIR VERSION_VAR HDF5C_VERSION)
if(HDF5C_FOUND AND NOT TARGET HDF5C::hdf5)
  add_library(HDF5C::hdf5 UNKNOWN IMPORTED)
  set_target_properties(HDF5C::hdf5 PROPERTIES IMPORTED_LOCATION ${HDF5C_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${HDF5C_INCLUDE_DIR})
endif()
mark_as_advanced(HDF5C_LIBRARY HDF5C_INCLUDE_DIR)
