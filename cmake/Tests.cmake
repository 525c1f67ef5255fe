# Every tests/<directory>/test_*.c is one program and one CTest named <directory>/test_*, labelled with the directory.
# Every tests/project/*.sh is one CTest named project/*, which checks the source tree and the build rather than the library.

# What tests share. An archive, so that each takes only what it uses.
file(GLOB us_test_support CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/*.c)
add_library(us_test_common INTERFACE)
target_include_directories(us_test_common INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/tests/support)
target_compile_definitions(us_test_common INTERFACE
  US_SOURCE_DIR="${CMAKE_SOURCE_DIR}" US_BINARY_DIR="${CMAKE_BINARY_DIR}" US_PROGRAM="$<TARGET_FILE:understudy_program>")
target_link_libraries(us_test_common INTERFACE us_flags understudy_static PkgConfig::CMOCKA PkgConfig::XML2 PkgConfig::ASSIMP PkgConfig::CJSON m)
if(us_test_support)
  add_library(us_test_support STATIC ${us_test_support})
  target_link_libraries(us_test_support PUBLIC us_test_common)
else()
  add_library(us_test_support ALIAS us_test_common)
endif()

# Every tests/preload/*.c is a module that a test puts into LD_PRELOAD of the programs it starts: plain C, without instrumentation.
file(GLOB us_preloads CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/preload/*.c)
set(us_preload_targets)
foreach(source ${us_preloads})
  get_filename_component(name ${source} NAME_WE)
  add_library(preload_${name} MODULE ${source})
  set_target_properties(preload_${name} PROPERTIES OUTPUT_NAME ${name} PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/preload)
  target_compile_definitions(preload_${name} PRIVATE _GNU_SOURCE)
  target_compile_options(preload_${name} PRIVATE -Wall -Wextra ${us_werror})
  list(APPEND us_preload_targets preload_${name})
endforeach()

function(us_add_test directory source)
  get_filename_component(name ${source} NAME_WE)
  set(target ${directory}_${name})
  set(scratch ${CMAKE_BINARY_DIR}/tests/${directory}/${name}.scratch)
  add_executable(${target} ${source})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/${directory})
  target_link_libraries(${target} PRIVATE us_test_support)
  if(directory STREQUAL "peers")
    target_link_libraries(${target} PRIVATE us_mujoco)
  endif()
  add_dependencies(${target} understudy_program ${us_preload_targets})
  # Each test runs in a directory of its own: what it writes meets nobody.
  file(MAKE_DIRECTORY ${scratch})
  add_test(NAME ${directory}/${name} COMMAND ${target} WORKING_DIRECTORY ${scratch})
  if(directory STREQUAL "physics" OR directory STREQUAL "peers" OR US_SANITIZE)
    set(timeout 600)
  else()
    set(timeout 120)
  endif()
  # Tests that compute run beside the browser's; those that measure times and wait come after them.
  if(directory STREQUAL "e2e")
    set(cost 1)
  else()
    set(cost 2)
  endif()
  # Each has a DDS domain of its own, so that robots of two tests never meet.
  math(EXPR us_test_domain "${us_test_domain} % 200 + 1")
  set(us_test_domain ${us_test_domain} PARENT_SCOPE)
  set_tests_properties(${directory}/${name} PROPERTIES LABELS ${directory} TIMEOUT ${timeout} COST ${cost} ENVIRONMENT "ROS_DOMAIN_ID=${us_test_domain}")
endfunction()
set(us_test_domain 0)

set(us_test_directories unit physics determinism api wire e2e)
if(TARGET us_mujoco)
  list(APPEND us_test_directories peers)
endif()
foreach(directory ${us_test_directories})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${directory}/test_*.c)
  foreach(source ${sources})
    us_add_test(${directory} ${source})
  endforeach()
endforeach()

# The classifier of these tests is libsvm's; without it each says that it is skipped.
find_path(US_SVM_INCLUDE libsvm/svm.h)
find_library(US_SVM_LIBRARY svm)
if(US_SVM_INCLUDE AND US_SVM_LIBRARY)
  foreach(target e2e_test_timing e2e_test_noise)
    target_include_directories(${target} SYSTEM PRIVATE ${US_SVM_INCLUDE})
    target_compile_definitions(${target} PRIVATE US_HAVE_SVM=1)
    target_link_libraries(${target} PRIVATE ${US_SVM_LIBRARY})
  endforeach()
endif()

# These write rasters by GDAL themselves.
foreach(target unit_test_raster unit_test_import unit_test_scene_region unit_test_scene_soil_map)
  target_include_directories(${target} SYSTEM PRIVATE ${GDAL_INCLUDE_DIRS})
  target_link_libraries(${target} PRIVATE ${US_GDAL_FILE})
endforeach()

# This one writes PNG files of every kind by libpng itself.
target_include_directories(unit_test_vision_image SYSTEM PRIVATE ${PNG_INCLUDE_DIRS})

add_dependencies(e2e_test_link link_square)
add_dependencies(e2e_test_serial link_square)

# The program that these talk to is built with them, where it can be.
if(TARGET k10_hardware)
  foreach(test handover handover_back handover_told hardware hardware_motors hardware_network hardware_world shadow shadow_diverged shadow_resync timing)
    add_dependencies(e2e_test_${test} k10_hardware)
  endforeach()
endif()

# Every tests/browser/test_*.mjs is one CTest named browser/test_*, run by node with Debian's Chromium. The sanitizers see nothing of a browser.
find_program(US_NODE node)
find_program(US_CHROMIUM chromium)
if(US_PAGE AND US_NODE AND US_CHROMIUM AND NOT US_SANITIZE)
  file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/browser/test_*.mjs)
  foreach(script ${scripts})
    get_filename_component(name ${script} NAME_WE)
    set(scratch ${CMAKE_BINARY_DIR}/tests/browser/${name}.scratch)
    file(MAKE_DIRECTORY ${scratch})
    add_test(NAME browser/${name} COMMAND ${US_NODE} ${script} WORKING_DIRECTORY ${scratch})
    math(EXPR us_test_domain "${us_test_domain} % 200 + 1")
    # A picture drawn in software keeps one processor busy: one of these at a time, first of all, and tests that compute beside it.
    set_tests_properties(browser/${name} PROPERTIES LABELS browser TIMEOUT 300 RESOURCE_LOCK browser COST 3
      ENVIRONMENT "ROS_DOMAIN_ID=${us_test_domain};US_SOURCE_DIR=${CMAKE_SOURCE_DIR};US_PROGRAM=$<TARGET_FILE:understudy_program>;US_CHROMIUM=${US_CHROMIUM}")
  endforeach()
endif()

# Fuzz targets with the sanitizers: each runs its committed seeds and changed ones for two seconds, a minute with US_LONG_TESTS
# (fuzz/standalone.c). `./dev test` runs them for a minute each beside the other tests, `./dev fuzz` with libFuzzer.
if(US_SANITIZE)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/fuzz/fuzz_*.c)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    string(REPLACE "fuzz_" "" name ${name})
    add_executable(fuzz_run_${name} ${source} ${CMAKE_SOURCE_DIR}/fuzz/standalone.c)
    set_target_properties(fuzz_run_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/fuzz)
    target_link_libraries(fuzz_run_${name} PRIVATE us_test_common)
    set(scratch ${CMAKE_BINARY_DIR}/tests/fuzz/${name}.scratch)
    file(MAKE_DIRECTORY ${scratch})
    add_test(NAME fuzz/${name} COMMAND fuzz_run_${name} ${CMAKE_SOURCE_DIR}/fuzz/corpus/${name} WORKING_DIRECTORY ${scratch})
    set_tests_properties(fuzz/${name} PROPERTIES LABELS fuzz TIMEOUT 300 COST 2)
  endforeach()
endif()

# The scripts take the source and the build directory as arguments, and find them and the program in the environment too.
file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/project/*.sh)
foreach(script ${scripts})
  get_filename_component(name ${script} NAME_WE)
  set(scratch ${CMAKE_BINARY_DIR}/tests/project/${name}.scratch)
  file(MAKE_DIRECTORY ${scratch})
  add_test(NAME project/${name} COMMAND bash ${script} ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR} WORKING_DIRECTORY ${scratch})
  set_tests_properties(project/${name} PROPERTIES LABELS project TIMEOUT 300
    ENVIRONMENT "US_SOURCE_DIR=${CMAKE_SOURCE_DIR};US_BINARY_DIR=${CMAKE_BINARY_DIR};US_PROGRAM=$<TARGET_FILE:understudy_program>;CC=${CMAKE_C_COMPILER}")
endforeach()
