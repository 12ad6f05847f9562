# One static library for each layer of docs/architecture.md, linked to the layers it may use. A
# layer whose folder holds no sources yet is an empty interface.

set(wick_layers "")

# wick_layer(NAME SOURCES pattern... [WITHOUT regex] [GENERATED file...] [USES layer...])
function(wick_layer name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "WITHOUT" "SOURCES;GENERATED;USES")
    list(TRANSFORM arg_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/src/")
    file(GLOB sources CONFIGURE_DEPENDS ${arg_SOURCES})
    if(arg_WITHOUT)
        list(FILTER sources EXCLUDE REGEX ${arg_WITHOUT})
    endif()
    if(NOT sources)
        add_library(${name} INTERFACE)
        target_link_libraries(${name} INTERFACE ${arg_USES})
        return()
    endif()
    add_library(${name} STATIC ${sources} ${arg_GENERATED})
    target_include_directories(${name} PUBLIC
        ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
    target_compile_definitions(${name} PRIVATE WICK_BUILD)
    target_link_libraries(${name} PRIVATE wick_options PUBLIC ${arg_USES})
    set(wick_layers ${wick_layers} ${name} PARENT_SCOPE)
endfunction()

# Each instruction set is a translation unit of its own with its own flags; nothing else gets any.
function(wick_isa_flags pattern)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/cpu/${pattern})
    # Unrolled loops with a check of undefined behaviour at each step take minutes to compile; what
    # matters in them, the memory they touch, the address sanitizer sees, by calls, which take half
    # as long to compile as checks. Fuzzers have nothing to find in them.
    set(checks "")
    if(WICK_SANITIZE)
        set(checks -fno-sanitize=undefined)
    endif()
    if(WICK_SANITIZE MATCHES address)
        list(APPEND checks $<$<C_COMPILER_ID:Clang>:-fsanitize-address-outline-instrumentation>)
    endif()
    if(WICK_BUILD_FUZZERS)
        list(APPEND checks -fno-sanitize=fuzzer-no-link)
    endif()
    if(sources)
        set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "${ARGN};${checks}")
    endif()
endfunction()

set(cpu_sources backend/cpu/*.c backend/cpu/ref/*.c)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(avx2 -mavx2 -mfma -mf16c)
    set(avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni ${avx2})
    wick_isa_flags(x86/*_avx2.c ${avx2})
    wick_isa_flags(x86/*_avx512.c ${avx512})
    list(APPEND cpu_sources backend/cpu/x86/*.c)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
    # To gcc 12 a NEON intrinsic that may trap is a call that may change any memory, so that sums in
    # arrays are written back in every round of a loop. The flag changes no result. Its scheduler
    # moves loads of the integer kernels so far up that registers run out.
    set(arm -fno-trapping-math)
    set(arm_integers ${arm} $<$<C_COMPILER_ID:GNU>:-fno-schedule-insns>)
    wick_isa_flags(arm/*_neon.c -march=armv8-a ${arm})
    wick_isa_flags(arm/*_dotprod.c -march=armv8.2-a+dotprod ${arm_integers})
    wick_isa_flags(arm/*_i8mm.c -march=armv8.2-a+dotprod+i8mm ${arm_integers})
    list(APPEND cpu_sources backend/cpu/arm/*.c)
elseif(WICK_WASM)
    # Rolled loops over the four registers of a vector would be 15 times as slow.
    wick_isa_flags(wasm/*_wasm.c -Os -mllvm -unroll-threshold=300)
    wick_isa_flags(wasm/linear_*_wasm.c -O2)
    # Unrolled are only loops of few rounds, and these wholly: the functions of elements get smaller
    # and up to a third faster.
    wick_isa_flags(wasm/vector_wasm.c -Os -mllvm -unroll-runtime=false
        -mllvm -unroll-threshold=300 -mllvm -inline-threshold=5)
    list(APPEND cpu_sources backend/cpu/wasm/*.c)
endif()

wick_layer(wick_core SOURCES core/*.c)
if(WICK_WASM)
    wick_layer(wick_sys SOURCES sys/*.c sys/wasm/*.c WITHOUT /thread_atomics USES wick_core)
else()
    wick_layer(wick_sys SOURCES sys/*.c sys/posix/*.c USES wick_core)
endif()
set(constant_grids "")
set(packed_grids "")
if(WICK_WASM)
    set(constant_grids "/iq_tables[.]c")
    set(packed_grids ${PROJECT_BINARY_DIR}/packed_grids.c)
    add_custom_command(OUTPUT ${packed_grids}
        COMMAND ${CMAKE_COMMAND} -DINPUT=${PROJECT_SOURCE_DIR}/src/quant/iq_tables.c
                -DOUTPUT=${packed_grids} -P ${PROJECT_SOURCE_DIR}/cmake/PackGrids.cmake
        DEPENDS ${PROJECT_SOURCE_DIR}/src/quant/iq_tables.c
                ${PROJECT_SOURCE_DIR}/cmake/PackGrids.cmake
        COMMENT "Packing grids" VERBATIM)
endif()
wick_layer(wick_quant SOURCES quant/*.c WITHOUT "${constant_grids}" GENERATED ${packed_grids}
    USES wick_core)
# gcc would unroll the loops over tries, and then not vectorise them; nor does it vectorise a choice
# between floats that may trap. Neither changes a result.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    file(GLOB encoders CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/quant/encode_*.c)
    set_source_files_properties(${encoders} PROPERTIES COMPILE_OPTIONS
        "-fno-trapping-math;--param=max-completely-peel-times=4")
endif()
wick_layer(wick_text SOURCES text/*.c text/unicode/*.c text/tokenize/*.c text/jinja/*.c
    USES wick_core)
wick_layer(wick_grammar SOURCES grammar/*.c USES wick_text)
wick_layer(wick_sample SOURCES sample/*.c USES wick_grammar wick_sys)
wick_layer(wick_chat SOURCES chat/*.c USES wick_grammar)
wick_layer(wick_format SOURCES format/*.c USES wick_core wick_quant)
wick_layer(wick_source SOURCES source/*.c USES wick_format wick_sys)
wick_layer(wick_backend SOURCES backend/*.c USES wick_quant)
wick_layer(wick_null SOURCES backend/null/*.c USES wick_backend)
wick_layer(wick_cpu SOURCES ${cpu_sources} USES wick_backend wick_quant wick_sys)
file(GLOB wgsl CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/webgpu/wgsl/*.wgsl)
set(wgsl_source ${PROJECT_BINARY_DIR}/wgsl.c)
add_custom_command(OUTPUT ${wgsl_source}
    COMMAND ${CMAKE_COMMAND} "-DINPUTS=${wgsl}" -DOUTPUT=${wgsl_source}
            -DJOINS_LINES=${WICK_WASM} -P ${PROJECT_SOURCE_DIR}/cmake/EmbedShaders.cmake
    DEPENDS ${wgsl} ${PROJECT_SOURCE_DIR}/cmake/EmbedShaders.cmake
    COMMENT "Embedding WGSL" VERBATIM)
# The contact with WebGPU: a library, or the page around the module.
set(other_gpu /gpu_web)
if(WICK_WASM)
    set(other_gpu "/gpu_native|/gpu_library|/wgsl_nesting")
endif()
wick_layer(wick_webgpu SOURCES backend/webgpu/*.c backend/webgpu/gpu/*.c
    backend/webgpu/kernels/*.c WITHOUT ${other_gpu} GENERATED ${wgsl_source}
    USES wick_backend wick_quant wick_sys)
wick_layer(wick_tensor SOURCES tensor/*.c USES wick_null wick_cpu wick_webgpu)
wick_layer(wick_ops SOURCES ops/*.c USES wick_tensor wick_source)
wick_layer(wick_model SOURCES model/*.c model/families/*.c USES wick_ops wick_format)
# Pages have neither draft models nor prediction heads: what stands in their place is small.
set(other_guesses "/none/")
if(WICK_WASM)
    set(other_guesses "/llm/(draft|head)[.]c")
endif()
wick_layer(wick_llm SOURCES llm/*.c llm/none/*.c WITHOUT ${other_guesses}
    USES wick_model wick_source wick_sample wick_chat)
wick_layer(wick_judge SOURCES judge/*.c USES wick_llm)
wick_layer(wick_api SOURCES api/*.c USES wick_judge)
wick_layer(wick_convert SOURCES convert/*.c USES wick_llm)
wick_layer(wick_train SOURCES train/*.c USES wick_ops)
wick_layer(wick_finetune SOURCES finetune/*.c USES wick_llm wick_train)
wick_layer(wick_verify SOURCES verify/*.c USES wick_ops)

# Instrumented code takes three times as long to compile with optimisation. It has it where tests
# compute or read much.
if(WICK_SANITIZE)
    foreach(layer source webgpu ops model llm judge api convert train finetune verify)
        target_compile_options(wick_${layer} PRIVATE -O0)
    endforeach()
endif()

# Pages download the module. The preset compiles it for size; what neither computes nor merges
# tokens nor brings weights into their layouts is made smaller still, whatever it costs.
if(WICK_WASM)
    foreach(layer grammar sample chat format source backend webgpu tensor ops model llm judge api
            train finetune verify)
        target_compile_options(wick_${layer} PRIVATE -Oz)
    endforeach()
    # Nearly everything that cpu/ref reads and writes comes through here.
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/backend/row.c PROPERTIES
        COMPILE_OPTIONS -Os)
    file(GLOB small CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/text/jinja/*.c
        ${PROJECT_SOURCE_DIR}/src/core/json*.c ${PROJECT_SOURCE_DIR}/src/quant/decode_*.c
        ${PROJECT_SOURCE_DIR}/src/quant/panel_store.c
        ${PROJECT_SOURCE_DIR}/src/text/tokenize/cut*.c)
    set_source_files_properties(${small} PROPERTIES COMPILE_OPTIONS -Oz)
else()
    target_link_libraries(wick_core INTERFACE m)
    target_link_libraries(wick_sys INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
endif()
