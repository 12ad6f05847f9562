#!/bin/sh
# The recorded cases of every operation, with gradients, on each instruction set, and by the null
# backend: answers late and out of order, fused operations taken apart, everything a fallback; and
# those of tests/data/ops.
if [ ! -d "$WICK_SHARED_DATA/ops" ]; then
    echo "skipped: WICK_SHARED_DATA names no folder with the recorded cases (ops/)"
    exit 77
fi
op_cases=$(dirname "$WICK_BIN")/op_cases
failed=0

check() {
    echo "== $*"
    # The table of a run that passed says nothing but its last line.
    for folder in "$WICK_SHARED_DATA/ops" tests/data/ops; do
        if report=$($WICK_EMULATOR "$op_cases" "$folder" --grad "$@" 2>&1); then
            echo "$report" | tail -n 1
        elif echo "$report" | grep -q 'has no .* instructions'; then
            echo "# note: not run: $report"
        else
            echo "$report"
            failed=1
        fi
    done
}

for isa in $WICK_ISAS; do
    check --isa $isa --strict
done
check --threads 1
check --threads 3
for words in late,out-of-order no-fused no-kernels; do
    check --backend null --null $words
done
exit $failed
