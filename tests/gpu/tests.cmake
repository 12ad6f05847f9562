# Tests on WebGPU: on pairs of a library and a driver in software (on_webgpu.sh). Those with the
# label gpu are part of `make test`; those with the labels gpu and all run in `make test-all`.

set(pairs dawn_swiftshader dawn_lavapipe wgpu_swiftshader wgpu_lavapipe)
# A device that has no more than core WebGPU.
set(core --without f16,subgroups,dot4,timestamps --default-limits)
# Where `make test-all` runs the longest tests whole; on other pairs it does as much of them as
# `make test`.
set(whole_op_cases wgpu_swiftshader)
set(whole_webgpu_dispatches dawn_lavapipe)

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
        $<TARGET_FILE:${program}> ${arg_ARGUMENTS} ${limits} PROGRAMS ${program})
    set_tests_properties(${arg_AS}_${on} PROPERTIES TIMEOUT 900)
    if(DEFINED whole_${program} AND NOT on IN_LIST whole_${program})
        set_property(TEST ${arg_AS}_${on} APPEND PROPERTY ENVIRONMENT WICK_TEST_ALL=0)
    endif()
endfunction()

# The recorded cases, and random ones for every kernel: in `make test` each on another pair.
set(seed 2026)
foreach(on ${pairs} dawn_swiftshader_core dawn_lavapipe_core)
    foreach(program_pair "op_cases dawn_lavapipe" "kernel_check dawn_swiftshader"
            "random_programs wgpu_lavapipe")
        separate_arguments(program_pair)
        list(GET program_pair 0 program)
        set(labels gpu all)
        if(on IN_LIST program_pair)
            set(labels gpu)
        endif()
        set(arguments ARGUMENTS --seed ${seed})
        if(program STREQUAL op_cases)
            set(arguments "")
        endif()
        wick_gpu_test(${program} ${on} LABELS ${labels} ${arguments})
    endforeach()
    math(EXPR seed "${seed} + 1")
endforeach()

if(CMOCKA_INCLUDE AND CMOCKA_LIBRARY)
    # What a library and a driver do differently: in `make test` on one pair, and the quick ones on
    # another, too.
    set(contact webgpu_custom webgpu_memory webgpu_ops webgpu_pool webgpu_tuning test_faults
        test_sequences)
    set(quick_contact webgpu_custom webgpu_pool)
    # What Wick itself does: in `make test` on one of them, if at all.
    set(engine webgpu_devices webgpu_long webgpu_shortlist)
    set(in_make_test ${contact} webgpu_devices webgpu_dispatches webgpu_long webgpu_models
        test_families)
    foreach(program webgpu_dispatches webgpu_loss webgpu_models webgpu_training ${contact}
            ${engine})
        if(NOT program MATCHES "^test_")
            wick_cmocka_program(${program} gpu/${program}.c)
        endif()
    endforeach()
    target_sources(webgpu_custom PRIVATE gpu/webgpu_custom_wrong.c)
    target_sources(webgpu_ops PRIVATE gpu/webgpu_ops_ordering.c)
    target_sources(webgpu_dispatches PRIVATE ${PROJECT_SOURCE_DIR}/bench/gpu/random_model.c)
    target_include_directories(webgpu_dispatches PRIVATE ${PROJECT_SOURCE_DIR}/bench/gpu)
    # Of the two libraries Dawn can take a device away.
    wick_gpu_test(webgpu_loss dawn_lavapipe LABELS gpu)
    wick_gpu_test(test_placed_models dawn_lavapipe LABELS gpu all)
    wick_gpu_test(webgpu_training dawn_lavapipe LABELS gpu all)
    wick_gpu_test(webgpu_training wgpu_lavapipe LABELS gpu all)
    wick_gpu_test(test_adapters dawn_lavapipe LABELS gpu all)
    wick_gpu_test(test_prediction_head dawn_lavapipe LABELS gpu all)
    wick_gpu_test(test_ahead dawn_lavapipe LABELS gpu all)
    wick_gpu_test(test_ahead wgpu_lavapipe LABELS gpu all)
    foreach(on ${pairs})
        # SwiftShader compiles the models' kernels for more than an hour.
        set(models webgpu_dispatches webgpu_models test_families test_given_rows test_recurrent
            test_saving test_sessions test_whole_texts test_windows)
        if(on MATCHES swiftshader)
            set(models "")
        endif()
        foreach(program ${contact} ${engine} ${models})
            set(labels gpu all)
            if((on STREQUAL dawn_lavapipe AND program IN_LIST in_make_test) OR
               (on STREQUAL wgpu_swiftshader AND program IN_LIST quick_contact))
                set(labels gpu)
            endif()
            # The sanitizers see the contact with one library.
            if(on STREQUAL dawn_lavapipe AND program IN_LIST contact)
                list(APPEND labels all_sanitized)
            endif()
            wick_gpu_test(${program} ${on} LABELS ${labels})
        endforeach()
        if(models)
            wick_gpu_test(webgpu_models ${on} AS webgpu_tokens LABELS gpu all ARGUMENTS --tokens)
        endif()
    endforeach()
    wick_gpu_test(webgpu_models dawn_lavapipe_core AS webgpu_tokens LABELS gpu ARGUMENTS --tokens)
    foreach(program test_families test_recurrent)
        wick_gpu_test(${program} dawn_lavapipe_core LABELS gpu all)
    endforeach()
    wick_test(webgpu_store LABELS gpu COMMAND sh tests/gpu/on_webgpu.sh dawn lavapipe
        tests/gpu/webgpu_store.sh)
    set_tests_properties(webgpu_store PROPERTIES TIMEOUT 300)
    wick_test(webgpu_smollm2 LABELS gpu all COMMAND sh tests/gpu/on_webgpu.sh dawn lavapipe
        $<TARGET_FILE:webgpu_models> --real)
    wick_test(webgpu_smollm2_fast LABELS gpu all COMMAND sh tests/gpu/on_webgpu.sh dawn lavapipe
        $<TARGET_FILE:webgpu_models> --fast)
    set_tests_properties(webgpu_smollm2 webgpu_smollm2_fast PROPERTIES TIMEOUT 900)
endif()

# By another compiler of WGSL than the two libraries'.
wick_test(webgpu_translation LABELS gpu all COMMAND sh tests/gpu/on_webgpu.sh wgpu lavapipe
    tests/gpu/translation.py PROGRAMS wick)

# What people with GPUs run.
wick_test(gpu_report LABELS gpu all COMMAND sh tests/gpu/on_webgpu.sh dawn lavapipe
    tests/gpu/gpu_report.py PROGRAMS wick gpu_bench)
wick_test(gpu_report_minute LABELS gpu all COMMAND sh tests/gpu/on_webgpu.sh wgpu lavapipe
    tests/gpu/gpu_report.py --minutes 1 PROGRAMS wick gpu_bench)

if(WICK_SANITIZE)
    wick_test(kernel_check_sanitized LABELS all_sanitized all COMMAND sh tests/gpu/on_webgpu.sh
        wgpu swiftshader $<TARGET_FILE:kernel_check> PROGRAMS kernel_check)
    set_tests_properties(kernel_check_sanitized PROPERTIES TIMEOUT 900)
endif()
