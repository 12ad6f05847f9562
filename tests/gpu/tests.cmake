# Tests on WebGPU: on pairs of a library and a driver in software (on_webgpu.sh). Those with the
# label gpu are part of `make test`; gpu_all: the same on the other pairs, `make test-all`.

set(pairs dawn_swiftshader dawn_lavapipe wgpu_swiftshader wgpu_lavapipe)
# A device that has no more than core WebGPU.
set(core --without f16,subgroups,dot4,timestamps --default-limits)

# wick_gpu_test(PROGRAM ON [AS NAME] LABELS label... [ARGUMENTS ...]): ON is a pair, or one with
# _core behind; the test is called NAME_ON.
function(wick_gpu_test program on)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "AS" "LABELS;ARGUMENTS")
    if(NOT arg_AS)
        set(arg_AS ${program})
    endif()
    string(REPLACE "_" ";" words ${on})
    list(SUBLIST words 0 2 pair)
    set(limits "")
    if(on MATCHES core)
        set(limits ${core})
    endif()
    wick_test(${arg_AS}_${on} LABELS ${arg_LABELS} COMMAND sh tests/gpu/on_webgpu.sh ${pair}
        $<TARGET_FILE:${program}> ${arg_ARGUMENTS} ${limits})
    set_tests_properties(${arg_AS}_${on} PROPERTIES TIMEOUT 900)
endfunction()

# The recorded cases, and random ones for every kernel, others on each.
set(always_op_cases dawn_swiftshader wgpu_lavapipe)
set(always_kernel_check dawn_lavapipe wgpu_swiftshader dawn_swiftshader_core)
set(seed 2026)
foreach(on ${pairs} dawn_swiftshader_core dawn_lavapipe_core)
    foreach(program op_cases kernel_check)
        set(arguments "")
        if(program STREQUAL kernel_check)
            set(arguments --seed ${seed})
        endif()
        set(label gpu_all)
        if(on IN_LIST always_${program})
            set(label gpu)
        endif()
        wick_gpu_test(${program} ${on} LABELS ${label} ARGUMENTS ${arguments})
    endforeach()
    math(EXPR seed "${seed} + 1")
endforeach()

if(CMOCKA_INCLUDE AND CMOCKA_LIBRARY)
    foreach(program webgpu_custom webgpu_devices webgpu_loss webgpu_memory webgpu_models webgpu_ops
            webgpu_tuning)
        wick_cmocka_program(${program} gpu/${program}.c)
    endforeach()
    target_sources(webgpu_custom PRIVATE gpu/webgpu_custom_wrong.c)
    # Of the two libraries Dawn can take a device away.
    wick_gpu_test(webgpu_loss dawn_lavapipe LABELS gpu)
    foreach(on ${pairs})
        set(label gpu_all)
        if(on STREQUAL wgpu_swiftshader OR on STREQUAL dawn_lavapipe)
            set(label gpu)
        endif()
        set(sanitized "")
        if(on STREQUAL dawn_lavapipe)
            set(sanitized gpu_sanitized)
        endif()
        wick_gpu_test(webgpu_custom ${on} LABELS ${label} ${sanitized})
        wick_gpu_test(webgpu_memory ${on} LABELS ${label} ${sanitized})
        wick_gpu_test(webgpu_ops ${on} LABELS ${label} ${sanitized})
        wick_gpu_test(webgpu_tuning ${on} LABELS ${label} ${sanitized})
        wick_gpu_test(test_sequences ${on} LABELS ${label} ${sanitized})
        wick_gpu_test(webgpu_devices ${on} LABELS ${label} ${sanitized})
        wick_gpu_test(webgpu_models ${on} LABELS ${label})
        if(label STREQUAL gpu_all)
            wick_gpu_test(webgpu_models ${on} AS webgpu_tokens LABELS gpu ARGUMENTS --tokens)
        endif()
        wick_gpu_test(test_families ${on} LABELS ${label})
        wick_gpu_test(test_recurrent ${on} LABELS ${label})
        wick_gpu_test(test_windows ${on} LABELS ${label})
    endforeach()
    foreach(program test_families test_recurrent)
        wick_gpu_test(${program} dawn_lavapipe_core LABELS gpu_all)
    endforeach()
    wick_gpu_test(webgpu_models dawn_lavapipe_core AS webgpu_tokens LABELS gpu ARGUMENTS --tokens)
    wick_test(webgpu_store LABELS gpu COMMAND sh tests/gpu/on_webgpu.sh dawn lavapipe
        tests/gpu/webgpu_store.sh)
    set_tests_properties(webgpu_store PROPERTIES TIMEOUT 300)
    wick_test(webgpu_smollm2 LABELS gpu COMMAND sh tests/gpu/on_webgpu.sh dawn lavapipe
        $<TARGET_FILE:webgpu_models> --real)
    wick_test(webgpu_smollm2_fast LABELS gpu_all COMMAND sh tests/gpu/on_webgpu.sh dawn lavapipe
        $<TARGET_FILE:webgpu_models> --fast)
    set_tests_properties(webgpu_smollm2 webgpu_smollm2_fast PROPERTIES TIMEOUT 900)
endif()

if(WICK_SANITIZE)
    wick_test(kernel_check_sanitized LABELS gpu_sanitized COMMAND ${CMAKE_COMMAND} -E env
        WICK_GPU_CASES=1 sh tests/gpu/on_webgpu.sh wgpu swiftshader $<TARGET_FILE:kernel_check>)
    set_tests_properties(kernel_check_sanitized PROPERTIES TIMEOUT 900)
endif()
