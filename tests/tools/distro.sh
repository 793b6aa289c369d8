#!/usr/bin/env bash
# Runs ./dev on a bare Debian: distro.sh SUITE FOLDER COMMAND.. keeps the system in FOLDER.
set -euo pipefail
. "$(dirname "$(readlink -f -- "$0")")/bare_debian.sh"
suite=$1 root=$2 checkout=$(dirname "$(readlink -f -- "$0")")/../..
shift 2

step "a bare Debian $suite"
bare_debian "$suite"
mkdir -p "$root/braid"
find "$root/braid" -mindepth 1 -maxdepth 1 ! -name 'build*' -exec rm -rf {} +
git -C "$checkout" ls-files -z --cached --others --exclude-standard |
  tar -C "$checkout" --null --ignore-failed-read -T - -cf - | tar -C "$root/braid" --no-same-owner -xf -
step "./dev $*"
inside ${BRAID_WERROR:+BRAID_WERROR="$BRAID_WERROR"} /braid/dev "$@"
