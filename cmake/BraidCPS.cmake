# Describes the installed package in the Common Package Specification (https://cps-org.github.io/cps/), which CMake 4.3 and
# later read in place of the CMake package. MPI is in an appendix, a file that its users alone load.

# braid_cps(braid braid_dev): installs braid.cps with the component braid_dev.
function(braid_cps name component)
  set(prefix "@prefix@")  # CPS's own placeholder
  set(folder ${prefix}/${CMAKE_INSTALL_LIBDIR}/cps/braid)
  set(libraries ${prefix}/${CMAKE_INSTALL_LIBDIR})
  set(type dylib)
  if(NOT BUILD_SHARED_LIBS)  # shared libraries record their dependencies
    set(type archive)
    string(REGEX REPLACE "(^| +)-l?" ";" libraries_of_core "${libraries_of_static}")
    set(libraries_of_mpi ${MPI_CXX_LIB_NAMES})
  endif()
  foreach(list libraries_of_core libraries_of_mpi)
    list(REMOVE_ITEM ${list} "")
    list(TRANSFORM ${list} REPLACE "(.+)" "\"\\1\"")
    list(JOIN ${list} ", " ${list})
  endforeach()
  configure_file(cmake/${name}.cps.in ${name}.cps.in @ONLY)
  file(GENERATE OUTPUT ${name}.cps INPUT ${PROJECT_BINARY_DIR}/${name}.cps.in)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.cps DESTINATION ${CMAKE_INSTALL_LIBDIR}/cps/braid COMPONENT ${component})
endfunction()

braid_cps(braid braid_dev)
if(TARGET braid::mpi)
  braid_cps(braid-mpi braid_mpi_dev)
endif()
