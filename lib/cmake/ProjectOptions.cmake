set(LINEAR_DDP_SANITIZE "" CACHE STRING "Sanitizers for host code, e.g. address,undefined")
add_library(linear_ddp_options INTERFACE)
target_compile_features(linear_ddp_options INTERFACE cxx_std_20)
set(_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Woverloaded-virtual)
if(LINEAR_DDP_WERROR)
  list(APPEND _warnings -Werror)
endif()
target_compile_options(linear_ddp_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${_warnings}>")
if(LINEAR_DDP_SANITIZE)
  # g++ 12 sees uninitialised values in its own library once sanitizers have rewritten it.
  target_compile_options(linear_ddp_options INTERFACE
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>")
  target_compile_options(linear_ddp_options INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${LINEAR_DDP_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>")
  target_link_options(linear_ddp_options INTERFACE -fsanitize=${LINEAR_DDP_SANITIZE})
endif()
