#!/bin/sh
# usage: webgpu_store.sh OPTIONS... (TAP; on_webgpu.sh runs it)
# `wick bench --kernels --store` and `wick verify --store`: the file of the device, what is read
# from it again, and what is wrong with it; what else only commands on a GPU print.
wick=${WICK_BIN:?}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
unset WICK_HOME
# Where the driver keeps what it has compiled; the same kernels as in other tests.
export MESA_SHADER_CACHE_DIR="${MESA_SHADER_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}}"
export XDG_CACHE_HOME="$folder/cache"
n=0 failed=0

# check NAME COMMAND...: it succeeds.
check() {
    name=$1
    shift
    n=$((n + 1))
    if "$@" > "$folder/out" 2> "$folder/err"; then
        echo "ok $n - $name"
    else
        failed=1
        echo "not ok $n - $name"
        sed 's/^/# /' "$folder/out" "$folder/err"
    fi
}
fails() { ! "$@"; }
says() { # WORDS COMMAND...: on either stream
    words=$1
    shift
    "$@" > "$folder/said" 2>&1
    grep -q -e "$words" "$folder/said" || { cat "$folder/said"; return 1; }
}

check "times as a table" says "rope_table_wgsl .* GB/s\|rope_table_wgsl" \
    "$wick" bench --kernels --only 'rope_t*' -p 8 "$@"
check "times as CSV" says 'clock","seconds\|clock,seconds' \
    "$wick" bench --kernels --only 'rope_t*' -p 8 --csv "$@"
check "nothing was stored" fails test -e "$XDG_CACHE_HOME/wick"
check "times are stored" "$wick" bench --kernels --only 'gated*' -p 8 --store "$@"
file=$(ls "$XDG_CACHE_HOME"/wick/tuning-*.txt)
check "the file says for what" grep -q "^device .*Dawn$" "$file"
echo "disable kv_append_wgsl" >> "$file"
check "the file is read" says "kv_append_wgsl.*disabled" \
    "$wick" verify 'kv_append_wgsl' --cases 1 "$@"
check "--tuning none leaves it out" fails says "disabled" \
    "$wick" verify 'kv_append_wgsl' --cases 1 --tuning none "$@"
check "verify stores it again" "$wick" verify 'kv_append_wgsl' --cases 1 --store "$@"
check "what is disabled stays so" grep -q "^disable kv_append_wgsl$" "$file"
printf 'garbage\ntune x y z 1\nversion 7\ndisable *\n' > "$file"
check "bad lines are a warning" says "3 unusable lines are ignored" \
    "$wick" verify 'kv_append_wgsl' --cases 1 "$@"
check "a file that is named must be there" fails \
    "$wick" verify 'kv_append_wgsl' --cases 1 --tuning "$folder/none.txt" "$@"
check "a named file is written" "$wick" verify 'kv_append_wgsl' --cases 1 --store \
    --tuning "$folder/named.txt" "$@"
check "and there" grep -q "^version 1$" "$folder/named.txt"
# low_memory spares a GPU nothing, so that no smaller cache would help.
check "advice for a GPU's memory" says "available; a smaller model" \
    "$wick" run "${WICK_TEST_DATA:?}/stories260K.gguf" --gpu-layers all --gpu-memory 400K \
    --cache f32 --low-memory --no-warm-up -p a -n 1 "$@"
# What is measured for a model: heads of keys and their numbers; each kind of matrix once.
model=$WICK_TEST_DATA/stories260K.gguf
check "a model's sizes are taken" says "k_cache f16\\[[0-9]*, 4, [0-9]*, 8\\]" \
    "$wick" bench "$model" --kernels --only 'kv_append*' -p 1 --csv "$@"
measured() {
    "$wick" bench "$model" --kernels --only linear_wgsl -p 1 --csv "$@" > "$folder/said"
    kinds=$(grep -o 'weight f32[^"]*' "$folder/said" | sort -u | tr -d ' \n')
    [ "$kinds" = "$(printf 'weightf32[%s]' 172,64 32,64 512,64 64,172 64,64)" ] || {
        echo "$kinds"
        return 1
    }
}
check "a model's matrices are taken" measured "$@"
# run WORDS OPTION...: a token with what the options make it say.
run() {
    words=$1
    shift
    says "$words" "$wick" run "$model" -p a -n 1 --no-warm-up --profile -v "$@"
}
said() { grep -q -e "$1" "$folder/said" || { cat "$folder/said"; return 1; }; }
check "layers on both are told" run "^layers 0-2 on the CPU, 3-4 on " --gpu-layers 2 "$@"
check "and the kernels of the one" said "^every dispatch was a pass of its own"
check "and how many were compiled" said "^[0-9]* kernels (.* of text) compiled in .*; 0 failed$"
check "and those of the other" said "^layers on the CPU:$"
check "layers that do not fit are told" run \
    "^all 5 layers on the CPU: all take .* of the GPU's memory, .* are available$" \
    --gpu-memory 700K --cache f32 "$@"
check "and logged" said "^wick: info: the first 5 of 5 layers run on the CPU: all would take"
check "and nothing was timed" said "^nothing was timed"
# The text of a kernel; of the options --backend is not one of `wick devices`.
while [ $# -gt 0 ]; do
    case $1 in
    --webgpu-lib) library=$2 ;;
    esac
    shift
done
set -- devices --webgpu-lib "$library" --adapter software --wgsl
check "a kernel's WGSL is shown" says "fn main(@builtin(workgroup_id)" "$wick" "$@" gated
check "with the name of the kernel" says "^// program 1 of gated_wgsl$" "$wick" "$@" gated_wgsl
check "a wrong name fails" fails "$wick" "$@" gate
check "and lists the names" says "^  attention_cached_wgsl$" "$wick" "$@" gate
echo "1..$n"
exit $failed
