# The second DDS vendor, Fast DDS, where it is installed: a library of its own in C++, loaded when somebody asks for it; and for the tests a program that
# speaks every message through the code that Fast DDS's own compiler makes of idl/*.idl.
option(US_FASTDDS "Build the plug-in for Fast DDS when it is installed" ON)

include(GNUInstallDirs)
# Where src/bus/plugin.c looks, seen from the program's directory.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/bus/plugin.c PROPERTIES COMPILE_DEFINITIONS US_PLUGIN_DIR="../${CMAKE_INSTALL_LIBDIR}/understudy/")

find_path(US_FASTDDS_INCLUDE fastdds/dds/domain/DomainParticipant.hpp)
find_library(US_FASTRTPS_LIBRARY fastrtps)
find_library(US_FASTCDR_LIBRARY fastcdr)
find_program(US_FASTDDSGEN fastddsgen)
include(CheckLanguage)
check_language(CXX)

# C++ that is not instrumented tells the sanitizers nothing: those builds go without.
if(US_FASTDDS AND US_FASTDDS_INCLUDE AND US_FASTRTPS_LIBRARY AND US_FASTCDR_LIBRARY AND CMAKE_CXX_COMPILER AND NOT US_SANITIZE)
  get_property(us_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT "CXX" IN_LIST us_languages)
    enable_language(CXX)
  endif()
  set(us_cxx_options -Wall -Wextra -Wpedantic ${us_werror} -Wshadow)

  file(GLOB us_fastdds_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/plugins/fastdds/*.cpp)
  add_library(understudy_fastdds MODULE ${us_fastdds_sources})
  set_target_properties(understudy_fastdds PROPERTIES OUTPUT_NAME understudy-fastdds LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins
    CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(understudy_fastdds PRIVATE ${us_cxx_options})
  target_include_directories(understudy_fastdds PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
  target_include_directories(understudy_fastdds SYSTEM PRIVATE ${US_FASTDDS_INCLUDE})
  target_link_libraries(understudy_fastdds PRIVATE ${US_FASTRTPS_LIBRARY} ${US_FASTCDR_LIBRARY})
  install(TARGETS understudy_fastdds LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/understudy)

  # What the tests need is built with them.
  foreach(test bus_actions bus_fastdds bus_services switch_raw meet security nat network_topics network_commands network_graph network_parameters network_services network_simulation)
    if(TARGET e2e_test_${test})
      add_dependencies(e2e_test_${test} understudy_fastdds)
    endif()
  endforeach()
  if(TARGET e2e_test_meet)
    add_executable(meet_fastdds ${CMAKE_SOURCE_DIR}/tests/e2e/meet_fastdds.cpp)
    set_target_properties(meet_fastdds PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/e2e CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
    target_compile_options(meet_fastdds PRIVATE ${us_cxx_options} -O0 -g0)
    target_include_directories(meet_fastdds SYSTEM PRIVATE ${US_FASTDDS_INCLUDE})
    target_link_libraries(meet_fastdds PRIVATE ${US_FASTRTPS_LIBRARY} ${US_FASTCDR_LIBRARY})
    add_dependencies(e2e_test_meet meet_fastdds)
  endif()
  if(TARGET e2e_test_switch_raw)
    add_executable(raw_fastdds ${CMAKE_SOURCE_DIR}/tests/e2e/raw_fastdds.cpp)
    set_target_properties(raw_fastdds PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/e2e CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
    target_compile_options(raw_fastdds PRIVATE ${us_cxx_options} -O0 -g0)
    target_include_directories(raw_fastdds SYSTEM PRIVATE ${US_FASTDDS_INCLUDE})
    target_link_libraries(raw_fastdds PRIVATE ${US_FASTRTPS_LIBRARY} ${US_FASTCDR_LIBRARY})
    add_dependencies(e2e_test_switch_raw raw_fastdds asker_fastdds)
  endif()
  if(TARGET e2e_test_bus_services)
    add_executable(asker_fastdds ${CMAKE_SOURCE_DIR}/tests/e2e/asker_fastdds.cpp)
    set_target_properties(asker_fastdds PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/e2e CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
    target_compile_options(asker_fastdds PRIVATE ${us_cxx_options} -O0 -g0)
    target_include_directories(asker_fastdds SYSTEM PRIVATE ${US_FASTDDS_INCLUDE})
    target_link_libraries(asker_fastdds PRIVATE ${US_FASTRTPS_LIBRARY} ${US_FASTCDR_LIBRARY})
    add_dependencies(e2e_test_bus_services asker_fastdds)
  endif()
  if(TARGET e2e_test_bus_fastdds AND US_PEERS AND US_FASTDDSGEN)
    set(us_peer_dir ${CMAKE_BINARY_DIR}/generated/fastdds)
    file(MAKE_DIRECTORY ${us_peer_dir})
    file(GLOB us_peer_idl CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/idl/*.idl)
    set(us_peer_generated)
    set(us_peer_list "")
    set(us_peer_includes "")
    foreach(idl ${us_peer_idl})
      get_filename_component(package ${idl} NAME_WE)
      list(APPEND us_peer_generated ${us_peer_dir}/${package}.cxx ${us_peer_dir}/${package}PubSubTypes.cxx)
      string(APPEND us_peer_includes "#include \"${package}PubSubTypes.h\"\n")
      # Every struct of the IDL is a topic type; its modules are the package, and msg or srv.
      file(STRINGS ${idl} modules REGEX "^module ")
      list(GET modules 0 module)
      string(REGEX REPLACE "^module +([a-z0-9_]+).*" "\\1" module "${module}")
      list(GET modules 1 kind)
      string(REGEX REPLACE "^module +([a-z0-9_]+).*" "\\1" kind "${kind}")
      file(STRINGS ${idl} structs REGEX "^ *struct ")
      foreach(line ${structs})
        string(REGEX REPLACE "^ *struct +([A-Za-z0-9_]+).*" "\\1" name "${line}")
        string(APPEND us_peer_list "MESSAGE(${module}, ${kind}, ${name})\n")
      endforeach()
    endforeach()
    file(CONFIGURE OUTPUT ${us_peer_dir}/peer_includes.h CONTENT "${us_peer_includes}" @ONLY)
    file(CONFIGURE OUTPUT ${us_peer_dir}/peer_list.h CONTENT "${us_peer_list}" @ONLY)
    set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${us_peer_idl})
    # fastddsgen leaves preprocessed files in /tmp under the names of the IDL files, where builds of other trees overwrite them: it gets a directory
    # of its own. What it writes comes to its place when all of it is there.
    set(us_peer_new ${us_peer_dir}.new)
    set(us_peer_temporary ${us_peer_dir}.temporary)
    add_custom_command(OUTPUT ${us_peer_generated}
      COMMAND ${CMAKE_COMMAND} -E rm -rf ${us_peer_new} ${us_peer_temporary}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${us_peer_new} ${us_peer_temporary}
      COMMAND ${US_FASTDDSGEN} -replace -cs -t ${us_peer_temporary} -d ${us_peer_new} -I ${CMAKE_SOURCE_DIR}/idl ${us_peer_idl} > ${us_peer_dir}/fastddsgen.log
      COMMAND ${CMAKE_COMMAND} -E copy_directory ${us_peer_new} ${us_peer_dir}
      COMMAND ${CMAKE_COMMAND} -E rm -rf ${us_peer_new} ${us_peer_temporary}
      DEPENDS ${us_peer_idl} COMMENT "fastddsgen" VERBATIM)
    add_executable(fastdds_peer ${CMAKE_SOURCE_DIR}/tests/e2e/fastdds_peer.cpp ${us_peer_generated})
    # Speed does not matter here, the time to compile does; code that is not ours may warn as it likes.
    set_target_properties(fastdds_peer PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/e2e
      CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 7)
    set_source_files_properties(${CMAKE_SOURCE_DIR}/tests/e2e/fastdds_peer.cpp PROPERTIES COMPILE_OPTIONS "${us_cxx_options}" SKIP_UNITY_BUILD_INCLUSION ON)
    target_compile_options(fastdds_peer PRIVATE -O0 -g0)
    target_include_directories(fastdds_peer SYSTEM PRIVATE ${us_peer_dir} ${US_FASTDDS_INCLUDE})
    target_link_libraries(fastdds_peer PRIVATE ${US_FASTRTPS_LIBRARY} ${US_FASTCDR_LIBRARY} pthread)
    add_dependencies(e2e_test_bus_fastdds fastdds_peer)
  endif()
elseif(US_FASTDDS AND NOT US_SANITIZE)
  message(STATUS "Fast DDS (libfastrtps-dev) or a C++ compiler is not installed: its plug-in is not built")
endif()

# A plain program of Cyclone DDS for the test of who meets whom, with code of its own that idlc makes of two packages.
if(TARGET e2e_test_meet)
  set(us_meet_dir ${CMAKE_BINARY_DIR}/generated/meet)
  file(MAKE_DIRECTORY ${us_meet_dir})
  set(us_meet_generated)
  foreach(name std_msgs builtin_interfaces)
    add_custom_command(OUTPUT ${us_meet_dir}/${name}.c ${us_meet_dir}/${name}.h
      COMMAND ${US_IDLC} -x final -t -o ${us_meet_dir} ${CMAKE_SOURCE_DIR}/idl/${name}.idl
      DEPENDS ${CMAKE_SOURCE_DIR}/idl/std_msgs.idl ${CMAKE_SOURCE_DIR}/idl/builtin_interfaces.idl VERBATIM)
    list(APPEND us_meet_generated ${us_meet_dir}/${name}.c ${us_meet_dir}/${name}.h)
  endforeach()
  add_executable(meet_cyclone ${CMAKE_SOURCE_DIR}/tests/e2e/meet_cyclone.c ${us_meet_generated})
  set_target_properties(meet_cyclone PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/e2e)
  target_compile_definitions(meet_cyclone PRIVATE _GNU_SOURCE)
  target_include_directories(meet_cyclone SYSTEM PRIVATE ${us_meet_dir})
  target_link_libraries(meet_cyclone PRIVATE PkgConfig::DDS ddsc)
  add_dependencies(e2e_test_meet meet_cyclone)
  add_dependencies(e2e_test_cli_doctor meet_cyclone)
endif()

# One that asks and answers as rmw_cyclonedds does.
if(TARGET e2e_test_bus_services)
  set(us_asker_dir ${CMAKE_BINARY_DIR}/generated/asker)
  file(MAKE_DIRECTORY ${us_asker_dir})
  add_custom_command(OUTPUT ${us_asker_dir}/asker_cyclone.c ${us_asker_dir}/asker_cyclone.h
    COMMAND ${US_IDLC} -x final -t -o ${us_asker_dir} ${CMAKE_SOURCE_DIR}/tests/e2e/asker_cyclone.idl
    DEPENDS ${CMAKE_SOURCE_DIR}/tests/e2e/asker_cyclone.idl VERBATIM)
  add_executable(asker_cyclone ${CMAKE_SOURCE_DIR}/tests/e2e/asker_cyclone.c ${us_asker_dir}/asker_cyclone.c ${us_asker_dir}/asker_cyclone.h)
  set_target_properties(asker_cyclone PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/e2e)
  target_compile_definitions(asker_cyclone PRIVATE _GNU_SOURCE)
  target_include_directories(asker_cyclone SYSTEM PRIVATE ${us_asker_dir})
  target_link_libraries(asker_cyclone PRIVATE PkgConfig::DDS ddsc)
  add_dependencies(e2e_test_bus_services asker_cyclone)
endif()

# Another, with types that Understudy does not know.
if(TARGET e2e_test_switch_raw)
  set(us_raw_dir ${CMAKE_BINARY_DIR}/generated/raw)
  file(MAKE_DIRECTORY ${us_raw_dir})
  add_custom_command(OUTPUT ${us_raw_dir}/raw.c ${us_raw_dir}/raw.h
    COMMAND ${US_IDLC} -x final -t -o ${us_raw_dir} ${CMAKE_SOURCE_DIR}/tests/e2e/raw.idl
    DEPENDS ${CMAKE_SOURCE_DIR}/tests/e2e/raw.idl VERBATIM)
  add_executable(raw_cyclone ${CMAKE_SOURCE_DIR}/tests/e2e/raw_cyclone.c ${us_raw_dir}/raw.c)
  set_target_properties(raw_cyclone PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/e2e)
  target_compile_definitions(raw_cyclone PRIVATE _GNU_SOURCE)
  target_include_directories(raw_cyclone SYSTEM PRIVATE ${us_raw_dir})
  target_link_libraries(raw_cyclone PRIVATE PkgConfig::DDS ddsc)
  add_dependencies(e2e_test_switch_raw raw_cyclone)
endif()
