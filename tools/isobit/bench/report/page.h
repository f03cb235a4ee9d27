// Result lines as one page that stands alone: tables and plots, no script, no request to anywhere.
#pragma once

#include <string>

#include "bench/report/lines.h"

namespace isobit::cli {

std::string page_of(const ResultLines& results);

// Both functions throw std::invalid_argument if something cannot be written.
void write_page(const std::string& path, const ResultLines& results);
// Every plot as a file NAME-ratio.svg or NAME-speed.svg in a folder, which is made; NAME is the group's.
void write_plots(const std::string& folder, const ResultLines& results);

}  // namespace isobit::cli
