// Plots of result lines as SVG: no script, no font, no request to anywhere. The one place that draws.
#pragma once

#include <string>
#include <vector>

#include "bench/report/lines.h"

namespace isobit::cli {

// Median times of one kind of work against those of its peers, a mark per peer; empty without a peer.
std::string ratio_plot(const ResultGroup& group);

// What the kernels reach, as bars from 0 with a whisker over the middle 60 % of the samples: TB/s where a byte feeds
// few operations, TFLOP/s elsewhere; empty where neither is known.
std::string speed_plot(const ResultGroup& group);

std::string escape_markup(const std::string& text);

}  // namespace isobit::cli
