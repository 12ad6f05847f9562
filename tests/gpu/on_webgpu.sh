#!/bin/sh
# usage: on_webgpu.sh LIBRARY DRIVER PROGRAM [argument...]
# Runs PROGRAM with --backend webgpu on a library of deps/webgpu (dawn, wgpu) and a driver that
# computes on the CPU (swiftshader, lavapipe), which tools/fetch_webgpu --drivers and tools/setup
# test fetch; skips where one is missing. op_cases: the recorded cases of every operation that Wick
# has, where only those with a type that WebGPU lacks may fall back to the CPU.
library=$1 driver=$2 program=$3
shift 3
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
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/tmp}" # else the loader of Vulkan says that it is missing
if [ "${program##*/}" = op_cases ]; then
    if [ ! -d "$WICK_SHARED_DATA/ops" ]; then
        echo "skipped: WICK_SHARED_DATA names no folder with the recorded cases (ops/)"
        exit 77
    fi
    set -- "$WICK_SHARED_DATA/ops" --present --strict --may-fall-back i64,f64 "$@"
fi
exec "$program" "$@" --backend webgpu --webgpu-lib "$library"
