# Install tree: headers, libraries, CMake package, pkg-config file, command line. Every path in it is
# relative, so the prefix may be moved.
include(CMakePackageConfigHelpers)
set(ISOBIT_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Isobit)
set(ISOBIT_PC_DIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Two export sets: users of the shared library need none of the packages that the static one links.
install(TARGETS isobit_shared EXPORT IsobitTargets)
install(TARGETS isobit_static EXPORT IsobitStaticTargets)
if(TARGET isobit_nccl)
  set_target_properties(isobit_nccl PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS isobit_nccl EXPORT IsobitTargets)
endif()
install(EXPORT IsobitTargets NAMESPACE Isobit:: DESTINATION ${ISOBIT_CMAKE_DIR})
install(EXPORT IsobitStaticTargets NAMESPACE Isobit:: DESTINATION ${ISOBIT_CMAKE_DIR})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/IsobitConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/IsobitConfig.cmake INSTALL_DESTINATION ${ISOBIT_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/IsobitConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/IsobitConfig.cmake ${PROJECT_BINARY_DIR}/IsobitConfigVersion.cmake
        DESTINATION ${ISOBIT_CMAKE_DIR})

file(RELATIVE_PATH ISOBIT_PC_TO_PREFIX /prefix/${ISOBIT_PC_DIR} /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/isobit.pc.in ${PROJECT_BINARY_DIR}/isobit.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/isobit.pc DESTINATION ${ISOBIT_PC_DIR})

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/isobit DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(ISOBIT_BUILD_CLI)
  set_target_properties(isobit_cli PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS isobit_cli)
endif()

# A Python wheel holds the shared library alone, under one name: wheels have no symbolic links.
install(FILES $<TARGET_FILE:isobit_shared> DESTINATION . RENAME libisobit.so COMPONENT python EXCLUDE_FROM_ALL)
