#include <braid/core/files/detail/npy_format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include <braid/core/files/detail/elements.h>

namespace braid::detail {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::uint64_t kLongestHeader = 1 << 20;  // numpy's own limit is 10,000 bytes

/// The types of elements by their names in headers, in the order of StoredType, and those of DType first.
constexpr std::array<std::string_view, 12> kTypes{"<f4", "<f8", "<i4", "<f2", "|b1", "|i1",
                                                  "|u1", "<i2", "<u2", "<u4", "<i8", "<u8"};

/// The dictionary of a header.
struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

/// Reads a header: the literal of a Python dictionary with the keys descr, fortran_order and shape.
class Parser {
 public:
  Parser(const std::string& where, std::string_view text) : where_(where), whole_(text), rest_(text) {}

  Header parse() {
    std::map<std::string, bool> seen;
    Header header;
    expect("{");
    while (!accept("}")) {
      const std::string key = quoted();
      expect(":");
      if (key == "descr")
        header.descr = quoted();
      else if (key == "fortran_order")
        header.fortran_order = boolean();
      else if (key == "shape")
        header.shape = shape();
      else
        fail();
      if (std::exchange(seen[key], true)) fail();
      if (!accept(",") && !rest_.starts_with("}")) fail();
    }
    skip_space();
    if (seen.size() != 3 || !rest_.empty()) fail();
    return header;
  }

 private:
  [[noreturn]] void fail() const {
    throw FileError(
        fmt::format("{}: the header must be {{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}} or "
                    "the like but is {}",
                    where_, excerpt(whole_)));
  }

  void skip_space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size())); }

  bool accept(std::string_view token) {
    skip_space();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail();
  }

  std::string quoted() {
    const char quote = accept("'") ? '\'' : accept("\"") ? '"' : '\0';
    const std::size_t end = quote == '\0' ? rest_.npos : rest_.find(quote);
    if (end == rest_.npos) fail();
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }

  bool boolean() {
    if (accept("True")) return true;
    expect("False");
    return false;
  }

  std::int64_t integer() {
    skip_space();
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value < 0) fail();
    rest_.remove_prefix(stop - rest_.data());
    accept("L");  // Python 2's suffix
    return value;
  }

  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> sizes;
    expect("(");
    while (!accept(")")) {
      sizes.push_back(integer());
      if (!accept(",") && (sizes.size() == 1 || !rest_.starts_with(")"))) fail();  // (3) is a number
    }
    return sizes;
  }

  const std::string& where_;
  std::string_view whole_, rest_;
};

/// The dictionary, and the number of bytes that follow it.
std::pair<Header, std::uint64_t> read_header(const NpySource& source) {
  const auto require_bytes = [&](std::uint64_t bytes) {
    check<FileError>(source.size >= bytes, "{}: expected at least {} bytes but there are {}", source.where, bytes,
                     source.size);
  };
  require_bytes(10);
  std::array<char, 8> start;
  source.read(start.data(), start.size());
  check<FileError>(std::string_view(start.data(), kMagic.size()) == kMagic,
                   "{}: is not a .npy file: it must begin with {}", source.where, excerpt(kMagic));
  const int version = start[6];
  check<FileError>(version >= 1 && version <= 3 && start[7] == 0, "{}: the format must be 1.0, 2.0 or 3.0 but is {}.{}",
                   source.where, version, int{start[7]});
  const std::uint64_t length_bytes = version == 1 ? 2 : 4;
  require_bytes(8 + length_bytes);
  std::uint64_t length = 0;
  source.read(&length, length_bytes);
  const std::uint64_t before = 8 + length_bytes, most = std::min(source.size - before, kLongestHeader);
  check<FileError>(length <= most, "{}: the header must take at most {} bytes but takes {}", source.where, most,
                   length);
  std::string text(length, ' ');
  source.read(text.data(), length);
  return {Parser(source.where, text).parse(), source.size - before - length};
}

}  // namespace

Tensor read_npy(const NpySource& source) {
  const auto [header, bytes] = read_header(source);
  const Shape shape = checked_shape(source.where, header.shape);
  const auto* descr = std::ranges::find(kTypes, header.descr);
  check<FileError>(descr != kTypes.end(), "{}: dtype must be one of {} but is '{}'", source.where,
                   fmt::join(kTypes, ", "), excerpt(header.descr));
  const auto type = static_cast<StoredType>(descr - kTypes.begin());
  const std::uint64_t expected = static_cast<std::uint64_t>(shape.numel()) * (facts(type).bits / 8);
  check<FileError>(bytes == expected, "{}: {} {} must take {} bytes but there are {}", source.where, *descr, shape,
                   expected, bytes);
  const std::string what = source.where + ": integers";
  if (!header.fortran_order) return read_stored(source, type, shape, what);
  const std::vector<std::int64_t> sizes(header.shape.rbegin(), header.shape.rend());
  std::vector<int> axes(sizes.size());
  std::iota(axes.rbegin(), axes.rend(), 0);
  return read_stored(source, type, Shape(sizes), what).permute(axes).contiguous();
}

std::string npy_header(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  check_dtype(tensor.dtype() != DType::bf16, "save_npy: NumPy has no bf16; convert to f32");
  const std::string_view descr = kTypes[static_cast<std::size_t>(tensor.dtype())];
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descr,
                                 fmt::join(shape.begin(), shape.end(), ", "), shape.rank() == 1 ? "," : "");
  text.resize((10 + text.size() + 64) / 64 * 64 - 11, ' ');
  text += '\n';
  const auto length = static_cast<std::uint16_t>(text.size());
  const std::string version("\1\0", 2), bytes(reinterpret_cast<const char*>(&length), sizeof(length));
  return std::string(kMagic) + version + bytes + text;
}

}  // namespace braid::detail
