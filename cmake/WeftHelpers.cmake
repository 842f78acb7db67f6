# SPDX-License-Identifier: BSD-2-Clause

# A layer of the HCA: static library wf_<folder> from the sources named.
#   wf_layer(base SOURCES a.c b.c DEPENDS wf_wire PkgConfig::X)
function(wf_layer folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(wf_${folder} STATIC ${ARG_SOURCES})
  target_link_libraries(wf_${folder} PUBLIC ${ARG_DEPENDS} Threads::Threads)
endfunction()

# Sanitizers slow some tests down by an order of magnitude.
set(WEFT_UNIT_TIMEOUT 60)
if(WEFT_SANITIZE)
  set(WEFT_UNIT_TIMEOUT 300)
endif()

# A unit test beside its source: ctest "unit/<name>", label "unit".
#   wf_unit_test(icrc SOURCES icrc_test.c DEPENDS wf_wire)
function(wf_unit_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name}_test ${ARG_SOURCES})
  set_target_properties(${name}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${name}_test PRIVATE ${ARG_DEPENDS} cmocka)
  add_test(NAME unit/${name} COMMAND ${name}_test)
  set_tests_properties(unit/${name} PROPERTIES LABELS unit TIMEOUT ${WEFT_UNIT_TIMEOUT} SKIP_RETURN_CODE 77)
endfunction()

# A libFuzzer target for a decoder, built with WEFT_FUZZ=ON and clang only: build/fuzz/<name>.
#   wf_fuzz_target(packet SOURCES packet_fuzz.c DEPENDS wf_wire)
function(wf_fuzz_target name)
  if(NOT WEFT_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(fuzz_${name} ${ARG_SOURCES})
  set_target_properties(fuzz_${name} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(fuzz_${name} PRIVATE ${ARG_DEPENDS})
endfunction()
