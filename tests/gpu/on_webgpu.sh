#!/bin/sh
# usage: on_webgpu.sh LIBRARY DRIVER PROGRAM [argument...]
# Runs PROGRAM with --backend webgpu on a library of deps/webgpu (dawn, wgpu) and a driver that
# computes on the CPU (swiftshader, lavapipe), which tools/fetch_webgpu --drivers and tools/setup
# test fetch; skips where one is missing. op_cases: the recorded cases of every operation that Wick
# has, where only those with a type that WebGPU lacks may fall back to the CPU; where WICK_TEST_ALL
# is not 1 the first of each operation and every 24th, for the drivers compile for seconds.
# kernel_check: WICK_GPU_CASES random operations for each kernel, 1 if not set. random_programs:
# WICK_RANDOM_PROGRAMS of them, 3 if not set.
library=$1 driver=$2 program=$3
shift 3
# lavapipe compiles four lanes in two thirds of the time that its own eight take. `make test-all`
# has those, too, for every kernel with wgpu.
case $library:$program in
wgpu:*op_cases | wgpu:*kernel_check | wgpu:*random_programs) ;;
*) export LP_NATIVE_VECTOR_WIDTH="${LP_NATIVE_VECTOR_WIDTH:-128}" ;;
esac
case $library in
dawn) library=deps/webgpu/libwebgpu_dawn.so ;;
wgpu) library=deps/webgpu/libwgpu_native.so ;;
esac
case $driver in
swiftshader) VK_DRIVER_FILES=/usr/lib/chromium/vk_swiftshader_icd.json ;;
lavapipe) VK_DRIVER_FILES=$PWD/deps/lavapipe/lvp_icd.json ;;
esac
for file in "$library" "$VK_DRIVER_FILES"; do
    if [ ! -e "$file" ]; then
        echo "skipped: WebGPU needs $file, which is not there"
        exit 77
    fi
done
export VK_DRIVER_FILES
# lavapipe compiles in two thirds of the time without optimising.
export GALLIVM_PERF="${GALLIVM_PERF:-nopt}"
# Without it the loader of Vulkan complains.
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/tmp}"
case $program in
*op_cases)
    if [ ! -d "$WICK_SHARED_DATA/ops" ]; then
        echo "skipped: WICK_SHARED_DATA names no folder with the recorded cases (ops/)"
        exit 77
    fi
    cases=$(cd "$WICK_SHARED_DATA/ops" && pwd)
    if [ "${WICK_TEST_ALL:-0}" != 1 ]; then
        some=$(mktemp -d)
        awk -F'"op": ' '{ split($2, op, ",") } !seen[op[1]]++ || NR % 24 == 1' \
            "$cases/cases.jsonl" >"$some/cases.jsonl"
        ln -s "$cases/data.safetensors" "$some"
        cases=$some
    fi
    # Without the lines of operations that are right.
    report=$("$program" "$cases" --grad --strict --may-fall-back i64,f64 "$@" \
        --backend webgpu --webgpu-lib "$library" 2>&1)
    status=$?
    [ -z "${some:-}" ] || rm -r "$some"
    echo "$report" | grep -av "passed    0 failed    0 absent"
    exit $status
    ;;
*random_programs) set -- --programs "${WICK_RANDOM_PROGRAMS:-3}" "$@" ;;
*kernel_check) set -- --cases "${WICK_GPU_CASES:-1}" "$@" ;;
esac
exec "$program" "$@" --backend webgpu --webgpu-lib "$library"
