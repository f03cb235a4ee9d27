# Fails when an object file compiled for AVX-512 defines a symbol that the linker may choose for other files too (an
# inline function or a template instance): a processor without AVX-512 would then meet such instructions elsewhere.
# Variables: NM, OBJECTS.
set(checked 0)
foreach(object IN LISTS OBJECTS)
  if(object MATCHES "/avx512_")
    execute_process(COMMAND ${NM} -C --defined-only ${object} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL "[^\n]* [WwVvu] [^\n]*" shared "${symbols}")
    if(shared)
      message(FATAL_ERROR "${object}: symbols shared with other files: ${shared}")
    endif()
    math(EXPR checked "${checked} + 1")
  endif()
endforeach()
if(checked EQUAL 0)
  message(FATAL_ERROR "no object file for AVX-512 among: ${OBJECTS}")
endif()
