set(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../..")

vcpkg_check_features(OUT_FEATURE_OPTIONS options INVERTED_FEATURES
  mpi CMAKE_DISABLE_FIND_PACKAGE_MPI
  onednn CMAKE_DISABLE_FIND_PACKAGE_dnnl)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS ${options}
  -DBRAID_BUILD_TESTS=OFF -DBRAID_BUILD_BENCH=OFF -DBRAID_BUILD_EXAMPLES=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/braid)
vcpkg_fixup_pkgconfig()
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
# A description in CPS has one configuration, but vcpkg installs two.
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/lib/cps" "${CURRENT_PACKAGES_DIR}/debug/lib/cps"
  "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
