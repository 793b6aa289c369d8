#!/usr/bin/env bash
# Installs braid's packages on a bare Debian 12 and uses them there: packages.sh PACKAGE.. needs root, debootstrap and lintian.
set -euo pipefail
. "$(dirname "$(readlink -f -- "$0")")/bare_debian.sh"
version=$(dpkg-deb --field "$1" Version)
consumer=$(dirname "$(readlink -f -- "$0")")/../consumer
root=$(mktemp -d)
trap 'umount -R "$root/proc" "$root/dev" "$root/sys" 2>/dev/null || true; rm -rf --one-file-system "$root"' EXIT

add() { quietly inside apt-get install -y --no-install-recommends "$@"; }

step "lintian"
lintian --allow-root --fail-on error "$@"

step "a bare Debian 12"
bare_debian bookworm
mkdir "$root/braid"
cp -r "$@" "$consumer" "$root/braid"
packages=("$root"/braid/*.deb)
packages=("${packages[@]#"$root"}")
quietly inside apt-get update
add cmake make g++ pkg-config

step "a consumer by CMake, and one by pkg-config"
add $(printf '%s\n' "${packages[@]}" | grep -v mpi)
inside cmake -S /braid/consumer -B /braid/by-cmake -D "BRAID_VERSION=${version%-*}" >/dev/null
inside cmake --build /braid/by-cmake --target consumer
inside /braid/by-cmake/consumer
inside sh -c 'g++ -std=c++20 /braid/consumer/main.cpp -o /braid/by-pkg-config $(pkg-config --cflags --libs braid)'
inside /braid/by-pkg-config

step "two ranks over MPI"
add "${packages[@]}" openmpi-bin
inside cmake -S /braid/consumer -B /braid/by-cmake -D WITH_MPI=ON >/dev/null
inside cmake --build /braid/by-cmake --target ranks
inside mpirun --allow-run-as-root --oversubscribe -n 2 /braid/by-cmake/ranks

step "the programs where nothing but the libraries is left"
quietly inside apt-get purge --autoremove -y libbraid-dev cmake make g++ pkg-config
inside /braid/by-pkg-config
inside /braid/by-cmake/consumer
step "purged without a trace"
quietly inside apt-get purge -y "libbraid*"
leftovers=$(find "$root/usr" "$root/etc" "$root/var/lib/dpkg/info" -name '*braid*')
[[ ! $leftovers ]] || { echo "left behind: $leftovers"; exit 1; }
echo "the packages install, build and run on a bare Debian 12"
