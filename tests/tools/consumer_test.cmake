# Uses braid as other projects do, in a separate folder. HOW is one of:
#   package       installs into an empty prefix and finds it there, by CMake and by pkg-config; every file that CPS names exists;
#                 headers have no warnings; programs of many kinds, in programs/ and examples/, build and learn
#   subdirectory  adds this source tree to another project, and builds only core and a kernel; configures it with libraries absent
#                 and without a build type
#   tarball       the same as a shared library, with a tree that was packed and unpacked by tar
# ./dev package --check runs the same consumers against all shared libraries.

set(work ${BUILD_DIR}/consumer-${HOW})
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

set(settings -G Ninja -D CMAKE_CXX_COMPILER=${CXX_COMPILER} -D CMAKE_CXX_FLAGS=${CXX_FLAGS})
if(HOW STREQUAL package)
  run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${work}/prefix)
  file(GLOB_RECURSE installed ${work}/prefix/include/*)
  foreach(header ${installed})
    if(IS_SYMLINK ${header})
      message(FATAL_ERROR "${header} is a link")
    endif()
  endforeach()
  if(NOT EXISTS ${work}/prefix/share/braid/record_case.py)
    message(FATAL_ERROR "share/braid/record_case.py is not installed")
  endif()
  file(GLOB_RECURSE descriptions ${work}/prefix/*.cps)
  foreach(description ${descriptions})
    file(READ ${description} json)
    string(JSON components GET "${json}" components)
    string(REGEX MATCHALL "@prefix@[^\"]*" paths "${json}")
    foreach(path ${paths})
      string(REPLACE @prefix@ ${work}/prefix path ${path})
      if(NOT EXISTS ${path})
        message(FATAL_ERROR "${description} names ${path}, which is not installed")
      endif()
    endforeach()
  endforeach()
  list(APPEND settings -D CMAKE_PREFIX_PATH=${work}/prefix -D BRAID_VERSION=${VERSION} -D WITH_MPI=${WITH_MPI}
       -D WITH_PROGRAMS=ON)
elseif(HOW STREQUAL tarball)
  file(GLOB tree RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/*)
  list(FILTER tree EXCLUDE REGEX "^(build.*|bench-results|runs|out)$")
  run(${CMAKE_COMMAND} -E chdir ${SOURCE_DIR} ${CMAKE_COMMAND} -E tar czf ${work}/braid.tar.gz ${tree})
  file(MAKE_DIRECTORY ${work}/braid)
  run(${CMAKE_COMMAND} -E chdir ${work}/braid ${CMAKE_COMMAND} -E tar xzf ${work}/braid.tar.gz)
  list(APPEND settings -D BRAID_SOURCE_DIR=${work}/braid -D BUILD_SHARED_LIBS=ON -D CMAKE_BUILD_TYPE=Debug)
else()
  list(APPEND settings -D BRAID_SOURCE_DIR=${SOURCE_DIR} -D CMAKE_BUILD_TYPE=Debug)
endif()

run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/consumer -B ${work}/build ${settings})
run(${CMAKE_COMMAND} --build ${work}/build --target consumer)
run(${work}/build/consumer)
if(HOW STREQUAL package)  # programs, pkg-config, and the program that the manual begins with
  run(${CMAKE_COMMAND} --build ${work}/build --target programs)
  file(GLOB_RECURSE pc ${work}/prefix/braid.pc)
  cmake_path(GET pc PARENT_PATH folder)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder} pkg-config --cflags --libs "braid = ${VERSION}"
    OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
  # Links all of braid's code, independent of the program's calls, so that a missing library is an error.
  separate_arguments(flags UNIX_COMMAND "${CXX_FLAGS} -Wl,--whole-archive ${flags} -Wl,--no-whole-archive")
  run(${CXX_COMPILER} -std=c++20 ${SOURCE_DIR}/tests/consumer/core.cpp -o ${work}/by_pkg_config ${flags})
  run(${work}/by_pkg_config)
  # Without libraries that braid needs, the error names them and their packages.
  file(GLOB_RECURSE config ${work}/prefix/braidConfig.cmake)
  file(STRINGS ${config} needed REGEX "^foreach\\(library ")
  file(WRITE ${work}/lacking/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)\nproject(lacking LANGUAGES CXX)\n"
    "find_package(braid REQUIRED)\n")
  set(libraries fmt hwy OpenCL dnnl zip)
  set(packages libfmt-dev libhwy-dev ocl-icd-opencl-dev libdnnl-dev libzip-dev)
  function(expect_needs text)  # without the libraries that follow
    list(TRANSFORM ARGN REPLACE "(.+)" "-DCMAKE_DISABLE_FIND_PACKAGE_\\1=ON" OUTPUT_VARIABLE disabled)
    execute_process(COMMAND ${CMAKE_COMMAND} -S ${work}/lacking -B ${work}/lacking/build -U CMAKE_DISABLE_FIND_PACKAGE_*
      ${disabled} ${settings} OUTPUT_QUIET ERROR_VARIABLE error RESULT_VARIABLE code)
    string(REGEX REPLACE "[ \n]+" " " error "${error}")  # CMake breaks lines
    string(FIND "${error}" "braid needs ${text}" at)
    if(code EQUAL 0 OR at EQUAL -1)
      message(FATAL_ERROR "find_package does not say 'braid needs ${text}': exit code ${code}: ${error}")
    endif()
  endfunction()
  foreach(library package IN ZIP_LISTS libraries packages)
    if(needed MATCHES "[ ;]${library}[ );]")
      expect_needs("${library} (Debian: ${package})" ${library})
    endif()
  endforeach()
  if(needed MATCHES OpenCL)
    expect_needs("OpenCL (Debian: ocl-icd-opencl-dev), dnnl (Debian: libdnnl-dev)" OpenCL dnnl)
  endif()
  if(WITH_MPI)  # by pkg-config; by CMake without the component, the error says what to write
    execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder} pkg-config --cflags --libs "braid-mpi = ${VERSION}"
      OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(flags UNIX_COMMAND "${CXX_FLAGS} ${flags}")
    run(${CXX_COMPILER} -std=c++20 ${SOURCE_DIR}/tests/consumer/ranks.cpp -o ${work}/ranks_by_pkg_config ${flags})
    file(WRITE ${work}/without/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)\nproject(without LANGUAGES CXX)\n"
      "find_package(braid REQUIRED)\nadd_executable(ranks ${SOURCE_DIR}/tests/consumer/ranks.cpp)\n"
      "target_link_libraries(ranks PRIVATE braid::mpi)\n")
    execute_process(COMMAND ${CMAKE_COMMAND} -S ${work}/without -B ${work}/without/build ${settings}
      OUTPUT_QUIET ERROR_VARIABLE error RESULT_VARIABLE code)
    if(code EQUAL 0 OR NOT error MATCHES "braid::mpi by find_package\\(braid COMPONENTS mpi\\)")
      message(FATAL_ERROR "braid::mpi without its component: exit code ${code}: ${error}")
    endif()
    file(WRITE ${work}/no_mpi/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)\nproject(no_mpi LANGUAGES CXX)\n"
      "find_package(braid REQUIRED COMPONENTS mpi)\n")
    execute_process(COMMAND ${CMAKE_COMMAND} -S ${work}/no_mpi -B ${work}/no_mpi/build ${settings} -D MPI_CXX_COMPILER=/bin/true
      OUTPUT_QUIET ERROR_VARIABLE error RESULT_VARIABLE code)
    if(code EQUAL 0 OR NOT error MATCHES "the components are core")
      message(FATAL_ERROR "the component mpi where MPI does not work: exit code ${code}: ${error}")
    endif()
  endif()
  # No header warns under more warnings than braid's own build has. -I, since compilers are silent about system headers.
  find_program(clang clang++-16)
  set(compilers ${CXX_COMPILER} ${clang})
  list(REMOVE_DUPLICATES compilers)
  list(FILTER compilers EXCLUDE REGEX NOTFOUND)
  foreach(compiler ${compilers})
    run(${compiler} -std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Wpedantic -Wshadow -Werror
        -I ${work}/prefix/include ${SOURCE_DIR}/tests/consumer/templates.cpp)
  endforeach()
  run(${CMAKE_COMMAND} --no-warn-unused-cli -S ${SOURCE_DIR}/examples/first_program -B ${work}/first ${settings})
  run(${CMAKE_COMMAND} --build ${work}/first)
  run(${CMAKE_COMMAND} -E chdir ${work} ${work}/first/first_program)
elseif(HOW STREQUAL tarball)
  execute_process(COMMAND readelf --dynamic ${work}/build/consumer OUTPUT_VARIABLE needed COMMAND_ERROR_IS_FATAL ANY)
  if(NOT needed MATCHES "libbraid_core\\.so\\.[0-9]+\\.[0-9]+\\]")
    message(FATAL_ERROR "no soname of two numbers: ${needed}")
  endif()
elseif(HOW STREQUAL subdirectory)  # and a kernel; what CMake says of absent libraries; Release without a build type
  file(WRITE ${work}/dnnl_config.h "#define DNNL_GPU_RUNTIME DNNL_RUNTIME_OCL\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${work}/without ${settings} -D BRAID_dnnl_CONFIG=${work}/dnnl_config.h
    -D CMAKE_DISABLE_FIND_PACKAGE_OpenCL=ON -D CMAKE_DISABLE_FIND_PACKAGE_zip=ON -D CMAKE_DISABLE_FIND_PACKAGE_CLI11=ON
    OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${work}/without_both ${settings}
    -D CMAKE_DISABLE_FIND_PACKAGE_fmt=ON -D CMAKE_DISABLE_FIND_PACKAGE_hwy=ON OUTPUT_QUIET ERROR_VARIABLE error)
  string(REGEX REPLACE "[ \n]+" " " error "${error}")  # CMake breaks lines
  string(APPEND said ${error})
  foreach(sentence "without oneDNN, which needs OpenCL (Debian: ocl-icd-opencl-dev) here: its own"
      "without zip (Debian: libzip-dev): no npz archives, no applications, examples and benchmarks\n"
      "without CLI11 (Debian: libcli11-dev): no applications" "needs fmt (Debian: libfmt-dev), hwy (Debian: libhwy-dev)")
    string(FIND "${said}" "braid ${sentence}" at)
    if(at EQUAL -1)
      message(FATAL_ERROR "CMake does not say 'braid ${sentence}' but: ${said}")
    endif()
  endforeach()
  run(${CMAKE_COMMAND} --build ${work}/build
      --target braid/autograd/CMakeFiles/braid_autograd.dir/kernels/elementwise.cpp.o)
  run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/consumer -B ${work}/no_type ${settings} -D CMAKE_BUILD_TYPE=
    -D CMAKE_EXPORT_COMPILE_COMMANDS=ON)
  file(STRINGS ${work}/no_type/compile_commands.json command REGEX "-c [^ ]*/core/tensor\\.cpp\"")
  file(STRINGS ${work}/no_type/compile_commands.json own REGEX "-c [^ ]*/consumer/core\\.cpp\"")
  if(NOT command MATCHES " -O3 " OR own MATCHES " -O3 ")
    message(FATAL_ERROR "without a build type, not braid alone is optimized: ${command} ${own}")
  endif()
endif()
