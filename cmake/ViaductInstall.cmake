# What `cmake --install` lays down: libraries, headers, pkg-config modules and the CMake package (and tools/ its
# programs and manual pages). Nothing in the tree names the prefix, so that an installed tree may be moved.
include(CMakePackageConfigHelpers)

set(VIADUCT_CORE_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR}/viaduct) # its headers are named "core/..."
set(VIADUCT_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/Viaduct)
set(VIADUCT_FRONTENDS vipl)

target_compile_features(viaduct INTERFACE cxx_std_20)
set_target_properties(viaduct ${VIADUCT_FRONTENDS} PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS viaduct EXPORT ViaductTargets INCLUDES DESTINATION ${VIADUCT_CORE_INCLUDEDIR})
install(TARGETS ${VIADUCT_FRONTENDS} EXPORT ViaductTargets)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/core DESTINATION ${VIADUCT_CORE_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
foreach(frontend IN LISTS VIADUCT_FRONTENDS)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/api/${frontend}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          FILES_MATCHING PATTERN "*.h")
endforeach()

if(VIADUCT_TOOLS) # tools/CMakeLists.txt installs them
  file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(vi-ping vi-perf PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
endif()

file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_to_prefix ${pc_to_prefix})
foreach(module viaduct ${VIADUCT_FRONTENDS})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${module}.pc.in ${PROJECT_BINARY_DIR}/${module}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${module}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

install(EXPORT ViaductTargets NAMESPACE Viaduct:: DESTINATION ${VIADUCT_CMAKEDIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ViaductConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/ViaductConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/ViaductConfig.cmake INSTALL_DESTINATION ${VIADUCT_CMAKEDIR})
install(FILES ${PROJECT_BINARY_DIR}/ViaductConfig.cmake ${PROJECT_BINARY_DIR}/ViaductConfigVersion.cmake
        DESTINATION ${VIADUCT_CMAKEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
