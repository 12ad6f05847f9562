# The wick command: cli/*.c over the public headers alone, with the small model inside. `wick pull`
# fetches by libcurl, which nothing else needs: without it the command is built all the same.

option(WICK_CURL "Let 'wick pull' fetch models, where libcurl is found" ON)
if(WICK_CURL)
    find_package(CURL 7.85 QUIET)
endif()
set(http_source cli/http/none.c)
if(CURL_FOUND)
    set(http_source cli/http/curl.c)
endif()

# `wick chat` edits lines by libedit, and without it as the terminal does.
option(WICK_LIBEDIT "Let 'wick chat' edit lines, where libedit is found" ON)
set(line_source cli/line/plain.c)
if(WICK_LIBEDIT)
    find_path(LIBEDIT_INCLUDE histedit.h)
    find_library(LIBEDIT_LIBRARY edit)
    if(LIBEDIT_INCLUDE AND LIBEDIT_LIBRARY)
        set(line_source cli/line/libedit.c)
    endif()
endif()

# `wick serve` speaks HTTP by libmicrohttpd; without it the command says so.
option(WICK_MICROHTTPD "Build 'wick serve', where libmicrohttpd is found" ON)
set(server_source cli/server/none.c)
if(WICK_MICROHTTPD)
    find_path(MICROHTTPD_INCLUDE microhttpd.h)
    if(MICROHTTPD_INCLUDE)
        set(page_source ${PROJECT_BINARY_DIR}/page_files.c)
        set(server_source cli/server/microhttpd.c cli/server/access.c cli/server/listen.c
            cli/server/mhd.c cli/server/page.c cli/server/peers.c cli/server/request.c
            cli/server/response.c ${page_source})
    endif()
endif()

if(server_source MATCHES microhttpd)
    set(page_files served.html base.css chat.css icon.svg theme.js served.js calls.js chat_list.js
        chats.js code.js dom.js format.js markdown.js passages.js prompt_field.js question.js
        remember.js sandbox.js search_panel.js sheet.js tool_panel.js tools.js)
    list(TRANSFORM page_files PREPEND ${PROJECT_SOURCE_DIR}/web/demo/)
    add_custom_command(OUTPUT ${page_source}
        COMMAND ${CMAKE_COMMAND} -D "INPUTS=${page_files}" -D OUTPUT=${page_source}
                -P ${PROJECT_SOURCE_DIR}/cmake/EmbedPage.cmake
        DEPENDS ${page_files} ${PROJECT_SOURCE_DIR}/cmake/EmbedPage.cmake
        COMMENT "Embedding the page of the server" VERBATIM)
endif()

file(GLOB cli_sources CONFIGURE_DEPENDS cli/*.c)
if(cli_sources)
    set(embedded_model ${PROJECT_SOURCE_DIR}/tests/data/stories260K.gguf)
    set(embedded_source ${PROJECT_BINARY_DIR}/embedded_model.c)
    add_custom_command(OUTPUT ${embedded_source}
        COMMAND ${CMAKE_COMMAND} -D INPUT=${embedded_model} -D OUTPUT=${embedded_source}
                -P ${PROJECT_SOURCE_DIR}/cmake/EmbedModel.cmake
        DEPENDS ${embedded_model} ${PROJECT_SOURCE_DIR}/cmake/EmbedModel.cmake
        COMMENT "Embedding stories260K.gguf" VERBATIM)
    add_executable(wick ${cli_sources} ${http_source} ${line_source} ${server_source}
        ${embedded_source})
    if(APPLE) # POSIX's name for it
        set_source_files_properties(cli/kernel_cache.c PROPERTIES
            COMPILE_DEFINITIONS st_mtim=st_mtimespec)
    endif()
    target_include_directories(wick PRIVATE cli)
    target_link_libraries(wick PRIVATE wick_options Wick::wick)
    if(line_source STREQUAL cli/line/libedit.c)
        target_include_directories(wick SYSTEM PRIVATE ${LIBEDIT_INCLUDE})
        target_link_libraries(wick PRIVATE ${LIBEDIT_LIBRARY})
    endif()
    if(CURL_FOUND)
        # Loaded at run time, by the commands that need it.
        target_include_directories(wick SYSTEM PRIVATE ${CURL_INCLUDE_DIRS})
        target_link_libraries(wick PRIVATE ${CMAKE_DL_LIBS})
    endif()
    if(server_source MATCHES microhttpd)
        # Loaded at run time, too.
        target_include_directories(wick SYSTEM PRIVATE ${MICROHTTPD_INCLUDE})
        target_link_libraries(wick PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
    endif()
    set_target_properties(wick PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
        INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
    install(TARGETS wick)
    if(TARGET libwick_shared)
        add_dependencies(wick libwick_shared) # a build of the command can be installed
    endif()

    # The manual page and completion come from the command's own tables: it prints them.
    if(NOT CMAKE_CROSSCOMPILING)
        set(share ${CMAKE_INSTALL_DATAROOTDIR})
        set(texts wick.1 wick.bash _wick wick.fish)
        set(places ${CMAKE_INSTALL_MANDIR}/man1 ${share}/bash-completion/completions
            ${share}/zsh/site-functions ${share}/fish/vendor_completions.d)
        set(options --man --completion=bash --completion=zsh --completion=fish)
        foreach(text place option IN ZIP_LISTS texts places options)
            add_custom_command(TARGET wick POST_BUILD VERBATIM
                COMMAND ${CMAKE_COMMAND} -D WICK=$<TARGET_FILE:wick> -D OPTION=${option}
                        -D OUTPUT=${PROJECT_BINARY_DIR}/${text}
                        -P ${PROJECT_SOURCE_DIR}/cmake/PrintHelp.cmake)
            install(FILES ${PROJECT_BINARY_DIR}/${text} DESTINATION ${place})
        endforeach()
    endif()
    # What tools/fetch_webgpu has fetched: the command looks there, see gpu_library.c.
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/deps/webgpu/ DESTINATION lib/wick OPTIONAL
        FILES_MATCHING PATTERN "lib*.so" PATTERN "lib*.dylib")
endif()
