#!/usr/bin/env bash
# Builds and tests what remains without each optional library, and without all of them: without.sh [LIBRARY..]
set -euo pipefail
cd "$(dirname "$(readlink -f -- "$0")")/../.."

all=(dnnl MPI zip pcre2-8 utf8proc nlohmann_json xxhash dlpack)
(($# > 0)) || set -- "${all[@]}" "${all[*]}"
for libraries in "$@"; do
  printf '==> without %s\n' "$libraries"
  disabled=()
  for library in $libraries; do disabled+=(-D "CMAKE_DISABLE_FIND_PACKAGE_$library=ON"); done
  folder="build-without/${libraries// /+}"
  # Quickly, and without precompiled headers, so that a compiler cache serves all but the first.
  cmake -S . -B "$folder" -G Ninja -D CMAKE_BUILD_TYPE=Release -D CMAKE_CXX_FLAGS_RELEASE=-O1 -D BRAID_AVX512=OFF \
    -D BRAID_PRECOMPILE=OFF -D BRAID_WERROR=ON -D CMAKE_CXX_COMPILER_LAUNCHER="$(command -v ccache || true)" "${disabled[@]}" >/dev/null
  cmake --build "$folder"
  others='^(apps|tools|autograd|mhc)/'  # ops and connections know no library but oneDNN
  [[ $libraries != *dnnl* ]] || others='^(apps|tools)/'
  ctest --test-dir "$folder" -j "$(nproc)" -LE slow -E "$others" --output-on-failure --no-tests=error --no-label-summary
done
