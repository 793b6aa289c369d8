#!/usr/bin/env bash
# Compiles, without output, all sources but those of core/platform, apps/platform and dist/mpi for other systems: for Windows by
# MinGW's GCC, and by Clang with the integer types of macOS, where std::int64_t is a long long but std::ptrdiff_t a long. Of the
# kernels it compiles the plain form. Takes minutes, so that it is run by hand and by no test.
# Needs Debian's g++-mingw-w64-x86-64-posix and clang-16.
#   tests/tools/portability.sh [FOLDER ..]
set -euo pipefail
cd "$(dirname "$0")/../.."
(($# > 0)) || set -- core autograd nn mhc dist apps

headers=$(mktemp -d)
trap 'rm -rf "$headers"' EXIT
# Headers of libraries without a compiled part for the system; the rest of /usr/include is Linux's.
for name in CLI dlpack fmt hwy nlohmann oneapi pcre2.h toml++ utf8proc.h xxhash.h zip.h zipconf.h; do
  ln -s "/usr/include/$name" "$headers/$name"
done
mkdir -p "$headers/macos/bits"
sed -E '/ __u?int64_t;/s/long int/long long int/' "/usr/include/$(gcc -print-multiarch)/bits/types.h" \
  >"$headers/macos/bits/types.h"

flags=(-std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Wno-sign-conversion -Werror -DHWY_COMPILE_ONLY_STATIC -Iinclude
  '-DBRAID_VERSION=""' '-DBRAID_BUILD_TYPE=""')
compile() {  # compile COMPILER [options]: every source, as many at a time as there are cores
  find "${folders[@]}" -name '*.cpp' -not -path '*/platform/*' -not -path 'dist/mpi/*' -print0 |
    xargs -0 -P "$(nproc)" -n 1 "$@" "${flags[@]}" -isystem "$headers"
}

folders=("$@")
echo "==> Windows"
compile x86_64-w64-mingw32-g++-posix
echo "==> the integers of macOS"
compile clang++-16 -isystem "$headers/macos"
