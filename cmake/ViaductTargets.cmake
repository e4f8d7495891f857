# What every target of the project shares: warnings, and the shape of a front-end library.

add_library(viaduct_options INTERFACE)
target_compile_options(viaduct_options INTERFACE -Wall -Wextra -Wpedantic)
# Members have defaults: what an initializer leaves out is left out on purpose.
target_compile_options(viaduct_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # gcc 12 sees overlaps in std::string's operator+ that are not there (its bug 105651).
  target_compile_options(viaduct_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(VIADUCT_WERROR)
  target_compile_options(viaduct_options INTERFACE -Werror)
endif()
target_include_directories(viaduct_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/core/include
                                                     ${PROJECT_BINARY_DIR}/generated)

# viaduct_constants(NAME HEADER... [OPTION...]): generated/NAME.inc has a line for each constant, structure or call of
# the headers, which are below api/; see constants.py. Written when the tree is configured, because ./dev lint reads it
# without a build.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
function(viaduct_constants name)
  set(script ${PROJECT_SOURCE_DIR}/cmake/constants.py)
  execute_process(COMMAND ${Python3_EXECUTABLE} ${script} --list ${PROJECT_BINARY_DIR}/generated/${name}.inc ${ARGN}
                  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/api COMMAND_ERROR_IS_FATAL ANY)
  set(inputs ${ARGN})
  list(FILTER inputs INCLUDE REGEX "\\.(h|hpp|in|json)$|/enumerations/")
  list(TRANSFORM inputs REPLACE "^([^/])" "${PROJECT_SOURCE_DIR}/api/\\1")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${script} ${inputs})
endfunction()

# Loops are over a piece or two: what -O3 does to them makes them larger and no faster. Fields are copied one by one:
# vectors of them take more instructions to build (docs/adr/0014-fields-apart.md tells what else they cost).
function(viaduct_optimize target)
  target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:-O2;-fno-tree-slp-vectorize>")
endfunction()

# The data path crosses several files; link-time optimization lets the compiler see it whole. Its files are not compiled
# as one in a release: what is inlined where changes then, and costs each call some ten instructions.
include(CheckIPOSupported)
check_ipo_supported(RESULT VIADUCT_HAS_IPO LANGUAGES CXX)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(CMAKE_CXX_COMPILE_OPTIONS_IPO -flto=auto -fno-fat-lto-objects)  # on all processors
endif()

# Headers that most files include are compiled once for all of them. A target can use those of another one that has the
# same options and no definition that it lacks.
set(viaduct_std_headers <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint> <deque> <functional> <map>
    <memory> <mutex> <optional> <span> <string> <string_view> <thread> <unordered_map> <utility> <vector>)

function(viaduct_optimize_whole target)
  viaduct_optimize(${target})
  set_property(TARGET ${target} PROPERTY INTERPROCEDURAL_OPTIMIZATION_RELEASE ${VIADUCT_HAS_IPO})
  if(CMAKE_BUILD_TYPE STREQUAL Release)
    set_property(TARGET ${target} PROPERTY UNITY_BUILD OFF)
    if(TARGET viaduct_headers AND NOT target STREQUAL viaduct_headers)
      target_precompile_headers(${target} REUSE_FROM viaduct_headers)
    endif()
  endif()
endfunction()

if(CMAKE_BUILD_TYPE STREQUAL Release AND VIADUCT_UNITY)
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/headers.cpp CONTENT "")
  add_library(viaduct_headers OBJECT ${CMAKE_CURRENT_BINARY_DIR}/headers.cpp)
  target_link_libraries(viaduct_headers PRIVATE viaduct_options)
  viaduct_optimize_whole(viaduct_headers)
  target_precompile_headers(viaduct_headers PRIVATE ${viaduct_std_headers})
endif()

# Where libraries and headers go that have the names of the stock librpma and libdapl: beside these, apart.
set(VIADUCT_PLUGINDIR ${CMAKE_INSTALL_LIBDIR}/viaduct)
set(VIADUCT_STOCK_LIBDIR ${CMAKE_INSTALL_LIBDIR})
set(VIADUCT_STOCK_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR})
if(VIADUCT_BESIDE_STOCK)
  set(VIADUCT_STOCK_LIBDIR ${VIADUCT_PLUGINDIR})
  set(VIADUCT_STOCK_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR}/viaduct)
endif()

# viaduct_install_rpath(VARIABLE LIBDIR): where installed files find our libraries; LIBDIR is relative to them, and begins
# with $ORIGIN. The directory apart is first, because the stock libraries may be in the other one.
function(viaduct_install_rpath variable libdir)
  set(${variable} ${libdir} PARENT_SCOPE)
  if(VIADUCT_BESIDE_STOCK)
    set(${variable} ${libdir}/viaduct ${libdir} PARENT_SCOPE)
  endif()
endfunction()

# viaduct_frontend(NAME vipl SOVERSION 1 MAP vipl.map [STOCK_NAME] SOURCES ...): a thin shared library over libviaduct
# that exports what its symbol map names and nothing else. Its public headers are in include/ beside the caller.
# STOCK_NAME: another project has a library of the same name.
function(viaduct_frontend)
  cmake_parse_arguments(ARG "STOCK_NAME" "NAME;SOVERSION;MAP" "SOURCES" ${ARGN})
  set(libdir ${CMAKE_INSTALL_LIBDIR})
  set(includedir ${CMAKE_INSTALL_INCLUDEDIR})
  if(ARG_STOCK_NAME)
    set(libdir ${VIADUCT_STOCK_LIBDIR})
    set(includedir ${VIADUCT_STOCK_INCLUDEDIR})
  endif()
  add_library(${ARG_NAME} SHARED ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE viaduct viaduct_options)
  # Programs in C may put any number into an enumeration: the checks that find it read it as what it is.
  target_compile_options(${ARG_NAME} PRIVATE -fno-sanitize=enum)
  target_include_directories(${ARG_NAME} PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
                                                $<INSTALL_INTERFACE:${includedir}>)
  set(map ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_MAP})
  target_link_options(${ARG_NAME} PRIVATE -Wl,--version-script=${map} -Wl,--no-undefined -Wl,-z,nodelete)
  set_target_properties(${ARG_NAME} PROPERTIES SOVERSION ${ARG_SOVERSION} LINK_DEPENDS ${map}
                        VIADUCT_LIBDIR ${libdir})
  viaduct_optimize_whole(${ARG_NAME})
endfunction()
