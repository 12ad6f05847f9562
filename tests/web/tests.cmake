# The package's tests: each tests/web/test_*.mjs is run by Node, which prints its cases as TAP.

if(NOT WICK_PACKAGE_MISSING AND NOT EXISTS ${CMAKE_CURRENT_LIST_DIR}/node_modules/webgpu)
    set(WICK_PACKAGE_MISSING
        "npm's packages are not in tests/web/node_modules; tools/setup test fetches them")
endif()
if(WICK_PACKAGE_MISSING)
    wick_test(web_package LABELS web COMMAND
        sh -c "echo \"$0: nothing of web/dist is tested\"; exit 77" "${WICK_PACKAGE_MISSING}")
    return()
endif()
file(GLOB web_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/test_*.mjs)
foreach(source IN LISTS web_tests)
    get_filename_component(name ${source} NAME_WE)
    set(labels web)
    # `make test` has Chromium, and fetches no client.
    if(name MATCHES "^test_(firefox|official_client)$")
        list(APPEND labels all)
    endif()
    wick_test(${name} LABELS ${labels} COMMAND ${WICK_NODE} --test --test-reporter=tap ${source})
    set_tests_properties(${name} PROPERTIES TIMEOUT 900) # drivers on the CPU compile for minutes
endforeach()
