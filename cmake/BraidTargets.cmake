include(GNUInstallDirs)

# Language level and warnings of braid's own targets. Nothing here reaches users of the library except C++20.
function(braid_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  # Multiply-adds are fused where the code says so, and nowhere else: compilers and architectures differ in what they fuse.
  target_compile_options(${target} PRIVATE -ffp-contract=off
    -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion $<$<BOOL:${BRAID_WERROR}>:-Werror>)
endfunction()

# The preset clang builds without them, which shows that every source includes the headers it needs. Clang's contain
# timestamps unless disabled, which defeat a compiler cache.
function(braid_precompile target)
  if(BRAID_PRECOMPILE)
    target_precompile_headers(${target} ${ARGN})
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
  endif()
endfunction()

# COMPONENT is the package of the shared libraries, COMPONENT_dev that of everything a compiler needs.
function(braid_install target export component)
  if(BRAID_INSTALL)
    install(TARGETS ${target} EXPORT ${export}
      LIBRARY COMPONENT ${component} NAMELINK_COMPONENT ${component}_dev
      ARCHIVE COMPONENT ${component}_dev
      FILE_SET HEADERS COMPONENT ${component}_dev)
  endif()
endfunction()

# Everything is exported except inline functions, of which each library has its own copy, and kernels for one instruction set.
# Modules and templates in public headers call into detail/ and kernels/ of others: hiding the rest of a library's 80 to 370
# names would take a macro at nearly every declaration.
function(braid_share target)
  set(exports ${PROJECT_SOURCE_DIR}/cmake/exports.map)
  set_target_properties(${target} PROPERTIES VISIBILITY_INLINES_HIDDEN ON LINK_DEPENDS ${exports})
  target_link_options(${target} PRIVATE LINKER:--no-undefined,--version-script=${exports})
endfunction()

add_custom_target(braid_libraries)

# braid_add_library(core HEADERS tensor.h ... SOURCES tensor.cpp ... PUBLIC fmt::fmt PRIVATE hwy::hwy ...)
# One target per folder: braid_core, alias braid::core, or braid_NAME. HEADERS are the public ones, which get installed;
# PUBLIC and PRIVATE are the libraries it links; PRECOMPILED are headers that most sources include anyway. A COMPONENT is
# imported only if find_package names it.
function(braid_add_library folder)
  cmake_parse_arguments(ARG "COMPONENT" "NAME" "HEADERS;SOURCES;PUBLIC;PRIVATE;PRECOMPILED" ${ARGN})
  set(name ${folder})
  if(ARG_NAME)
    set(name ${ARG_NAME})
  endif()
  set(target braid_${name})
  set(export braidTargets)
  set(component braid)
  if(ARG_COMPONENT)
    set(export braid_${name}Targets)
    set(component braid_${name})
  endif()
  if(NOT ARG_SOURCES)
    add_library(${target} INTERFACE)
    add_library(braid::${name} ALIAS ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
    target_link_libraries(${target} INTERFACE ${ARG_PUBLIC})
    braid_install(${target} ${export} ${component})
    return()
  endif()
  add_library(${target} ${ARG_SOURCES})
  add_library(braid::${name} ALIAS ${target})
  add_dependencies(braid_libraries ${target})
  braid_options(${target})
  # By their paths in include/, whose links to the folders make <braid/core/tensor.h> valid in the tree as installed.
  list(TRANSFORM ARG_HEADERS PREPEND ${PROJECT_SOURCE_DIR}/include/braid/${folder}/)
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${ARG_HEADERS})
  target_link_libraries(${target} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  if(ARG_PRECOMPILED)
    braid_precompile(${target} PRIVATE ${ARG_PRECOMPILED})
  endif()
  # Without any optimization, GCC 12 rejects Highway's AVX-512 intrinsics, some of whose arguments must be constants.
  target_compile_options(${target} PRIVATE $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Debug>>:-Og>)
  # Run-time dispatch between x86-64, AVX2 and AVX-512; the levels between them cost build time and serve few machines.
  set(disabled "HWY_SSSE3|HWY_SSE4|HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128")
  if(NOT BRAID_AVX512)  # the sanitizers: a third of the build time for one more width of the same code
    string(APPEND disabled "|HWY_AVX3|HWY_AVX3_DL")
  endif()
  target_compile_definitions(${target} PRIVATE
    "HWY_DISABLED_TARGETS=(${disabled})")
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${name} INSTALL_RPATH $ORIGIN
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  if(BUILD_SHARED_LIBS)
    braid_share(${target})
  endif()
  braid_install(${target} ${export} ${component})
endfunction()

# braid_add_optional(braid_core ZIP LINK .. SOURCES files/npz.cpp WITHOUT without/zip.cpp): the part of a target that needs
# other libraries. Without them, the sources after WITHOUT define the same functions, which throw MissingLibrary
# and may name what is missing by the macro BRAID_LACKS_ZIP.
function(braid_add_optional target feature)
  cmake_parse_arguments(ARG "" "" "LINK;SOURCES;WITHOUT" ${ARGN})
  if(BRAID_HAS_${feature})
    target_sources(${target} PRIVATE ${ARG_SOURCES})
    target_link_libraries(${target} PRIVATE ${ARG_LINK})
    target_compile_definitions(${target} PRIVATE BRAID_HAS_${feature})
  else()
    list(JOIN BRAID_LACKS_${feature} " and " lacking)
    string(REPLACE "pcre2-8" PCRE2 lacking "${lacking}")
    string(REPLACE nlohmann_json nlohmann-json lacking "${lacking}")
    target_sources(${target} PRIVATE ${ARG_WITHOUT})
    target_compile_definitions(${target} PRIVATE "BRAID_LACKS_${feature}=\"${lacking}\"")
  endif()
endfunction()

# braid_compile_quickly(core_tests -O0 HEADERS <gtest/gtest.h> ...): for tests and programs, whose compilation takes longer
# than their run. The linker keeps the program's copy of an inline function that the library also contains, so programs with
# hot loops use -O1. HEADERS are precompiled; HEADERS_OF uses those of another target with the same optimization,
# if that is built.
function(braid_compile_quickly target optimization)
  cmake_parse_arguments(ARG "" "HEADERS_OF" "HEADERS" ${ARGN})
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release,RelWithDebInfo>:${optimization}>)
  # CMake sets -fPIC for libraries and -fPIE for programs, which then cannot share precompiled headers.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  if(ARG_HEADERS)
    braid_precompile(${target} PRIVATE ${ARG_HEADERS})
  elseif(TARGET "${ARG_HEADERS_OF}")
    braid_precompile(${target} REUSE_FROM ${ARG_HEADERS_OF})
  endif()
endfunction()

# braid_compile_together(braid_core 8 ONLY files/): so many sources at a time, for many small ones, or those whose path
# matches, which spend most of their compile time on the same templates.
function(braid_compile_together target sources)
  cmake_parse_arguments(ARG "" "ONLY" "" ${ARGN})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${BRAID_PRECOMPILE} UNITY_BUILD_BATCH_SIZE ${sources})
  if(ARG_ONLY)
    get_target_property(others ${target} SOURCES)
    list(FILTER others EXCLUDE REGEX ${ARG_ONLY})
    set_source_files_properties(${others} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# braid_add_program(train_lm SOURCES train_lm.cpp ... LINK CLI11::CLI11 ...): a program in <build>/bin.
function(braid_add_program program)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${program} ${ARG_SOURCES})
  braid_options(${program})
  target_link_libraries(${program} PRIVATE braid::braid ${ARG_LINK})
endfunction()
