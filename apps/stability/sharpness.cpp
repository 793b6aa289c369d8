#include "sharpness.h"

namespace braid::stability {

nlohmann::ordered_json to_json(const Sharpness& sharpness) {
  return {{"largest", sharpness.largest}, {"preconditioned", sharpness.preconditioned}, {"limit", sharpness.limit}};
}

}  // namespace braid::stability
