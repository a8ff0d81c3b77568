# Open MPI refuses root (containers) and more ranks than cores unless told otherwise; other MPIs ignore these variables.
set(LINEAR_DDP_MPI_ENVIRONMENT
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
  OMPI_MCA_btl_vader_single_copy_mechanism=none)

# add_unit_test(unit/x_test [LIBRARIES ...]): one executable, one process, one CTest entry.
function(add_unit_test path)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBRARIES")
  get_filename_component(name ${path} NAME)
  add_executable(${name} ${path}.cpp)
  target_link_libraries(${name} PRIVATE test_support ${arg_LIBRARIES} GTest::gtest_main)
  add_test(NAME unit.${name} COMMAND ${name})
  set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT 120 ENVIRONMENT "${LINEAR_DDP_MPI_ENVIRONMENT}")
endfunction()

# add_mpi_test(mpi/x_test RANKS 1 2 4 [LABELS ...] [LIBRARIES ...] [BACKENDS]): one executable, one CTest entry for each
# number of ranks. BACKENDS: its suites are instantiated for Cpu and for Gpu; Gpu's are entries of their own, labelled gpu.
function(add_mpi_test path)
  cmake_parse_arguments(PARSE_ARGV 1 arg "BACKENDS" "" "RANKS;LABELS;LIBRARIES")
  get_filename_component(name ${path} NAME)
  add_executable(${name} ${path}.cpp)
  target_link_libraries(${name} PRIVATE mpi_gtest_main ${arg_LIBRARIES})
  foreach(ranks IN LISTS arg_RANKS)
    if(arg_BACKENDS)
      _add_mpi_entry(mpi.${name}.np${ranks} ${name} ${ranks} "mpi;${arg_LABELS}" "--gtest_filter=-Gpu/*")
      _add_mpi_entry(gpu.${name}.np${ranks} ${name} ${ranks} gpu "--gtest_filter=Gpu/*")
      set_tests_properties(gpu.${name}.np${ranks} PROPERTIES RESOURCE_LOCK gpu)
    else()
      _add_mpi_entry(mpi.${name}.np${ranks} ${name} ${ranks} "mpi;${arg_LABELS}")
    endif()
  endforeach()
endfunction()

function(_add_mpi_entry entry executable ranks labels)
  add_test(NAME ${entry} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${MPIEXEC_PREFLAGS}
    $<TARGET_FILE:${executable}> ${ARGN} ${MPIEXEC_POSTFLAGS})
  set_tests_properties(${entry} PROPERTIES LABELS "${labels}" PROCESSORS ${ranks} TIMEOUT 120
    ENVIRONMENT "${LINEAR_DDP_MPI_ENVIRONMENT}" SKIP_REGULAR_EXPRESSION "ALL TESTS SKIPPED")
endfunction()

# add_cli_test(cli/x_test [LABELS ...]): one executable, one CTest entry; runs programs, most of all linear_ddp, on up
# to 4 ranks.
function(add_cli_test path)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LABELS")
  get_filename_component(name ${path} NAME)
  add_executable(${name} ${path}.cpp)
  target_link_libraries(${name} PRIVATE subprocess GTest::gtest_main)
  add_dependencies(${name} linear_ddp_app)
  add_test(NAME cli.${name} COMMAND ${name})
  set_tests_properties(cli.${name} PROPERTIES LABELS "cli;${arg_LABELS}" PROCESSORS 4 TIMEOUT 300
    ENVIRONMENT "${LINEAR_DDP_MPI_ENVIRONMENT}")
endfunction()
