// A self-test for a person: what held, what did not, what could not run and why.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "selftest/selftest.h"

namespace isobit::cli {

// `report`: describe_selftest of the result.
std::string summary_of(const SelftestResult& result, const nlohmann::ordered_json& report);

}  // namespace isobit::cli
