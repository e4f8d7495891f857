# cmake -DBUILD=DIRECTORY -DSCRIPT=uninstall.cmake -P uninstall.cmake: what was installed is removed, and nothing else.
set(root "${BUILD}/uninstall")
file(REMOVE_RECURSE "${root}")
file(WRITE "${root}/opt/share/mine" "of the user")
set(ENV{DESTDIR} "${root}")
execute_process(COMMAND ${CMAKE_COMMAND} --install "${BUILD}" --prefix /opt OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} "-DMANIFEST=${BUILD}/install_manifest.txt" -P "${SCRIPT}"
                COMMAND_ERROR_IS_FATAL ANY)
file(GLOB_RECURSE left "${root}/*")
if(NOT left STREQUAL "${root}/opt/share/mine" OR EXISTS "${root}/opt/include/viaduct")
  message(FATAL_ERROR "left: ${left}")
endif()
