#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <braid/core/platform/process.h>
#include <braid/core/shape.h>

#include "cost.h"

/// libFuzzer calls it with every input; each target defines it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace braid::fuzz {

/// An input may be refused with an Error. Any other exception ends the process, which libFuzzer reports as a crash.
template <class F>
int accept_or_refuse(F use) {
  try {
    use();
  } catch (const Error&) {
  }
  return 0;
}

/// The same for an input of `size` bytes, which costs no more than in proportion to its size: for targets that read and
/// do not compute.
template <class F>
int accept_or_refuse(std::size_t size, F use) {
  const Cost cost(size);
  return accept_or_refuse(use);
}

/// Ends the process, which libFuzzer reports as a crash, unless an invariant holds.
inline void require(bool kept, const char* promise) {
  if (kept) return;
  fmt::print(stderr, "broken: {}\n", promise);
  std::abort();
}

inline std::string text_of(const std::uint8_t* data, std::size_t size) { return {data, data + size}; }

/// A file of this process that holds the input, in the folder for temporary files.
inline std::filesystem::path file_of(std::span<const std::uint8_t> input, const char* ending) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("{}{}", platform::process_id(), ending);
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
  return path;
}

/// Decisions drawn from an input, from its start; zeros when it is used up.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}

  bool empty() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const std::uint8_t value = rest_.front();
    rest_ = rest_.subspan(1);
    return value;
  }
  template <class T>
  T bits() {
    T value{};
    std::array<std::uint8_t, sizeof(T)> raw;
    std::ranges::generate(raw, [&] { return byte(); });
    std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }
  /// In [low, high].
  int in(int low, int high) { return low + byte() % (high - low + 1); }
  /// Of up to four axes with up to five elements each.
  Shape shape() {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(in(0, 4)));
    std::ranges::generate(sizes, [&] { return in(0, 5); });
    return Shape(sizes);
  }
  std::string rest() { return {rest_.begin(), rest_.end()}; }

 private:
  std::span<const std::uint8_t> rest_;
};

}  // namespace braid::fuzz
