# From idl/*.idl: the structs and topic descriptors that Cyclone's idlc makes, and the tables that tools/idl_types.c makes.
#
#   us_message_sources   generated C for the library
#   us_public_dir        where the public header understudy/messages.h is made
#   us_message_headers   target that makes the generated headers alone, for tools that read the source without building it
#
# No type information goes into the descriptors (idlc -t): then readers and writers match by the name of the type, as ROS 2 nodes of all releases do,
# and the layout of ros_discovery_info before Iron can carry the same name as today's.
find_program(US_IDLC idlc REQUIRED)

set(us_messages_dir ${CMAKE_BINARY_DIR}/generated/messages)
set(us_public_dir ${CMAKE_BINARY_DIR}/generated/include)
file(MAKE_DIRECTORY ${us_messages_dir}/wire ${us_public_dir}/understudy)
file(GLOB us_idl_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/idl/*.idl)

set(us_message_sources)
set(us_message_headers)
foreach(idl ${us_idl_files})
  get_filename_component(name ${idl} NAME_WE)
  set(outputs ${us_messages_dir}/${name}.c ${us_messages_dir}/${name}.h)
  # One file includes others, and there are few: all of them are made again when one changes.
  add_custom_command(OUTPUT ${outputs} COMMAND ${US_IDLC} -x final -t -o ${us_messages_dir} ${idl}
    DEPENDS ${us_idl_files} COMMENT "idlc ${name}.idl" VERBATIM)
  list(APPEND us_message_sources ${us_messages_dir}/${name}.c)
  list(APPEND us_message_headers ${us_messages_dir}/${name}.h)
endforeach()
# That code is not ours: its warnings are its own matter. The list of messages gives its symbols our prefix.
set_source_files_properties(${us_message_sources} PROPERTIES COMPILE_OPTIONS "-w;-include;${us_messages_dir}/wire/message_list.h")

# These run while building, so they take none of the flags that decide where the library runs.
foreach(tool idl_types ros_package)
  add_executable(${tool} tools/${tool}.c tools/idl_read.c)
  target_compile_definitions(${tool} PRIVATE _GNU_SOURCE)
  target_include_directories(${tool} PRIVATE src)
  target_compile_options(${tool} PRIVATE -Wall -Wextra -Wpedantic ${us_werror} -Wshadow -Wstrict-prototypes -Wmissing-prototypes)
endforeach()
add_custom_command(OUTPUT ${us_messages_dir}/wire/message_list.h ${us_messages_dir}/message_table.c ${us_public_dir}/understudy/messages.h
  COMMAND idl_types ${us_messages_dir}/wire/message_list.h ${us_messages_dir}/message_table.c ${us_public_dir}/understudy/messages.h ${us_idl_files}
  DEPENDS idl_types ${us_idl_files} COMMENT "Tables of the messages" VERBATIM)
list(APPEND us_message_sources ${us_messages_dir}/message_table.c)
list(APPEND us_message_headers ${us_messages_dir}/wire/message_list.h ${us_public_dir}/understudy/messages.h)

add_custom_target(us_message_headers DEPENDS ${us_message_headers})
# For the library, and for tests and benchmarks that include wire/messages.h.
include_directories(SYSTEM ${us_messages_dir})
include_directories(${us_public_dir})

# The ROS 2 package of our own messages is part of the source, so that a workspace needs no build of ours. This makes it anew.
add_custom_target(us_ros_package
  COMMAND ros_package understudy_msgs ${PROJECT_VERSION} ${CMAKE_SOURCE_DIR}/ros/understudy_msgs ${us_idl_files}
  COMMENT "ros/understudy_msgs" VERBATIM)
