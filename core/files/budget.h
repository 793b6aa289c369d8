#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <braid/core/error.h>

namespace braid {

/// How deep the parts of a foreign file may nest: code that reads them recurses as deep.
inline constexpr std::size_t kMaxNesting = 64;

/// Throws FileError that starts with `where` if the brackets of a JSON text nest deeper than kMaxNesting or a byte is
/// 0, which parsers take for its end. Every JSON text that another process wrote passes through it before it is parsed.
void check_nesting(const std::string& where, std::string_view json);

/// The work that a foreign file or text may cause, in units such as bytes, ids or steps: it follows from the size of
/// the input, where 64 KiB count for a smaller one. Readers spend the units before they allocate or compute them.
class Budget {
 public:
  /// For an input of `bytes` bytes.
  explicit Budget(std::uint64_t bytes, std::uint64_t units_per_byte = 1)
      : bytes_(bytes), most_(std::max<std::uint64_t>(bytes, 65536) * units_per_byte) {}

  /// Spends some units. Returns false if all that were spent are more than there are.
  bool spend(std::uint64_t amount) {
    spent_ += std::min(amount, ~spent_);  // never wraps around
    return spent_ <= most_;
  }
  /// The same, but throws E: `where: a size of 40 bytes allows 65536 ids but there are 65600`.
  template <class E = FileError>
  void spend(std::uint64_t amount, const std::string& where, const char* units) {
    check<E>(spend(amount), "{}: a size of {} bytes allows {} {} but there are {}", where, bytes_, most_, units,
             spent_);
  }

 private:
  std::uint64_t bytes_, most_, spent_ = 0;
};

}  // namespace braid
