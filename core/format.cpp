#include <braid/core/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <ostream>
#include <string_view>
#include <vector>

namespace braid {
namespace {

/// The digits of `x`: the shortest that parse as x, or `precision` digits after the point if that is shorter.
std::string digits(std::floating_point auto x, std::chars_format notation, int precision) {
  char buffer[64];  // fixed notation is used below 1e8 only
  auto end = std::to_chars(buffer, std::end(buffer), x, notation).ptr;
  const std::string_view shortest(buffer, end);
  const auto point = shortest.find('.'), fraction_end = std::min(shortest.find('e'), shortest.size());
  if (point != shortest.npos && fraction_end - point - 1 > static_cast<std::size_t>(precision))
    end = std::to_chars(buffer, std::end(buffer), x, notation, precision).ptr;
  return {buffer, end};
}

/// A number split at its point, to align a column.
struct Parts {
  std::string whole, fraction, exponent;
};

Parts split(const std::string& text) {
  const auto e = std::min(text.find('e'), text.size()), point = std::min(text.find('.'), e);
  std::string fraction = text.substr(std::min(point + 1, e), e - std::min(point + 1, e));
  fraction.erase(fraction.find_last_not_of('0') + 1);
  return {text.substr(0, point), fraction, text.substr(e)};
}

template <std::floating_point T>
std::chars_format notation_for(const std::vector<T>& values) {
  T low = INFINITY, high = 0;
  for (const T x : values) {
    if (x == 0 || !std::isfinite(x)) continue;
    low = std::min(low, std::abs(x));
    high = std::max(high, std::abs(x));
  }
  const bool scientific = high > 0 && (high >= T(1e8) || low < T(1e-4) || high / low > 1000);
  return scientific ? std::chars_format::scientific : std::chars_format::fixed;
}

/// All values as words with their points aligned.
template <std::floating_point T>
std::vector<std::string> words(const std::vector<T>& values, int precision) {
  const std::chars_format notation = notation_for(values);
  const char fill = notation == std::chars_format::scientific ? '0' : ' ';
  std::vector<Parts> parts;
  std::size_t whole = 0, fraction = 0, exponent = 0;
  for (const T x : values) {
    parts.push_back(std::isfinite(x) ? split(digits(x, notation, precision)) : Parts{});
    whole = std::max(whole, parts.back().whole.size());
    fraction = std::max(fraction, parts.back().fraction.size());
    exponent = std::max(exponent, parts.back().exponent.size());
  }
  std::vector<std::string> list;
  for (std::size_t i = 0; i < values.size(); ++i) {
    Parts& p = parts[i];
    p.fraction.resize(fraction, fill);
    if (!p.exponent.empty()) p.exponent.insert(2, exponent - p.exponent.size(), '0');  // e+05 beside e+100: e+005
    list.push_back(std::isfinite(values[i]) ? fmt::format("{:>{}}.{}{}", p.whole, whole, p.fraction, p.exponent)
                                            : formatted("{}", values[i]));
  }
  return list;
}

std::vector<std::string> words(const std::vector<std::int32_t>& values, int) {
  std::vector<std::string> list;
  for (const std::int32_t x : values) list.push_back(std::to_string(x));
  return list;
}

/// Prints one tensor: collects the elements that are shown, then arranges their words.
class Printer {
 public:
  Printer(const Tensor& tensor, const FormatOptions& options)
      : shape_(tensor.shape()), options_(options), summarized_(tensor.numel() > options.threshold) {
    dispatch(tensor.dtype(), [&]<class T>(T) {
      std::vector<Compute<T>> shown;
      if (tensor.numel() > 0) gather<T>(tensor, shown);
      words_ = words(shown, options.precision);
    });
    std::size_t width = 0;
    for (const std::string& word : words_) width = std::max(width, word.size());
    for (std::string& word : words_) word = fmt::format("{:>{}}", word, width);
  }

  std::string print() {
    if (shape_.rank() == 0) return words_.front();
    if (shape_.numel() == 0) return "[]";
    return block(0);
  }

  bool summarized() const { return summarized_; }

 private:
  bool cuts(int axis) const { return summarized_ && shape_[axis] > 2 * options_.edge_items; }

  /// Calls `visit(i)` for each shown position of an axis, and `gap()` where positions are left out.
  void for_each_shown(int axis, auto visit, auto gap) const {
    const std::int64_t size = shape_[axis], head = cuts(axis) ? options_.edge_items : size;
    for (std::int64_t i = 0; i < head; ++i) visit(i);
    if (!cuts(axis)) return;
    gap();
    for (std::int64_t i = size - head; i < size; ++i) visit(i);
  }

  template <class T>
  void gather(const Tensor& part, std::vector<Compute<T>>& shown) const {
    if (part.rank() == 0) return shown.push_back(*part.data<T>());
    for_each_shown(
        shape_.rank() - part.rank(), [&](std::int64_t i) { gather<T>(part.select(0, i), shown); }, [] {});
  }

  /// The next words in the brackets of an axis, which are indented by `axis` columns.
  std::string block(int axis) { return axis == shape_.rank() - 1 ? row(axis) : rows(axis); }

  std::string rows(int axis) {
    const std::string separator = std::string(shape_.rank() - axis - 1, '\n') + std::string(axis + 1, ' ');
    std::string text;
    const auto append = [&](const std::string& part) { text += (text.empty() ? "" : separator) + part; };
    for_each_shown(
        axis, [&](std::int64_t) { append(block(axis + 1)); }, [&] { append("..."); });
    return fmt::format("[{}]", text);
  }

  /// The next words in brackets, wrapped so that the closing brackets fit the line.
  std::string row(int axis) {
    const std::string indent(axis + 1, ' ');
    const int width = options_.line_width - axis - 1;
    std::string text, line = indent;
    const auto append = [&](const std::string& word) {
      if (line != indent && static_cast<int>(line.size() + 1 + word.size()) > width) {
        text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
        line = indent;
      }
      line += (line == indent ? "" : " ") + word;
    };
    for_each_shown(
        axis, [&](std::int64_t) { append(words_[next_++]); }, [&] { append("..."); });
    return fmt::format("[{}]", (text + line).substr(indent.size()));
  }

  Shape shape_;
  FormatOptions options_;
  bool summarized_;
  std::vector<std::string> words_;  // the shown elements, row-major
  std::size_t next_ = 0;
};

}  // namespace

std::string to_string(const Tensor& tensor, const FormatOptions& options) {
  check_value(0 <= options.precision && options.precision <= 17, "to_string: precision must be in [0, 17] but is {}",
              options.precision);
  check_value(options.edge_items >= 0 && options.threshold >= 0,
              "to_string: edge_items and threshold must be >= 0 but are {} and {}", options.edge_items,
              options.threshold);
  if (!tensor.defined()) return "undefined";
  Printer printer(tensor, options);
  const bool shows_shape = !printer.summarized() && tensor.numel() > 0;
  const std::string text = fmt::format("{} {}", printer.print(), name(tensor.dtype()));
  return shows_shape ? text : fmt::format("{} {}", text, tensor.shape());
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << to_string(tensor); }

}  // namespace braid
