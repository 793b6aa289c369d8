# Sourced by packages.sh and distro.sh: a bare Debian in the folder $root, in a mount namespace that ends with the script.
# Needs root and debootstrap.
[[ ${BRAID_IN_NAMESPACE:-} ]] || BRAID_IN_NAMESPACE=1 exec unshare --mount "$0" "$@"

step() { printf '==> %s\n' "$*"; }

quietly() {  # quietly COMMAND..: its output only if it fails
  local log
  log=$(mktemp)
  "$@" >"$log" 2>&1 || { cat "$log"; rm "$log"; exit 1; }
  rm "$log"
}

bare_debian() {  # bare_debian SUITE: sets up $root, or takes the one that is there
  if [[ ! -e $root/etc/debian_version || -e $root/debootstrap ]]; then
    rm -rf --one-file-system "$root"
    mkdir -p "$root"
    quietly debootstrap --variant=minbase "$1" "$root"
    echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/50copies"  # some mirrors are copies of a past day
  fi
  mount --bind /proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --bind /sys "$root/sys"  # MPI asks it for the processors
}

inside() {
  chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}
