// The module braid: `import braid;` in place of `#include <braid/braid.h>`, without its macros, of which there are none.
module;
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

export module braid;

// The headers above are guarded, so that these add braid's own names alone. extern "C++" keeps the names those of the
// libraries, which were compiled without the module.
export extern "C++" {
#include <braid/braid.h>
}
