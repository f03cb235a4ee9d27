#pragma once

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>

#include "checkpoint/status.h"

namespace isobit::checkpoint {

// Whether all bytes went to the file. None may have a null address, which fwrite does not take.
bool write_bytes(std::span<const std::byte> bytes, std::FILE* file);

// Writes the parts one after the other. The file appears under `path` only when it is complete: the bytes go to
// path + ".partial" first, so a failed run leaves an older file as it was.
Status write_file(const std::string& path, std::span<const std::span<const std::byte>> parts);

}  // namespace isobit::checkpoint
