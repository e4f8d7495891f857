# What `cmake --install` lays down: libraries, headers, manual pages, pkg-config modules and the CMake package (and
# tools/ its programs and their pages). Nothing in the tree names the prefix, so that an installed tree may be moved.
include(CMakePackageConfigHelpers)

set(VIADUCT_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/Viaduct)
set(VIADUCT_FRONTENDS vipl rpma dat2) # and dat, whose headers are beside those of dat2
set(VIADUCT_MODULES viaduct vipl librpma dat2 dat) # of pkg-config
set(VIADUCT_LIBRPMA_API_VERSION 1.2.0)

target_compile_features(viaduct INTERFACE cxx_std_20)
set_target_properties(viaduct ${VIADUCT_FRONTENDS} dat daplviaduct PROPERTIES INSTALL_RPATH "$ORIGIN")

# librpma.h takes <infiniband/verbs.h> where there is one; what that declares is defined in libibverbs.
find_library(VIADUCT_IBVERBS ibverbs)
mark_as_advanced(VIADUCT_IBVERBS)
set(librpma_libs -lrpma)
if(VIADUCT_IBVERBS)
  string(APPEND librpma_libs " -libverbs")
  target_link_libraries(rpma INTERFACE $<INSTALL_INTERFACE:ibverbs>)
endif()

# The component "libraries" is what the Python package uses: bindings/python/wheel_backend.py.
set(libraries LIBRARY COMPONENT libraries NAMELINK_COMPONENT development)
install(TARGETS viaduct ${VIADUCT_FRONTENDS} EXPORT ViaductTargets ${libraries})
install(TARGETS dat EXPORT ViaductTargets)
install(TARGETS daplviaduct LIBRARY COMPONENT libraries NAMELINK_SKIP) # loaded, never linked

# Names that programs of the time link and load VIPL by.
get_target_property(vipl_soversion vipl SOVERSION)
foreach(name libgnivipl.so vipl.so)
  file(CREATE_LINK libvipl.so.${vipl_soversion} ${PROJECT_BINARY_DIR}/${name} SYMBOLIC)
  install(FILES ${PROJECT_BINARY_DIR}/${name} DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()

foreach(library viaduct ${VIADUCT_FRONTENDS})
  get_target_property(directory ${library} SOURCE_DIR)
  install(DIRECTORY ${directory}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
endforeach()

# A part of the manual: its pages, and for each function that a page names a page of that name which leads there.
# Names end with the section, which may have a suffix, such as 3dat.
function(viaduct_install_manual directory)
  file(GLOB pages ${directory}/*.[357]*)
  set(aliases ${CMAKE_CURRENT_BINARY_DIR}/man3)
  foreach(page IN LISTS pages)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
    get_filename_component(name ${page} NAME)
    string(REGEX MATCH "([357])[a-z]*$" section ${name})
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${CMAKE_MATCH_1})
    file(STRINGS ${page} functions REGEX "^\\.Nm [A-Za-z]")
    foreach(line IN LISTS functions)
      string(REGEX REPLACE "^\\.Nm ([A-Za-z0-9_.]+).*" "\\1" function "${line}")
      if(NOT "${function}.${section}" STREQUAL name)
        file(WRITE ${aliases}/${function}.${section} ".so man3/${name}\n")
        install(FILES ${aliases}/${function}.${section} DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
      endif()
    endforeach()
  endforeach()
endfunction()
viaduct_install_manual(${PROJECT_SOURCE_DIR}/api/vipl/man)
viaduct_install_manual(${PROJECT_SOURCE_DIR}/api/rpma/man)
viaduct_install_manual(${PROJECT_SOURCE_DIR}/api/udat/man)
viaduct_install_manual(${PROJECT_SOURCE_DIR}/core/man)

if(VIADUCT_TOOLS) # tools/CMakeLists.txt installs them
  file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(${VIADUCT_TOOL_NAMES} PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
endif()

file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_to_prefix ${pc_to_prefix})

foreach(module IN LISTS VIADUCT_MODULES)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${module}.pc.in ${PROJECT_BINARY_DIR}/${module}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${module}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

install(EXPORT ViaductTargets NAMESPACE Viaduct:: DESTINATION ${VIADUCT_CMAKEDIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ViaductConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/ViaductConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/ViaductConfig.cmake INSTALL_DESTINATION ${VIADUCT_CMAKEDIR})
install(FILES ${PROJECT_BINARY_DIR}/ViaductConfig.cmake ${PROJECT_BINARY_DIR}/ViaductConfigVersion.cmake
        DESTINATION ${VIADUCT_CMAKEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR} USE_SOURCE_PERMISSIONS
        PATTERN "__pycache__" EXCLUDE)
