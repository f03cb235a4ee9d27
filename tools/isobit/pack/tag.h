// What a packed file says of itself. A reader that does not know every word of it must refuse the file: weights in
// another order give wrong results without an error.
#pragma once

#include <isobit/nvfp4.h>

#include <map>
#include <string>

#include "checkpoint/status.h"

namespace isobit::cli {

using Tag = std::map<std::string, std::string>;

Tag make_tag(isobit_nvfp4_layout layout, const std::string& gelu, bool prescaled);

// The tag of a packed file, if it is one that this version reads.
checkpoint::Result<Tag> read_tag(const std::string& path);

const char* layout_name(isobit_nvfp4_layout layout);

}  // namespace isobit::cli
