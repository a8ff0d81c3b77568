# shellcheck shell=bash
# Sourced by app/quickstart and tests/run: what both need, how they get it, and how they build.

packages=(
  g++                     # compiler
  cmake                   # configuring
  ninja-build             # building
  ccache                  # rebuilding
  libopenmpi-dev          # MPI
  openmpi-bin             # mpirun
  libeigen3-dev           # matrices
  libopenblas-serial-dev  # speed
  libcli11-dev            # options
  libfmt-dev              # messages
  nlohmann-json3-dev      # metrics
  libfast-float-dev       # parsing
  zlib1g-dev              # .npz
  libhdf5-dev             # .h5
  libgtest-dev            # tests
  libgmock-dev            # matchers
)

say() { printf '== %s\n' "$*"; }

die() {
  printf '%s: %s\n' "$0" "$*" >&2
  exit 1
}

# Prints the command as it could be typed, then runs it.
run() {
  printf '$'
  printf ' %q' "$@"
  printf '\n'
  "$@"
}

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed* ]] || printf '%s\n' "$package"
  done
}

install_packages() {
  local apt missing
  if ! command -v apt-get >/dev/null; then
    say "no apt-get on this machine; this is needed, by its Debian names: ${packages[*]}"
    return
  fi
  mapfile -t missing < <(missing_packages)
  ((${#missing[@]})) || return 0
  say "installing ${missing[*]}"
  # A machine that has just booted may be busy with its own upgrades: wait for the lock.
  apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "needs root or sudo to install: ${missing[*]}"
    apt=(sudo "${apt[@]}")
  fi
  # Fails too when some other package source of the machine is out of order: then only the installation can tell.
  run "${apt[@]}" update </dev/null || say "apt-get update failed, going on with the lists as they are"
  run "${apt[@]}" install --no-install-recommends "${missing[@]}" </dev/null
}

# Looks where lib/cmake/DeviceToolchain.cmake does.
find_cuda() {
  command -v nvcc >/dev/null || [[ -x /usr/local/cuda/bin/nvcc ]]
}

# Lets ccache know a source again in another clone, wherever that lies.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=true

# configure PRESET [-DNAME=VALUE...]. One place for the launcher: a build tree that changes it compiles everything again.
configure() {
  local launcher=()
  if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
  fi
  run cmake --preset "$1" "${launcher[@]}" "${@:2}"
}
