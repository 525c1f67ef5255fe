# cmake --install: the libraries, the headers, the program, the schema, and what pkg-config and find_package need.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(us_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Understudy)

install(TARGETS understudy understudy_static EXPORT UnderstudyTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT UnderstudyTargets NAMESPACE Understudy:: DESTINATION ${us_cmake_dir})
install(DIRECTORY include/understudy DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${us_public_dir}/understudy/messages.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/understudy)
if(TARGET understudy_program)
  install(TARGETS understudy_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES schema/scene.xsd DESTINATION ${CMAKE_INSTALL_DATADIR}/understudy/schema)
install(FILES viewers/foxglove.json DESTINATION ${CMAKE_INSTALL_DATADIR}/understudy/viewers)
install(DIRECTORY ros/understudy_msgs DESTINATION ${CMAKE_INSTALL_DATADIR}/understudy/ros)

configure_file(cmake/understudy.pc.in understudy.pc.in @ONLY)
# The prefix is known only when installing (cmake --install --prefix), so the file is finished then.
install(CODE "
  file(READ \"${CMAKE_CURRENT_BINARY_DIR}/understudy.pc.in\" text)
  string(REGEX REPLACE \"^prefix=[^\\n]*\" \"prefix=\${CMAKE_INSTALL_PREFIX}\" text \"\${text}\")
  file(WRITE \"${CMAKE_CURRENT_BINARY_DIR}/understudy.pc\" \"\${text}\")
")
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/understudy.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

configure_package_config_file(cmake/UnderstudyConfig.cmake.in UnderstudyConfig.cmake INSTALL_DESTINATION ${us_cmake_dir})
write_basic_package_version_file(UnderstudyConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/UnderstudyConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/UnderstudyConfigVersion.cmake
  DESTINATION ${us_cmake_dir})
