# How everything is compiled: plain C11, no -ffast-math, no contraction of a * b + c, so that
# results do not depend on the compiler. Kernels that want fused multiply-adds call the intrinsics.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# One set of objects for both libraries; most compilers make position-independent programs anyway.
if(WICK_SHARED OR BUILD_SHARED_LIBS)
    set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()

# A compiler cache where there is one; CMAKE_C_COMPILER_LAUNCHER names another, empty means none.
find_program(WICK_CCACHE NAMES ccache sccache)
if(WICK_CCACHE AND NOT DEFINED CMAKE_C_COMPILER_LAUNCHER
   AND NOT DEFINED ENV{CMAKE_C_COMPILER_LAUNCHER})
    set(CMAKE_C_COMPILER_LAUNCHER ${WICK_CCACHE} CACHE STRING "Runs the compiler")
endif()

set(WICK_WASM OFF)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "wasm32")
    set(WICK_WASM ON)
    add_library(Threads::Threads INTERFACE IMPORTED)
else()
    set(THREADS_PREFER_PTHREAD_FLAG ON)
    find_package(Threads REQUIRED)
endif()

# Options of Wick's own sources; nothing of this reaches a program that links the library.
add_library(wick_options INTERFACE)
target_compile_options(wick_options INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
    -ffp-contract=off -fno-math-errno)
if(WICK_WERROR)
    target_compile_options(wick_options INTERFACE -Werror)
endif()
if(WICK_BUILD_FUZZERS)
    target_compile_options(wick_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(WICK_SANITIZE)
    set(sanitize -fsanitize=${WICK_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_compile_options(wick_options INTERFACE ${sanitize})
    target_link_options(wick_options INTERFACE ${sanitize})
    include(CheckLinkerFlag)
    check_linker_flag(C -fuse-ld=lld WICK_LLD) # in a third of the time
    if(WICK_LLD)
        target_link_options(wick_options INTERFACE -fuse-ld=lld)
    endif()
endif()
