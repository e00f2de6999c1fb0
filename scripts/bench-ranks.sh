#!/bin/sh
# Run benchmarks that need two ranks: the ending of a program's name tells how it is started.
# usage: scripts/bench-ranks.sh PROGRAM...
set -eu
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# As scalemodel-run holds them: a rank is one core, and memory stays with the process.
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 BLIS_NUM_THREADS=1 MKL_NUM_THREADS=1
export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=1099511627776
export GLIBC_TUNABLES=glibc.malloc.hugetlb=1 MALLOC_ARENA_MAX=1
BENCH_SIZE_GIVEN="${BENCH_SIZE:-}"
for program in "$@"; do
    case "$program" in
    *pdgemm*) size=2048 ;;
    *) size=4096 ;;
    esac
    export BENCH_SIZE="${BENCH_SIZE_GIVEN:-$size}"
    case "$program" in
    *-openmpi) mpirun.openmpi --oversubscribe -n 2 "$program" ;;
    *-mpich) mpirun.mpich -n 2 "$program" ;;
    *) "$program" ;;
    esac
done
