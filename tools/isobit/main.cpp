#include <isobit/isobit.h>

#include <cstdio>

int main() {
  std::printf("%s\n", isobit_build_info());
  return 0;
}
