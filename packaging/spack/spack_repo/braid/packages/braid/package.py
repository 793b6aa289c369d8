from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Braid(CMakePackage):
    """Tensors, tape autodiff and hyper-connections."""

    license("MIT")

    version("0.2.0")

    variant("shared", default=True, description="Build shared libraries")
    variant("mpi", default=False, description="Training over the ranks of MPI")
    variant("onednn", default=True, description="Products of matrices by oneDNN")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("dlpack", type="build")
    depends_on("nlohmann-json", type="build")
    depends_on("fmt")
    depends_on("highway")
    depends_on("libzip")
    depends_on("pcre2")
    depends_on("utf8proc")
    depends_on("xxhash")
    depends_on("mpi", when="+mpi")
    depends_on("onednn", when="+onednn")

    def cmake_args(self):
        return [
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define("BRAID_BUILD_TESTS", False),
            self.define("BRAID_BUILD_BENCH", False),
            self.define("BRAID_BUILD_EXAMPLES", False),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_MPI", self.spec.satisfies("~mpi")),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_dnnl", self.spec.satisfies("~onednn")),
        ]
