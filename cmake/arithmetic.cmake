# The flags that the bit contract rests on (docs/bit-contract.md). CI greps the compile commands for them.
#  host:   no contraction that the source does not spell, FMA hardware as the baseline
#  device: IEEE-754 division and square root, subnormals kept, no contraction
set(ISOBIT_HOST_ARITHMETIC -ffp-contract=off -fno-fast-math -fno-math-errno)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND ISOBIT_HOST_ARITHMETIC -march=x86-64-v3)
endif()
set(ISOBIT_DEVICE_ARITHMETIC -fmad=false -ftz=false -prec-div=true -prec-sqrt=true)

set(ISOBIT_HOST_WARNINGS -Wall -Wextra -Wshadow -Wvla)
set(ISOBIT_DEVICE_WARNINGS -Xptxas=-warn-spills,-warn-lmem-usage)
if(ISOBIT_WERROR)
  list(APPEND ISOBIT_HOST_WARNINGS -Werror)
  set(ISOBIT_DEVICE_WARNINGS -Werror=all-warnings -Xptxas=-warn-spills,-warn-lmem-usage,-Werror)
endif()
