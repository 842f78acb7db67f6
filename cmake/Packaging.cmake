# SPDX-License-Identifier: BSD-2-Clause
# cmake --install and Debian packages. Three components, three packages:
#   weft         programs, the libraries that stand in for the system's (in a folder of their own, so
#                that only `weft run` uses them), manual pages, completions, fault recipes
#   libweft-dev  headers, libweft and pkg-config files
#   weft-ugni    the uGNI libraries and headers
include(GNUInstallDirs)
set(private_libs ${CMAKE_INSTALL_LIBDIR}/weft)

install(TARGETS weft weftd RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT weft)
install(TARGETS weft-verbs RUNTIME DESTINATION ${private_libs} COMPONENT weft)
install(TARGETS ibverbs LIBRARY DESTINATION ${private_libs} COMPONENT weft NAMELINK_SKIP)
foreach(target weft-preload)
  if(TARGET ${target})
    get_target_property(type ${target} TYPE)
    if(type MATCHES "SHARED|MODULE")
      install(TARGETS ${target} LIBRARY DESTINATION ${private_libs} COMPONENT weft NAMELINK_SKIP)
    endif()
  endif()
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT weft)
install(FILES ${PROJECT_SOURCE_DIR}/docs/errors.md ${PROJECT_SOURCE_DIR}/docs/status.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT weft)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/faults
        DESTINATION ${CMAKE_INSTALL_DATADIR}/weft COMPONENT weft)
foreach(section 1 5 8)
  file(GLOB pages ${PROJECT_SOURCE_DIR}/man/*.${section})
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT weft)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/scripts/completion/weft.bash RENAME weft
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT weft)
install(FILES ${PROJECT_SOURCE_DIR}/scripts/completion/_weft
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT weft)
install(FILES ${PROJECT_SOURCE_DIR}/scripts/completion/weft.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT weft)

foreach(folder weft iba rdma arbel)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/${folder} COMPONENT libweft-dev
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft)
endforeach()
foreach(target libweft)
  if(TARGET ${target})
    install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT weft
            NAMELINK_COMPONENT libweft-dev)
  endif()
endforeach()
# Right wherever the package is unpacked.
file(RELATIVE_PATH PC_UP ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/weft.pc.in ${CMAKE_BINARY_DIR}/lib/pkgconfig/weft.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/lib/pkgconfig/weft.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libweft-dev)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME weft)
set(CPACK_PACKAGE_CONTACT "the Weft maintainers <maintainers@weft.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "RDMA without the hardware")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL weft libweft-dev weft-ugni)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Ours stand beside the system's: what they need must not be looked up in our private folder.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib)
set(CPACK_DEBIAN_WEFT_PACKAGE_NAME weft)
set(CPACK_DEBIAN_WEFT_PACKAGE_SECTION net)
set(CPACK_DEBIAN_WEFT_PACKAGE_SUGGESTS "ibverbs-utils, perftest, rdmacm-utils, tshark")
set(CPACK_DEBIAN_LIBWEFT-DEV_PACKAGE_NAME libweft-dev)
set(CPACK_DEBIAN_LIBWEFT-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBWEFT-DEV_PACKAGE_DEPENDS "weft (= ${PROJECT_VERSION}), libibverbs-dev")
set(CPACK_DEBIAN_WEFT-UGNI_PACKAGE_NAME weft-ugni)
set(CPACK_DEBIAN_WEFT-UGNI_PACKAGE_SECTION net)
set(CPACK_DEBIAN_WEFT-UGNI_PACKAGE_DEPENDS "weft (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_COMPONENT_WEFT_DESCRIPTION
    "A software RDMA adapter in user space: verbs programs run without RDMA hardware.")
set(CPACK_COMPONENT_LIBWEFT-DEV_DESCRIPTION "Headers of Weft: async verbs, ib_cm, Arbel entries.")
set(CPACK_COMPONENT_WEFT-UGNI_DESCRIPTION "The uGNI interface over Weft: libugni, libpmi and kin.")
include(CPack)
