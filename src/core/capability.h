// Compute capabilities, as major * 10 + minor: what a row of the table of kernels needs, and what a build has code for.
#pragma once

#include <cstdio>
#include <initializer_list>

namespace isobit {

// The upper end of rows that have code from 8.0 on: that for 12.0 and 12.1 runs on every device of major version 12.
inline constexpr int kLatestCapability = 129;

// "9.0", or "10.0 to 11.0".
struct CapabilityText {
  char text[32];
  CapabilityText(int least, int most) {
    const int written = std::snprintf(text, sizeof text, "%d.%d", least / 10, least % 10);
    if (most == least) return;
    std::snprintf(text + written, sizeof text - static_cast<size_t>(written), " to %d.%d", most / 10, most % 10);
  }
};

// Machine code for a compute capability runs on devices of the same major version from its minor version on.
constexpr bool has_code_for(int capability, std::initializer_list<int> built) {
  for (const int of : built) {
    if (of / 10 == capability / 10 && of <= capability) return true;
  }
  return false;
}

// Whether one of the numbers of a row's architectures, "90a" or "100f, 103a", is among them.
inline bool names_any(const char* architectures, std::initializer_list<int> built) {
  for (const char* at = architectures; *at != '\0';) {
    int number = 0;
    for (; *at >= '0' && *at <= '9'; ++at) number = number * 10 + (*at - '0');
    for (const int of : built) {
      if (of == number) return true;
    }
    if (*at != '\0') ++at;
  }
  return false;
}

}  // namespace isobit
