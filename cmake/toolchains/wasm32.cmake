# WebAssembly by clang and lld, with the C library of web/libc. Baseline: SIMD of 128 bits, bulk
# memory, sign extension, conversions that do not trap: what every browser with WebGPU has.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_C_COMPILER_TARGET wasm32-unknown-unknown)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

get_filename_component(wick_libc ${CMAKE_CURRENT_LIST_DIR}/../../web/libc ABSOLUTE)
set(CMAKE_C_FLAGS_INIT
    "-msimd128 -mbulk-memory -msign-ext -mnontrapping-fptoint -isystem ${wick_libc}/include")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-nostdlib")
