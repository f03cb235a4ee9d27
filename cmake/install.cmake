# Install tree: headers, libraries, CMake package, pkg-config file, command line. Everything relative, so the prefix
# may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS isobit_shared isobit_static EXPORT IsobitTargets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/isobit DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(ISOBIT_BUILD_CLI)
  set_target_properties(isobit_cli PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS isobit_cli)
endif()
