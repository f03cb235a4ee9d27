#include "ptx/engine/in_flight.h"

#include <algorithm>

namespace isobit::ptx {

bool InFlightRegisters::touched_by(const Instruction& i, bool is_copy) {
  for (Operation& o : operations_) {
    const auto holds = [&](Slot row) { return std::find(o.rows.begin(), o.rows.end(), row) != o.rows.end(); };
    if (is_copy) {
      const Slot to = i.rows[0], from = i.rows[1];
      const bool moved = holds(from);
      std::erase(o.rows, to);
      if (moved) o.rows.push_back(to);
    } else if (std::any_of(i.rows.begin(), i.rows.end(), holds)) {
      return true;
    }
  }
  return false;
}

}  // namespace isobit::ptx
