# Defaults for a build of braid itself; a project that adds braid as a subdirectory keeps its own settings.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo" FORCE)
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without the first two, ccache refuses precompiled headers; no source here uses __TIME__. By default it compares
  # preprocessed headers, so after a change in a comment it returns the old precompiled header, whose checksums GCC then
  # takes for those of other files and includes them twice: "redefinition of". DEPEND compares files, and a NAMESPACE of
  # its own keeps what was stored before from being found.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1 CCACHE_NAMESPACE=braid
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_ctime,include_file_mtime ${CCACHE})
endif()
