#!/bin/sh
# The recorded cases of every operation that Wick has, on each instruction set, and through the null
# backend: answers late and out of order, fused operations taken apart, everything a fallback.
if [ ! -d "$WICK_SHARED_DATA/ops" ]; then
    echo "skipped: WICK_SHARED_DATA names no folder with the recorded cases (ops/)"
    exit 77
fi
op_cases=$(dirname "$WICK_BIN")/op_cases
ops=silu,abs,neg,sqr,sign,relu,relu_squared,relu6,exp,log,sin,cos,recip,sqrt,erf,tanh,sigmoid
ops=$ops,floor,ceil,round,gelu,gelu_erf,quick_gelu,softplus,mish,hard_sigmoid,hard_swish,add,sub
ops=$ops,mul,div,maximum,minimum,pow,eq,ne,lt,le,gt,ge,matmul,swiglu,geglu,geglu_erf,reglu,sum
ops=$ops,mean,max,min,softmax,argmax,linear,embedding,transpose,permute,reshape,flatten,squeeze
ops=$ops,unsqueeze,narrow,expand,contiguous,cat,copy,cast,fill,zeros,full,arange,rms_norm,rope
ops=$ops,rope_table,attention,kv_append,swiglu_clamped,elu,leaky_relu,powf,affine,clamp
ops=$ops,where_cond,var,argmin,log_softmax,layer_norm,stack,chunk,ones,eye,tril,triu
failed=0

check() {
    echo "== $*"
    # The table of a run that passed says nothing but its last line.
    if report=$($WICK_EMULATOR "$op_cases" "$WICK_SHARED_DATA/ops" --ops $ops "$@" 2>&1); then
        echo "$report" | tail -n 1
    else
        echo "$report"
        failed=1
    fi
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
