# Installs braid into a fresh prefix, then configures, builds and runs a project that knows nothing but that prefix.

set(work ${BUILD_DIR}/consumer)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${work}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${work}/build -G Ninja
    -D CMAKE_PREFIX_PATH=${work}/prefix -D CMAKE_CXX_COMPILER=${CXX_COMPILER} -D CMAKE_CXX_FLAGS=${CXX_FLAGS}
    -D BRAID_VERSION=${VERSION})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer)
