#!/usr/bin/env bash
# Checks the recipes in packaging/ and the workflows with the tools that are installed, and names those that are not. Conan builds
# the library, with little optimization, from the packages of Debian 12.
set -euo pipefail
cd "$(dirname "$(readlink -f -- "$0")")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check() {  # check WHAT TOOL: whether the tool for it is there, a program or a module of Python
  if command -v "$2" >/dev/null || python3 -c "import $2"; then step "$1"; else step "$1: skipped, without $2" && return 1; fi
} 2>/dev/null

step() { printf '==> %s\n' "$*"; }

if check vcpkg cmake; then
  cat >"$work/port.cmake" <<'END'
foreach(name check_features cmake_configure cmake_install cmake_config_fixup fixup_pkgconfig install_copyright)
  function(vcpkg_${name})
    message(STATUS "${CMAKE_CURRENT_FUNCTION} ${ARGN}")
  endfunction()
endforeach()
include(packaging/vcpkg/portfile.cmake)
if(NOT EXISTS ${SOURCE_PATH}/CMakeLists.txt)
  message(FATAL_ERROR "no sources in ${SOURCE_PATH}")
endif()
END
  cmake -D "CURRENT_PACKAGES_DIR=$work" -P "$work/port.cmake"
fi

if check nix nix-instantiate; then
  for file in packaging/nix/*.nix; do NIX_CONFIG="build-users-group =" nix-instantiate --parse "$file" >/dev/null; done
fi

if check workflows actionlint; then actionlint .github/workflows/*.yml; fi

if check conda rattler_build; then
  python3 - <<'END'
import rattler_build as conda
recipe = conda.Stage0Recipe.from_file("packaging/conda/recipe.yaml")
for variant in recipe.render(conda.VariantConfig({"c_stdlib": ["sysroot"]}), conda.RenderConfig()):
    print(variant.recipe, *variant.recipe.to_dict()["requirements"]["host"])
END
fi

if check conan conan; then
  CONAN_HOME=$work/conan conan create packaging/conan --no-remote -pr:a packaging/conan/debian.profile -o "&:shared=True" \
    -o "&:openmpi=True" -c 'tools.cmake.cmaketoolchain:extra_variables={"CMAKE_CXX_FLAGS_RELEASE": "-Og", "BRAID_AVX512": "OFF"}' \
    -c "tools.cmake.cmake_layout:test_folder=$work"
fi
