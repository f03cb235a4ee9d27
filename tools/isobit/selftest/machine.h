// What a self-test says of the machine and its software. Nothing names the machine or its user.
#pragma once

#include <nlohmann/json.hpp>

#include "device.h"

namespace isobit::cli {

nlohmann::ordered_json describe_machine(Place place);

}  // namespace isobit::cli
