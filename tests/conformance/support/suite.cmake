# Shared by the conformance suites: a library under test, C11 programs that use its header, and tests for CTest.
#
# A suite sets suite_name, includes this file and calls conformance_library.
find_package(Threads REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

set(suite_support ${CMAKE_CURRENT_LIST_DIR})
set(suite_page ${CMAKE_CURRENT_LIST_DIR}/../../../docs/conformance.md)

set(strict_c -Wall -Wextra -Wpedantic)
if(VIADUCT_WERROR)
  list(APPEND strict_c -Werror)
endif()

# conformance_library(TARGET MODULE FILE): the library under test is TARGET of this project or, if the suite is
# configured alone, the installed library of the pkg-config module MODULE. Sets suite_library (for linking), suite_file
# (the shared library) and suite_include_dir.
macro(conformance_library target module file)
  if(TARGET ${target})
    set(suite_library ${target})
    set(suite_file $<TARGET_FILE:${target}>)
    set(suite_include_dir ${PROJECT_SOURCE_DIR}/api/${target}/include)
  else()
    find_package(PkgConfig REQUIRED)
    pkg_check_modules(${target} REQUIRED IMPORTED_TARGET ${module})
    set(suite_library PkgConfig::${target})
    pkg_get_variable(suite_include_dir ${module} includedir)
    pkg_get_variable(suite_lib_dir ${module} libdir)
    set(suite_file ${suite_lib_dir}/${file})
  endif()
endmacro()

function(conformance_compile target)
  set_target_properties(${target} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE ${strict_c})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}) # for what is compiled for each suite
  target_link_libraries(${target} PRIVATE ${suite_library} Threads::Threads)
endfunction()

# conformance_support(SOURCES...): sources that all programs of the suite are linked with, in addition to the harness.
function(conformance_support)
  add_library(conformance_${suite_name}_support OBJECT ${suite_support}/harness.c ${ARGN})
  conformance_compile(conformance_${suite_name}_support)
endfunction()

# conformance_program(NAME SOURCES...): an executable NAME. Its target has a longer name.
function(conformance_program name)
  set(target conformance_${suite_name}_${name})
  add_executable(${target} ${ARGN})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name})
  conformance_compile(${target})
endfunction()

# conformance_test(NAME COMMAND...): a test for CTest.
function(conformance_test name)
  add_test(NAME conformance.${suite_name}.${name} COMMAND ${ARGN})
  set_tests_properties(conformance.${suite_name}.${name} PROPERTIES LABELS conformance TIMEOUT 600)
endfunction()

# conformance_label(LABEL NAMES...): adds a label to tests; tests/run.py says what each means.
function(conformance_label label)
  list(TRANSFORM ARGN PREPEND conformance.${suite_name}.)
  set_property(TEST ${ARGN} APPEND PROPERTY LABELS ${label})
endfunction()

# conformance_over_backends(NAMES...): programs that find faults of a backend. tests/hosts runs them over tcp in the tests
# of every change, the others only in those of all.
function(conformance_over_backends)
  set_property(GLOBAL APPEND PROPERTY conformance_over_backends ${ARGN})
endfunction()

# conformance_cases(PROGRAMS...): programs of cases, each from NAME.c and the support sources. Programs named out_of_...
# are also linked with functions that make resources run out.
function(conformance_cases)
  foreach(program ${ARGN})
    set(sources ${program}.c $<TARGET_OBJECTS:conformance_${suite_name}_support>)
    if(program MATCHES "^out_of_")
      list(APPEND sources ${suite_support}/sweep.c ${suite_support}/../../support/failing_calls.c)
    endif()
    conformance_program(${program} ${sources})
    conformance_test(${program} conformance_${suite_name}_${program})
  endforeach()
endfunction()

# conformance_header(NAME COMPILER OPTIONS...): checks that header_alone.c of the suite compiles with these options.
function(conformance_header name compiler)
  conformance_test(${name} ${compiler} ${ARGN} -Wall -Wextra -pedantic-errors -Werror -fsyntax-only
                   -I${suite_include_dir} ${CMAKE_CURRENT_SOURCE_DIR}/header_alone.c)
  conformance_label(plain ${name})
  conformance_label(installed ${name})
endfunction()

# Checks that docs/conformance.md names a case of the suite's programs for every code in documented.txt.
function(conformance_table)
  conformance_test(table ${Python3_EXECUTABLE} ${suite_support}/check_table.py ${suite_page}
                   $<TARGET_FILE_DIR:conformance_${suite_name}_abi> ${CMAKE_CURRENT_SOURCE_DIR}/documented.txt)
  conformance_label(plain table)
endfunction()

# conformance_oracle(OPTIONS...): on the RDMA devices of the virtual machine in tests/vm, runs each program and a copy
# linked with the stock library. oracle.txt of the suite lists the differences.
function(conformance_oracle)
  if(NOT (PROJECT_NAME STREQUAL Viaduct AND VIADUCT_VERBS AND CMAKE_BUILD_TYPE STREQUAL Release))
    return()
  endif()
  include(ExternalProject)
  ExternalProject_Add(conformance_${suite_name}_stock SOURCE_DIR ${CMAKE_CURRENT_SOURCE_DIR} BINARY_DIR stock
                      BUILD_ALWAYS ON INSTALL_COMMAND ""
                      LOG_CONFIGURE ON LOG_BUILD ON LOG_OUTPUT_ON_FAILURE ON)
  add_test(NAME oracle.${suite_name} COMMAND ${Python3_EXECUTABLE} ${suite_support}/oracle.py
           ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/stock ${CMAKE_CURRENT_BINARY_DIR} ${ARGN})
  set_tests_properties(oracle.${suite_name} PROPERTIES LABELS "oracle;device;thorough" TIMEOUT 1100 SKIP_RETURN_CODE 77)
endfunction()
