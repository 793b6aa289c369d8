{ lib, stdenv, cmake, ninja, dlpack, fmt, libhwy, libzip, mpi, nlohmann_json, onednn, pcre2, utf8proc, xxhash
, withMpi ? false, withOnednn ? true }:

stdenv.mkDerivation {
  pname = "braid";
  version = "0.2.0";
  src = lib.cleanSource ../..;

  nativeBuildInputs = [ cmake ninja ];
  buildInputs = [ dlpack libhwy libzip nlohmann_json pcre2 utf8proc xxhash ]
    ++ lib.optional withMpi mpi
    ++ lib.optional withOnednn onednn;
  propagatedBuildInputs = [ fmt ]; # included by its headers

  cmakeFlags = [
    # Relative, as the CMake package and the pkg-config file expect them.
    "-DCMAKE_INSTALL_LIBDIR=lib"
    "-DCMAKE_INSTALL_INCLUDEDIR=include"
    (lib.cmakeBool "BUILD_SHARED_LIBS" true)
    (lib.cmakeBool "BRAID_BUILD_TESTS" false)
    (lib.cmakeBool "BRAID_BUILD_BENCH" false)
    (lib.cmakeBool "BRAID_BUILD_EXAMPLES" false)
    (lib.cmakeBool "CMAKE_DISABLE_FIND_PACKAGE_MPI" (!withMpi))
    (lib.cmakeBool "CMAKE_DISABLE_FIND_PACKAGE_dnnl" (!withOnednn))
  ];

  meta = {
    description = "Tensors, tape autodiff and hyper-connections";
    license = lib.licenses.mit;
    platforms = lib.platforms.linux;
  };
}
