# shellcheck shell=bash
# Sourced by tests/gpu/run: what there is on this machine, and how CMake is told of it.
# shellcheck disable=SC2154  # wrapper and bundle are that one's

nvidia_smi() {
  local smi
  smi=$(command -v nvidia-smi || ls /usr/local/nvidia/bin/nvidia-smi 2>/dev/null) && timeout 20 "$smi" "$@" 2>/dev/null
}

count_gpus() {
  local devices
  if ((${#wrapper[@]})); then
    echo "${wrapper[1]}"
  elif [[ ${CUDA_VISIBLE_DEVICES-0} == '' || ${CUDA_VISIBLE_DEVICES-0} == -* ]]; then
    echo 0
  elif [[ $(nvidia_smi -L) == *'GPU '* ]]; then
    nvidia_smi -L | awk -F, -v visible="${CUDA_VISIBLE_DEVICES-}" \
      '/^GPU /{n++} END {m = split(visible, list, ","); print m > 0 && m < n ? m : n}'
  else
    devices=(/dev/nvidia[0-9]*)
    [[ -e ${devices[0]} ]] && echo "${#devices[@]}" || echo 0
  fi
}

driver() {
  local version
  version=$(nvidia_smi --query-gpu=driver_version --format=csv,noheader | head -1)
  echo "${version:+driver }${version:-nvidia-smi finds no driver}"
}

# The one that is here, as CMake spells it.
architecture() {
  local capability
  capability=$(nvidia_smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d '. ')
  if ((${#wrapper[@]})); then
    echo 90-real
  elif [[ $capability =~ ^[0-9]+$ ]]; then
    echo "$capability-real"
  else
    echo native
  fi
}

cmake_options=()

# Open MPI and PMIx find their parts by these two variables, the rest is found by the paths.
use_bundle() {
  local folder=$1 lib=$1/usr/lib/x86_64-linux-gnu
  [[ -e $folder/is-bundle ]] || return 0
  export PATH=$folder/usr/bin:$PATH OPAL_PREFIX=$folder/usr PMIX_MCA_mca_base_component_path=$lib/pmix2/lib/pmix
  export LD_LIBRARY_PATH=$lib:$lib/openmpi/lib:$lib/openblas-serial${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  PATH=$PATH:$folder/cmake/bin  # after the machine's own
  cmake_options+=("-DCMAKE_PREFIX_PATH=$folder/usr" "-DMPI_CXX_COMPILER=$folder/usr/bin/mpicxx"
    "-DMPIEXEC_EXECUTABLE=$folder/usr/bin/mpiexec")
  if [[ -e $lib/openblas-serial/libopenblas.so ]]; then
    cmake_options+=("-DLINEAR_DDP_BLAS_LIBRARY=$lib/openblas-serial/libopenblas.so"
      "-DLINEAR_DDP_BLAS_INCLUDE_DIR=$folder/usr/include/x86_64-linux-gnu/openblas-serial")
  fi
}

find_cuda() {
  local folder
  if ! command -v nvcc >/dev/null; then
    for folder in /usr/local/cuda /usr/local/cuda-13* /usr/local/cuda-*; do
      [[ -x $folder/bin/nvcc ]] && export PATH=$PATH:$folder/bin && break
    done
  fi
  command -v nvcc >/dev/null || return 1
  # nvcc may be a script or a link elsewhere, so it is asked.
  cuda=$(realpath -m "$(nvcc --dryrun none.cu 2>&1 | sed -n 's/^#\$ TOP=//p')")
}

# The first file of this name in python's nvidia packages.
python_nvidia() {
  python3 - "$1" <<'P'
import glob, sys
try:
    import nvidia
except ImportError:
    sys.exit(1)
for folder in nvidia.__path__:
    for hit in sorted(glob.glob(f"{folder}/**/{sys.argv[1]}", recursive=True)):
        print(hit)
        sys.exit()
sys.exit(1)
P
}

# Sets nccl_header and cublas_header; the toolkit's and the system's are found by CMake alone.
find_nccl_and_cublas() {
  local library folders=("$cuda"/{include,targets/x86_64-linux/include} /usr/include{,/x86_64-linux-gnu})
  nccl_header=$(first_of nccl.h ${NCCL_ROOT:+"$NCCL_ROOT/include"} "${folders[@]}")
  if [[ -z $nccl_header ]] && nccl_header=$(python_nvidia nccl.h) && library=$(python_nvidia 'libnccl.so.2'); then
    cmake_options+=("-DNCCL_INCLUDE_DIR=$(dirname "$nccl_header")" "-DNCCL_LIBRARY=$library")
  fi
  cublas_header=$(first_of cublas_api.h "${folders[@]}")
  if [[ -z $cublas_header ]] && cublas_header=$(python_nvidia cublas_api.h) &&
    library=$(python_nvidia 'libcublasLt.so.1[0-9]'); then
    CPATH=$(dirname "$cublas_header")${CPATH:+:$CPATH}
    export CPATH
    cmake_options+=("-DCUDA_cublasLt_LIBRARY=$library")
  fi
}

first_of() {
  local name=$1 folder
  shift
  for folder in "$@"; do
    [[ ! -e $folder/$name ]] || { echo "$folder/$name" && return; }
  done
}

# "2.28.9" of three #defines in a header.
version_in() {
  [[ -n $1 ]] || { echo none && return; }
  sed -nE "s/^#define $2_(MAJOR|MINOR|PATCH) +([0-9]+).*/\\2/p" "$1" | paste -sd .
}

facts() {
  local gpu
  gpu=$(nvidia_smi --query-gpu=name,memory.total --format=csv,noheader | sort | uniq -c | sed 's/^ *//' | paste -sd ';')
  ((${#wrapper[@]} == 0)) || gpu="stand-in (${wrapper[*]})"
  cat <<F
GPU       ${gpu:-unknown: nvidia-smi does not answer}
driver    $(driver)
CUDA      $(nvcc --version | sed -n 's/.*release \([0-9.]*\).*/\1/p') ($cuda)
NCCL      $(version_in "$nccl_header" NCCL) (${nccl_header:-nccl.h not found})
cuBLAS    $(version_in "$cublas_header" CUBLAS_VER) (${cublas_header:-cublas_api.h not found})
compiler  $(${CXX:-c++} --version 2>/dev/null | head -1)
cmake     $(cmake --version 2>/dev/null | head -1)
mpi       $(mpiexec --version 2>/dev/null | head -1)
python    $(python3 --version 2>&1)
cores     $(nproc)
system    $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), kernel $(uname -r)
commit    $(git rev-parse --short HEAD 2>/dev/null || cat "$bundle/commit" 2>/dev/null || echo unknown)
F
}
