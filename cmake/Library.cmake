# libwick.a and libwick.so from the objects of all layers, and what lets others find them.

set(wick_objects "")
foreach(layer IN LISTS wick_layers)
    list(APPEND wick_objects $<TARGET_OBJECTS:${layer}>)
endforeach()
file(GLOB wick_headers CONFIGURE_DEPENDS include/wick/*.h)

# CMake wants one source of a known language even where all objects come from elsewhere.
function(wick_library name kind)
    add_library(${name} ${kind} ${wick_objects})
    set_target_properties(${name} PROPERTIES OUTPUT_NAME wick LINKER_LANGUAGE C
        VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
    target_include_directories(${name} PUBLIC
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()

wick_library(libwick_static STATIC)
target_link_libraries(libwick_static PUBLIC m Threads::Threads ${CMAKE_DL_LIBS})
set(wick_main libwick_static)
set(wick_libraries libwick_static)
if(WICK_SHARED OR BUILD_SHARED_LIBS)
    wick_library(libwick_shared SHARED)
    target_compile_definitions(libwick_shared INTERFACE WICK_SHARED)
    target_link_libraries(libwick_shared PRIVATE m Threads::Threads ${CMAKE_DL_LIBS}
        $<BUILD_INTERFACE:wick_options>)
    list(APPEND wick_libraries libwick_shared)
    set_target_properties(libwick_shared PROPERTIES EXPORT_NAME wick_shared)
    add_library(Wick::wick_shared ALIAS libwick_shared)
endif()
# What pkg-config and find_package(Wick) give. The static library is named whole: -lwick would take
# the shared one, which the loader does not find in a new prefix.
set(wick_pc_libs "\${libdir}/libwick.a -lm -lpthread -ldl")
set(wick_pc_libs_private "")
if(BUILD_SHARED_LIBS)
    set(wick_main libwick_shared)
    set(wick_pc_libs "-L\${libdir} -lwick")
    set(wick_pc_libs_private "-lm -lpthread -ldl")
    set_target_properties(libwick_static PROPERTIES EXPORT_NAME wick_static)
endif()
if(WICK_SANITIZE)
    target_link_options(libwick_static PUBLIC $<BUILD_INTERFACE:-fsanitize=${WICK_SANITIZE}>)
endif()
set_target_properties(${wick_main} PROPERTIES EXPORT_NAME wick)
add_library(Wick::wick ALIAS ${wick_main})

include(CMakePackageConfigHelpers)
configure_package_config_file(cmake/WickConfig.cmake.in WickConfig.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Wick)
write_basic_package_version_file(WickConfigVersion.cmake COMPATIBILITY SameMinorVersion)
# Relative, so that an installation can be moved.
file(RELATIVE_PATH wick_pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" wick_pc_prefix "${wick_pc_prefix}")
configure_file(wick.pc.in wick.pc @ONLY)

install(FILES ${wick_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/wick)
install(TARGETS ${wick_libraries} EXPORT WickTargets)
install(EXPORT WickTargets NAMESPACE Wick:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Wick)
install(FILES ${PROJECT_BINARY_DIR}/WickConfig.cmake ${PROJECT_BINARY_DIR}/WickConfigVersion.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Wick)
install(FILES ${PROJECT_BINARY_DIR}/wick.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/wick)
