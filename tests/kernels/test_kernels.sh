#!/bin/sh
# Every kernel that this processor can run against the reference on random ops (TAP). The seeds are
# fixed, so that a failure repeats; WICK_KERNEL_CASES says how many ops, `make test-all` takes 40.
kernel_check=$(dirname "$WICK_BIN")/kernel_check
exec $WICK_EMULATOR "$kernel_check" --seed=2026 --cases="${WICK_KERNEL_CASES:-8}"
