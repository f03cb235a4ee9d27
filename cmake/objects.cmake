# Building blocks of the tree: OBJECT libraries that end up in one shared library, and tests.

# Flags and include paths that every host target of the library shares.
function(isobit_configure_host target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${ISOBIT_HOST_ARITHMETIC} ${ISOBIT_HOST_WARNINGS}>)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
                                               ${PROJECT_BINARY_DIR}/src)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden
                        VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON)
  if(ISOBIT_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${ISOBIT_SANITIZE}
                                             -fno-sanitize-recover=all -fno-omit-frame-pointer>)
    target_link_options(${target} PUBLIC -fsanitize=${ISOBIT_SANITIZE})
  endif()
  if(OpenMP_CXX_FOUND)
    target_link_libraries(${target} PRIVATE OpenMP::OpenMP_CXX)
  endif()
endfunction()

# isobit_compile_alone(SOURCES...): these share names with a neighbour in their folder, see isobit_compile_together.
function(isobit_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# isobit_compile_together(TARGET): with ISOBIT_UNITY the sources of a folder are one translation unit, so what their
# headers hold is compiled once.
function(isobit_compile_together target)
  if(NOT ISOBIT_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(folder ${source} DIRECTORY)
    string(MAKE_C_IDENTIFIER "${folder}" group)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${group}")
  endforeach()
endfunction()

# isobit_add_objects(NAME SOURCES...): host sources that become part of the library.
function(isobit_add_objects name)
  add_library(${name} OBJECT ${ARGN})
  isobit_configure_host(${name})
  set_property(GLOBAL APPEND PROPERTY ISOBIT_OBJECT_LIBRARIES ${name})
endfunction()

# Keeps of a kernel's architectures those that the user asked for (ISOBIT_CUDA_ARCHS).
function(isobit_filter_archs out)
  set(kept "")
  foreach(arch IN LISTS ARGN)
    string(REGEX MATCH "^[0-9]+" number ${arch})
    if(ISOBIT_CUDA_ARCHS STREQUAL "all" OR number IN_LIST ISOBIT_CUDA_ARCHS)
      list(APPEND kept ${arch})
    endif()
  endforeach()
  set(${out} ${kept} PARENT_SCOPE)
endfunction()

# Flags shared by every translation unit with device code.
function(isobit_configure_device target)
  target_compile_options(
    ${target}
    PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20
            --expt-relaxed-constexpr
            -lineinfo
            -static-global-template-stub=false  # the stub's symbol then names the PTX entry
            ${ISOBIT_DEVICE_ARITHMETIC}
            ${ISOBIT_DEVICE_WARNINGS}
            -Xfatbin=-compress-all
            -Xcompiler=-ffp-contract=off>)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
                                               ${PROJECT_BINARY_DIR}/src)
  set_target_properties(${target} PROPERTIES CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                        POSITION_INDEPENDENT_CODE ON CUDA_RUNTIME_LIBRARY Static)
endfunction()

# Keeps of the architectures those whose PTX text the tests take: `texts`, or all where that leaves nothing.
function(isobit_text_archs out archs texts)
  set(kept ${archs})
  list(FILTER kept INCLUDE REGEX "^(${texts})$")
  if(NOT texts OR NOT kept)
    set(kept ${archs})
  endif()
  set(${out} ${kept} PARENT_SCOPE)
endfunction()

# isobit_add_kernel(OP FOLDER SOURCES a.cu ... ARCHS 90a ... [TEXTS "90|110"]): one OBJECT library per operator and
# architecture folder, and the PTX text of every source in ${PROJECT_BINARY_DIR}/ptx/OP/FOLDER (what the interpreter
# runs), of every architecture or of those that tests name.
function(isobit_add_kernel op folder)
  cmake_parse_arguments(arg "" "TEXTS" "SOURCES;ARCHS" ${ARGN})
  isobit_filter_archs(archs ${arg_ARCHS})
  if(NOT archs)
    message(FATAL_ERROR "isobit: ISOBIT_CUDA_ARCHS=${ISOBIT_CUDA_ARCHS} leaves nothing of ${op}/${folder} (${arg_ARCHS})")
  endif()
  set(name isobit_${op}_${folder})
  add_library(${name} OBJECT ${arg_SOURCES})
  isobit_configure_device(${name})
  list(TRANSFORM archs APPEND -real OUTPUT_VARIABLE real_archs)
  set_target_properties(${name} PROPERTIES CUDA_ARCHITECTURES "${real_archs}")
  set_property(GLOBAL APPEND PROPERTY ISOBIT_OBJECT_LIBRARIES ${name})
  isobit_text_archs(archs "${archs}" "${arg_TEXTS}")
  isobit_add_ptx(${name}_ptx ${PROJECT_BINARY_DIR}/ptx/${op}/${folder} SOURCES ${arg_SOURCES} ARCHS ${archs})
endfunction()

# isobit_add_ptx(TARGET DIRECTORY SOURCES a.cu ... ARCHS 90a ... [INCLUDES folder ...]): DIRECTORY/a.90a.ptx for every
# source and architecture.
function(isobit_add_ptx target directory)
  cmake_parse_arguments(arg "" "" "SOURCES;ARCHS;INCLUDES" ${ARGN})
  list(TRANSFORM arg_INCLUDES PREPEND -I)
  set(outputs "")
  foreach(source IN LISTS arg_SOURCES)
    get_filename_component(absolute ${source} ABSOLUTE)
    get_filename_component(stem ${source} NAME_WE)
    foreach(arch IN LISTS arg_ARCHS)
      set(output ${directory}/${stem}.${arch}.ptx)
      add_custom_command(
        OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${directory}
        COMMAND ${CMAKE_CUDA_COMPILER} -ptx -arch=compute_${arch} -std=c++20 --expt-relaxed-constexpr -lineinfo
                ${ISOBIT_DEVICE_ARITHMETIC} -O3 -DNDEBUG -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src
                -I${PROJECT_BINARY_DIR}/src ${arg_INCLUDES} -MD -MF ${output}.d -o ${output} ${absolute}
        DEPENDS ${absolute}
        DEPFILE ${output}.d
        VERBATIM)
      list(APPEND outputs ${output})
    endforeach()
  endforeach()
  add_custom_target(${target} DEPENDS ${outputs})
endfunction()

# isobit_add_test(NAME SOURCES ... [LIBRARIES ...] [GPU]): a GoogleTest program that sees the library's internals. GPU
# tests are labelled gpu and run by `make test-gpu` only.
function(isobit_add_test name)
  cmake_parse_arguments(arg "GPU" "" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT ISOBIT_BUILD_TESTS)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  isobit_configure_host(${name})
  isobit_compile_together(${name})
  target_compile_definitions(${name} PRIVATE ISOBIT_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                             ISOBIT_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE isobit_static ${arg_LIBRARIES} GTest::gtest GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  if(arg_GPU)
    isobit_configure_device(${name})
    set_target_properties(${name} PROPERTIES CUDA_ARCHITECTURES 90a-real)
    set_tests_properties(${name} PROPERTIES LABELS gpu)
  endif()
endfunction()
