# What `cmake --install` lays down: libraries, headers, manual pages, pkg-config modules and the CMake package (and
# tools/ its programs and their pages). Nothing in the tree names the prefix, so that an installed tree may be moved.
include(CMakePackageConfigHelpers)

set(VIADUCT_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/Viaduct)
set(VIADUCT_FRONTENDS vipl rpma dat2) # and dat, whose headers are beside those of dat2
set(VIADUCT_LIBRPMA_API_VERSION 1.2.0)

target_compile_features(viaduct INTERFACE cxx_std_20)
viaduct_install_rpath(rpath $ORIGIN)
set_target_properties(viaduct ${VIADUCT_FRONTENDS} dat daplviaduct PROPERTIES INSTALL_RPATH "${rpath}")

set(librpma_libs -lrpma)
if(VIADUCT_IBVERBS)
  string(APPEND librpma_libs " -libverbs")
  target_link_libraries(rpma INTERFACE $<INSTALL_INTERFACE:ibverbs>)
endif()

# The component "libraries" is what the Python package uses: bindings/python/wheel_backend.py.
set(libraries LIBRARY COMPONENT libraries NAMELINK_COMPONENT development)
install(TARGETS viaduct EXPORT ViaductTargets ${libraries})
foreach(frontend IN LISTS VIADUCT_FRONTENDS)
  get_target_property(libdir ${frontend} VIADUCT_LIBDIR)
  list(TRANSFORM libraries REPLACE "^LIBRARY$" "LIBRARY;DESTINATION;${libdir}" OUTPUT_VARIABLE there)
  install(TARGETS ${frontend} EXPORT ViaductTargets ${there})
endforeach()
install(TARGETS dat EXPORT ViaductTargets)
foreach(library viaduct ${VIADUCT_FRONTENDS} dat) # the names of the package, for projects that contain this one
  add_library(Viaduct::${library} ALIAS ${library})
endforeach()
install(TARGETS daplviaduct LIBRARY COMPONENT libraries NAMELINK_SKIP) # loaded, never linked

# A directory from which vi-run and the dynamic linker can take all libraries.
if(VIADUCT_BESIDE_STOCK)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/beside)
  foreach(library viaduct vipl dat daplviaduct)
    get_target_property(soversion ${library} SOVERSION)
    set(name lib${library}.so.${soversion})
    file(CREATE_LINK ../${name} ${PROJECT_BINARY_DIR}/beside/${name} SYMBOLIC)
    install(FILES ${PROJECT_BINARY_DIR}/beside/${name} DESTINATION ${VIADUCT_PLUGINDIR})
  endforeach()
endif()

# Names that programs of the time link and load VIPL by.
get_target_property(vipl_soversion vipl SOVERSION)
foreach(name libgnivipl.so vipl.so)
  file(CREATE_LINK libvipl.so.${vipl_soversion} ${PROJECT_BINARY_DIR}/${name} SYMBOLIC)
  install(FILES ${PROJECT_BINARY_DIR}/${name} DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/core/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/api/vipl/include/vipl.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/api/rpma/include/librpma.h DESTINATION ${VIADUCT_STOCK_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/api/rpma/include/viaduct/ibv_types.h # where librpma.h finds it without any option
        DESTINATION ${VIADUCT_STOCK_INCLUDEDIR}/viaduct)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/api/udat/include/dat DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/api/udat/include/dat2 DESTINATION ${VIADUCT_STOCK_INCLUDEDIR})

# A part of the manual: its pages, and for each function that a page names a page of that name which leads there.
# Names end with the section, which may have a suffix, such as 3dat. Pages that the stock libraries have get one, too.
function(viaduct_install_manual directory)
  file(GLOB pages ${directory}/*.[357]*)
  set(aliases ${CMAKE_CURRENT_BINARY_DIR}/man3)
  foreach(page IN LISTS pages)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
    get_filename_component(name ${page} NAME)
    if(VIADUCT_BESIDE_STOCK AND name MATCHES "rpma.*[37]$|^dat.conf")
      string(APPEND name viaduct)
    endif()
    string(REGEX MATCH "([357])[a-z]*$" section ${name})
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${CMAKE_MATCH_1} RENAME ${name})
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
  viaduct_install_rpath(rpath $ORIGIN/${bin_to_lib})
  set_target_properties(${VIADUCT_TOOL_NAMES} PROPERTIES INSTALL_RPATH "${rpath}")
endif()

# viaduct_pkg_config(MODULE LIBS REQUIRED DESCRIPTION)
function(viaduct_pkg_config module libs required description)
  set(libdir ${CMAKE_INSTALL_LIBDIR})
  set(includedir ${CMAKE_INSTALL_INCLUDEDIR})
  if(module MATCHES "librpma|dat2")
    set(libdir ${VIADUCT_STOCK_LIBDIR})
    set(includedir ${VIADUCT_STOCK_INCLUDEDIR})
  endif()
  set(version ${PROJECT_VERSION})
  if(module STREQUAL librpma)
    set(version ${VIADUCT_LIBRPMA_API_VERSION})
  endif()
  file(RELATIVE_PATH to_prefix ${CMAKE_INSTALL_PREFIX}/${libdir}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  string(REGEX REPLACE "/$" "" to_prefix ${to_prefix})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/module.pc.in ${PROJECT_BINARY_DIR}/${module}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${module}.pc DESTINATION ${libdir}/pkgconfig)
endfunction()
viaduct_pkg_config(viaduct -lviaduct ""
  "The core of Viaduct: devices, memory, endpoints, completions and events (C++20)")
viaduct_pkg_config(vipl -lvipl viaduct "The Virtual Interface Provider Library (VIPL) over Viaduct")
viaduct_pkg_config(librpma "${librpma_libs}" viaduct
  "Remote persistent memory access (librpma) over Viaduct ${PROJECT_VERSION}")
viaduct_pkg_config(dat2 -ldat2 viaduct
  "uDAPL 2.0, the user's Direct Access Programming Library, over Viaduct")
viaduct_pkg_config(dat -ldat dat2 "uDAPL 1.2, the user's Direct Access Programming Library, over Viaduct")

install(EXPORT ViaductTargets NAMESPACE Viaduct:: DESTINATION ${VIADUCT_CMAKEDIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ViaductConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/ViaductConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/ViaductConfig.cmake INSTALL_DESTINATION ${VIADUCT_CMAKEDIR})
install(FILES ${PROJECT_BINARY_DIR}/ViaductConfig.cmake ${PROJECT_BINARY_DIR}/ViaductConfigVersion.cmake
        DESTINATION ${VIADUCT_CMAKEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN site EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR} USE_SOURCE_PERMISSIONS
        PATTERN "__pycache__" EXCLUDE)

if(PROJECT_IS_TOP_LEVEL)
  add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt
                                      -P ${CMAKE_CURRENT_LIST_DIR}/uninstall.cmake VERBATIM)
endif()
