/* A C user of the installed library. */
#include <isobit/isobit.h>
#include <isobit/linear_logp.h>
#include <stdio.h>

int main(void) {
  isobit_linear_logp_args args = ISOBIT_LINEAR_LOGP_ARGS_INIT;
  size_t minimum = 0;
  size_t recommended = 0;
  const isobit_status status = isobit_linear_logp_workspace(&args, &minimum, &recommended);
  printf("%s\n%s: %s\n", isobit_build_info(), isobit_status_string(status), isobit_last_error());
  return status == ISOBIT_INVALID_ARGUMENT ? 0 : 1;
}
