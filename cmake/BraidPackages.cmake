# Debian packages by CPack, with shared libraries and development files in separate packages: `./dev package` makes them.

set(version ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The braid authors <authors@braid.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each has its own
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SOURCE braid)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY >=)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/core ${PROJECT_BINARY_DIR}/autograd
  ${PROJECT_BINARY_DIR}/nn ${PROJECT_BINARY_DIR}/mhc ${PROJECT_BINARY_DIR}/dist)

# With SOURCE_DATE_EPOCH in the environment, CMake takes this time and those of files in archives from it.
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(changelog ${PROJECT_BINARY_DIR}/changelog.Debian)
configure_file(cmake/debian/changelog.in ${changelog} @ONLY)
file(ARCHIVE_CREATE OUTPUT ${changelog}.gz PATHS ${changelog} FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)

# braid_package(braid_dev NAME libbraid-dev SECTION libdevel ON braid DEPENDS libfmt-dev DESCRIPTION line line ..):
# a package of an installed component. ON names the packages it needs in the same version; the first line is the synopsis.
function(braid_package component)
  cmake_parse_arguments(ARG "" "NAME;SECTION" "ON;DEPENDS;DESCRIPTION" ${ARGN})
  string(TOUPPER ${component} key)
  list(JOIN ARG_DEPENDS ", " depends)
  list(JOIN ARG_DESCRIPTION "\n" description)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
  set(CPACK_COMPONENT_${key}_DEPENDS ${ARG_ON} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${ARG_NAME} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${ARG_SECTION} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_DESCRIPTION "${description}" PARENT_SCOPE)
  if(ARG_SECTION STREQUAL libs)
    set(CPACK_DEBIAN_${key}_PACKAGE_SHLIBDEPS ON PARENT_SCOPE)
    set(CPACK_DEBIAN_${key}_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/debian/triggers PARENT_SCOPE)
  endif()
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE RENAME copyright DESTINATION share/doc/${ARG_NAME}
          COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES ${changelog}.gz DESTINATION share/doc/${ARG_NAME} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

set(what
  "Tensors, tape-based automatic differentiation, transformer modules and"
  "hyper-connections, for the CPU.")

braid_package(braid
  NAME libbraid${version}
  SECTION libs
  DESCRIPTION "Tensors, autodiff and hyper-connections - shared libraries" ${what})
braid_package(braid_dev
  NAME libbraid-dev
  SECTION libdevel
  ON braid
  DEPENDS libfmt-dev  # included by its headers
  DESCRIPTION "Tensors, autodiff and hyper-connections - development files" ${what})
if(TARGET braid::mpi)
  braid_package(braid_mpi
    NAME libbraid-mpi${version}
    SECTION libs
    ON braid
    DESCRIPTION "Tensors, autodiff and hyper-connections - training over MPI" ${what})
  braid_package(braid_mpi_dev
    NAME libbraid-mpi-dev
    SECTION libdevel
    ON braid_mpi braid_dev
    DESCRIPTION "Tensors, autodiff and hyper-connections - development files for MPI" ${what})
endif()
include(CPack)
