# The page travels inside the library, so that one program file is enough. Builds with several compilers may share US_PAGE_DIR.
#
#   us_page_source   the C file with the page's files
option(US_PAGE "Build the page (needs nodejs and npm); without it the server has only its data" ON)
set(US_PAGE_DIR ${CMAKE_BINARY_DIR}/page CACHE PATH "Where the page is built")
if(US_PAGE)
  set(us_page_source ${US_PAGE_DIR}/page_files.c)
  file(GLOB_RECURSE us_web_files CONFIGURE_DEPENDS web/src/* web/public/*)
  add_custom_command(OUTPUT ${us_page_source}
    COMMAND bash ${CMAKE_SOURCE_DIR}/tools/build_page ${CMAKE_SOURCE_DIR}/web ${US_PAGE_DIR}
    DEPENDS ${us_web_files} web/index.html web/package.json web/package-lock.json web/vite.config.ts web/tsconfig.json tools/build_page tools/embed_page.mjs
    COMMENT "Building the page" VERBATIM)
else()
  set(us_page_source ${CMAKE_BINARY_DIR}/generated/no_page.c)
  file(WRITE ${us_page_source} "#include \"view/view__page_files.h\"\n\nconst usi_web_file usi_page_files[1] = {0};\nconst int32_t usi_page_n_file = 0;\n")
endif()
