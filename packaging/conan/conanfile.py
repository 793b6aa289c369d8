import os

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rmdir

SYSTEM_LIBRARIES = {"fmt": ["fmt"], "highway": ["hwy"], "libzip": ["zip"], "onednn": ["dnnl", "gomp"], "openmpi": ["mpi"],
                    "pcre2": ["pcre2-8"], "utf8proc": ["utf8proc"], "xxhash": ["xxhash"]}


class Braid(ConanFile):
    name = "braid"
    version = "0.2.0"
    description = "Tensors, tape autodiff and hyper-connections"
    license = "MIT"
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "openmpi": [True, False], "onednn": [True, False]}
    default_options = {"shared": False, "openmpi": False, "onednn": True}

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for folder in ("core", "autograd", "nn", "mhc", "dist", "include", "cmake", "tools"):
            copy(self, "*", os.path.join(root, folder), os.path.join(self.export_sources_folder, folder))
        for file in ("CMakeLists.txt", "LICENSE"):
            copy(self, file, root, self.export_sources_folder)

    def requirements(self):
        self.requires("fmt/[>=9]", transitive_headers=True)
        for name in ("dlpack/[>=0.6]", "highway/[>=1.0]", "libzip/[>=1.7]", "nlohmann_json/[>=3.11]", "pcre2/[>=10.42]",
                     "utf8proc/[>=2.8]", "xxhash/[>=0.8]"):
            self.requires(name)
        if self.options.onednn:
            self.requires("onednn/[>=2.6]")
        if self.options.openmpi:
            self.requires("openmpi/[>=4.1]")

    def validate(self):
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for what in ("TESTS", "BENCH", "EXAMPLES"):
            toolchain.cache_variables[f"BRAID_BUILD_{what}"] = False
        toolchain.cache_variables["CMAKE_DISABLE_FIND_PACKAGE_MPI"] = not self.options.openmpi
        toolchain.cache_variables["CMAKE_DISABLE_FIND_PACKAGE_dnnl"] = not self.options.onednn
        toolchain.generate()
        deps = CMakeDeps(self)
        for package, file, target in (("highway", "hwy", "hwy::hwy"), ("onednn", "dnnl", "DNNL::dnnl")):
            deps.set_property(package, "cmake_file_name", file)
            deps.set_property(package, "cmake_target_name", target)
        deps.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        for folder in ("cmake", "cps", "pkgconfig"):  # Conan writes its own
            rmdir(self, os.path.join(self.package_folder, "lib", folder))

    def package_info(self):
        modules = {"core": [], "autograd": ["core"], "nn": ["autograd"], "mhc": ["nn"], "dist": ["nn"]}
        if self.options.openmpi:
            modules["mpi"] = ["dist"]
        for name, requires in modules.items():
            self.cpp_info.components[name].libs = [f"braid_{name}"]
            self.cpp_info.components[name].requires = requires
        self.cpp_info.components["braid"].requires = ["mhc", "dist"]
        # Each dependency is named once, at the module that all others depend on; those from platform_requires have no packages.
        packages = {dependency.ref.name for dependency in self.dependencies.direct_host.values()}
        core = self.cpp_info.components["core"]
        core.requires = [f"{name}::{name}" for name in packages]
        for name, libraries in SYSTEM_LIBRARIES.items():
            if name not in packages and (name == "fmt" or not self.options.shared) and self.options.get_safe(name, True):
                core.system_libs += libraries
