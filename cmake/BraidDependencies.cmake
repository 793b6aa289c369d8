# The libraries that braid's are built with. fmt and Highway are required; without one of the others, BRAID_HAS_NAME is off
# and what needs it throws MissingLibrary: docs/install.md has the table. CMAKE_DISABLE_FIND_PACKAGE_dnnl and the like
# configure as if one were absent.
include(BraidFindLibrary)
include(CheckCXXSourceCompiles)

find_package(Threads REQUIRED)
set(missing)
foreach(library fmt hwy)
  find_package(${library} QUIET)
  if(NOT ${library}_FOUND)
    braid_name_package(named ${library})
    list(APPEND missing ${named})
  endif()
endforeach()
if(missing)
  list(JOIN missing ", " missing)
  message(FATAL_ERROR "braid needs ${missing}")
endif()

# Where the system's C++ libraries were compiled with another standard library, as Debian's are for -stdlib=libc++, their
# symbols differ: fmt is then used from its headers, and others not at all.
set(CMAKE_REQUIRED_LIBRARIES fmt::fmt)
check_cxx_source_compiles("#include <fmt/format.h>
  int main(int n, char**) { return static_cast<int>(fmt::format(\"{}\", n).size()); }" BRAID_FMT_LINKS)
unset(CMAKE_REQUIRED_LIBRARIES)
set(BRAID_FMT fmt::fmt)
if(NOT BRAID_FMT_LINKS)
  set(BRAID_FMT fmt::fmt-header-only)
endif()
find_package(OpenCL QUIET)
# A oneDNN for GPUs, such as Debian's, needs OpenCL, and its package stops CMake without.
if(NOT OpenCL_FOUND AND NOT CMAKE_DISABLE_FIND_PACKAGE_dnnl)
  find_file(BRAID_dnnl_CONFIG oneapi/dnnl/dnnl_config.h)
  mark_as_advanced(BRAID_dnnl_CONFIG)
  if(BRAID_dnnl_CONFIG)
    file(STRINGS ${BRAID_dnnl_CONFIG} onednn_for_opencl REGEX "define DNNL_GPU_RUNTIME DNNL_RUNTIME_OCL")
  endif()
endif()
if(onednn_for_opencl)
  set(onednn "oneDNN, which needs OpenCL (Debian: ocl-icd-opencl-dev) here")
else()
  set(onednn "oneDNN (Debian: libdnnl-dev)")
  find_package(dnnl QUIET)
endif()
find_package(nlohmann_json QUIET)
if(NOT CMAKE_CROSSCOMPILING)  # finding MPI runs its compiler
  # Open MPI's programs without its headers: CMake's FindMPI would end with an error.
  execute_process(COMMAND mpicxx -showme:incdirs OUTPUT_VARIABLE mpi_headers OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  separate_arguments(mpi_headers)
  foreach(folder ${mpi_headers})
    if(NOT EXISTS ${folder})
      set(CMAKE_DISABLE_FIND_PACKAGE_MPI ON)
    endif()
  endforeach()
  set(MPI_CXX_SKIP_MPICXX ON)  # the C functions, without the bindings that MPI has removed
  find_package(MPI QUIET COMPONENTS CXX)
endif()
braid_find_library(dlpack dlpack/dlpack.h HEADERS_ONLY)
braid_find_library(pcre2-8 pcre2.h)
braid_find_library(utf8proc utf8proc.h)
braid_find_library(xxhash xxhash.h)
braid_find_library(zip zip.h)

# oneDNN generates code for x86-64 and has plain loops elsewhere. gemm_by_onednn.cpp holds it to one thread through OpenMP:
# a oneDNN without that is not used.
if(TARGET DNNL::dnnl AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(CMAKE_REQUIRED_LIBRARIES DNNL::dnnl gomp)
  check_cxx_source_compiles([[
    #include <oneapi/dnnl/dnnl_config.h>
    static_assert(DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP);
    extern "C" int omp_get_max_threads();
    int main() { return omp_get_max_threads(); }]] BRAID_ONEDNN_FITS)
  unset(CMAKE_REQUIRED_LIBRARIES)
endif()

if(TARGET DNNL::dnnl AND BRAID_ONEDNN_FITS)
  set(BRAID_HAS_ONEDNN ON)
else()
  set(BRAID_HAS_ONEDNN OFF)
  message(STATUS "braid without ${onednn}: its own packed product multiplies")
endif()

# braid_has(ZIP "no npz archives" braid_needs::zip): whether these targets exist is BRAID_HAS_ZIP, the libraries of those that
# do not are BRAID_LACKS_ZIP.
function(braid_has name without)
  set(missing)
  foreach(target ${ARGN})
    if(NOT TARGET ${target})
      string(REGEX REPLACE ".*::|_CXX$" "" library ${target})
      list(APPEND missing ${library})
      set_property(GLOBAL APPEND PROPERTY braid_without_${library} ${without})
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY braid_lacks ${missing})
  set(BRAID_LACKS_${name} "${missing}" PARENT_SCOPE)
  set(BRAID_HAS_${name} ON PARENT_SCOPE)
  if(missing)
    set(BRAID_HAS_${name} OFF PARENT_SCOPE)
  endif()
endfunction()

# One line for each missing library: what is left out without it.
function(braid_name_missing)
  get_property(libraries GLOBAL PROPERTY braid_lacks)
  list(REMOVE_DUPLICATES libraries)
  foreach(library ${libraries})
    get_property(without GLOBAL PROPERTY braid_without_${library})
    list(JOIN without ", " without)
    braid_name_package(named ${library})
    message(STATUS "braid without ${named}: ${without}")
  endforeach()
endfunction()

braid_has(DLPACK "no exchange of tensors with other libraries" braid_needs::dlpack)
braid_has(JSON "no safetensors and pretrained models" nlohmann_json::nlohmann_json)
braid_has(TEXT "no tokenizers" braid_needs::pcre2-8 braid_needs::utf8proc nlohmann_json::nlohmann_json)
braid_has(XXHASH "no checksums" braid_needs::xxhash)
braid_has(ZIP "no npz archives" braid_needs::zip)
braid_has(MPI "no training over ranks" MPI::MPI_CXX braid_needs::xxhash)
