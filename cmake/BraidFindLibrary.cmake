# braid_find_library(zip zip.h): the target braid_needs::zip of a library without a CMake package of its own everywhere, if
# its header, and its binary unless HEADERS_ONLY is given, are found. CMAKE_DISABLE_FIND_PACKAGE_zip looks away, as it does
# in find_package. The installed package includes this file for the static libraries.
function(braid_find_library name header)
  if(CMAKE_DISABLE_FIND_PACKAGE_${name} OR TARGET braid_needs::${name})
    return()
  endif()
  find_path(BRAID_${name}_INCLUDE_DIR ${header})
  mark_as_advanced(BRAID_${name}_INCLUDE_DIR)
  if(NOT BRAID_${name}_INCLUDE_DIR)
    return()
  endif()
  if(HEADERS_ONLY IN_LIST ARGN)
    add_library(braid_needs::${name} INTERFACE IMPORTED GLOBAL)
  else()
    find_library(BRAID_${name}_LIBRARY ${name})
    mark_as_advanced(BRAID_${name}_LIBRARY)
    if(NOT BRAID_${name}_LIBRARY)
      return()
    endif()
    add_library(braid_needs::${name} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(braid_needs::${name} PROPERTIES IMPORTED_LOCATION ${BRAID_${name}_LIBRARY})
  endif()
  set_target_properties(braid_needs::${name} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${BRAID_${name}_INCLUDE_DIR})
endfunction()

# braid_name_package(text zip): "zip (Debian: libzip-dev)", for messages about what is missing.
function(braid_name_package text library)
  set(packages fmt libfmt-dev  hwy libhwy-dev  dnnl libdnnl-dev  OpenCL ocl-icd-opencl-dev  MPI libopenmpi-dev
    nlohmann_json nlohmann-json3-dev  pcre2-8 libpcre2-dev  utf8proc libutf8proc-dev  xxhash libxxhash-dev  zip libzip-dev
    dlpack libdlpack-dev  CLI11 libcli11-dev  tomlplusplus libtomlplusplus-dev  gmock libgmock-dev
    benchmark libbenchmark-dev  rapidcheck librapidcheck-dev)  # as in packaging/packages.txt
  list(FIND packages ${library} at)
  math(EXPR at "${at} + 1")
  list(GET packages ${at} package)
  set(${text} "${library} (Debian: ${package})" PARENT_SCOPE)
endfunction()
