#include <braid/core/files/detail/safetensors_header.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <braid/core/files/budget.h>
#include <braid/core/utf8.h>

namespace braid::detail {
namespace {

using nlohmann::json;

constexpr const char* kMetadata = "__metadata__";

// How messages quote the values of a header.
std::string shown(const json& value) {
  return shortened(value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace));
}
std::string shown(const std::string& text) { return excerpt(text); }
std::string shown(const std::vector<std::uint64_t>& values) {
  return shortened(fmt::format("{}", fmt::join(values, ", ")));
}
template <class T>
const T& shown(const T& value) {
  return value;
}

/// Throws FileError with a message that starts with `where` unless `ok`.
template <class... Args>
void require(bool ok, const std::string& where, fmt::format_string<decltype(shown(std::declval<Args>()))...> message,
             const Args&... args) {
  if (!ok) throw FileError(where + ": " + fmt::format(message, shown(args)...));
}

/// Rejects text that is not JSON or has a key twice. (The parser's own callbacks could do so
/// too, but it would search an object again for each of its values.)
class Grammar : public nlohmann::json_sax<json> {
 public:
  explicit Grammar(const std::string& where) : where_(where) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool start_object(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool key(string_t& name) override {
    require(keys_.back().insert(name).second, where_, "the header has the key '{}' twice", name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string& last, const json::exception&) override {
    require(false, where_, "the header must be JSON but has a parse error at byte {}: '{}'", position, last);
    return false;
  }

 private:
  bool open() {
    keys_.emplace_back();
    return true;
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  const std::string& where_;
  std::vector<std::set<std::string>> keys_;  // of the objects and arrays that are open
};

/// Checks one header; every message starts with `where`.
class Parser {
 public:
  Parser(const std::string& where, std::uint64_t data_bytes) : where_(where), data_bytes_(data_bytes) {}

  SafetensorsHeader parse(const std::string& text) const {
    require(text.starts_with('{'), where_, "the header must start with '{{'");
    check_nesting(where_ + ": the header", text);
    Grammar grammar(where_);
    json::sax_parse(text, &grammar);
    const json object = json::parse(text);
    SafetensorsHeader header;
    for (const auto& [name, value] : object.items()) {
      if (name == kMetadata)
        header.metadata = metadata(value);
      else
        header.tensors.push_back(tensor(name, value));
    }
    std::ranges::sort(header.tensors, {}, [](const StoredTensor& t) { return std::pair(t.begin, t.end); });
    check_coverage(header.tensors);
    return header;
  }

 private:
  std::map<std::string, std::string> metadata(const json& object) const {
    require(object.is_object(), where_, "{} must be an object but is {}", kMetadata, object);
    for (const auto& [key, value] : object.items())
      require(value.is_string(), where_, "{}: '{}' must be a string but is {}", kMetadata, key, value);
    return object.get<std::map<std::string, std::string>>();
  }

  StoredTensor tensor(const std::string& name, const json& fields) const {
    const bool complete = fields.is_object() && fields.size() == 3 && fields.contains("dtype") &&
                          fields.contains("shape") && fields.contains("data_offsets");
    require(complete, where_, "tensor '{}': expected dtype, shape and data_offsets but got {}", name, fields);
    const StoredType type = stored_type(name, fields["dtype"]);
    const auto& [type_name, bits, dtype] = facts(type);
    const Shape shape = checked_shape(name, integers(name, "shape", fields["shape"]));
    const auto offsets = integers(name, "data_offsets", fields["data_offsets"]);
    require(offsets.size() == 2 && offsets[0] <= offsets[1] && offsets[1] <= data_bytes_, where_,
            "tensor '{}': data_offsets must be [begin, end] within {} bytes but are [{}]", name, data_bytes_, offsets);
    const auto count = static_cast<std::uint64_t>(shape.numel());
    const std::uint64_t bytes = count / 8 * bits + (count % 8 * bits + 7) / 8;
    require(offsets[1] - offsets[0] == bytes, where_, "tensor '{}': {} {} must take {} bytes but data_offsets span {}",
            name, type_name, shape, bytes, offsets[1] - offsets[0]);
    return {name, type, shape, offsets[0], offsets[1]};
  }

  StoredType stored_type(const std::string& name, const json& dtype) const {
    const auto* type = std::ranges::find_if(kStoredTypes, [&](const StoredTypeFacts& t) { return dtype == t.name; });
    require(type != kStoredTypes.end(), where_, "tensor '{}': dtype must be one of the format's, as F32, but is {}",
            name, dtype);
    return static_cast<StoredType>(type - kStoredTypes.begin());
  }

  std::vector<std::uint64_t> integers(const std::string& name, const char* field, const json& array) const {
    const bool ok =
        array.is_array() && std::ranges::all_of(array, [](const json& v) { return v.is_number_unsigned(); });
    require(ok, where_, "tensor '{}': {} must hold non-negative integers but is {}", name, field, array);
    return array.get<std::vector<std::uint64_t>>();
  }

  /// The product of all sizes but zeros is at most 2^59, so that no stride or count of bytes overflows.
  Shape checked_shape(const std::string& name, const std::vector<std::uint64_t>& sizes) const {
    require(sizes.size() <= Shape::kMaxRank, where_, "tensor '{}': shape must have at most {} axes but has {}", name,
            Shape::kMaxRank, sizes.size());
    std::uint64_t product = 1;
    for (const std::uint64_t size : sizes) {
      require(size <= (std::uint64_t{1} << 59) / product, where_,
              "tensor '{}': shape must have at most 2^59 elements but is [{}]", name, sizes);
      product *= std::max<std::uint64_t>(size, 1);
    }
    return Shape(std::vector<std::int64_t>(sizes.begin(), sizes.end()));
  }

  void check_coverage(const std::vector<StoredTensor>& tensors) const {
    std::uint64_t end = 0;
    for (const StoredTensor& t : tensors) {
      require(t.begin == end, where_,
              "tensor '{}': data must begin at byte {}, where the tensor before ends, but begins at {}", t.name, end,
              t.begin);
      end = t.end;
    }
    require(end == data_bytes_, where_, "the tensors must fill the {} bytes after the header but end at {}",
            data_bytes_, end);
  }

  const std::string& where_;
  std::uint64_t data_bytes_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(const std::string& where, const std::string& text,
                                           std::uint64_t data_bytes) {
  return Parser(where, data_bytes).parse(text);
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  json object = json::object();
  if (!header.metadata.empty()) object[kMetadata] = header.metadata;
  for (const StoredTensor& t : header.tensors) {
    check_value(t.name != kMetadata, "save_safetensors: a tensor must not be named {}", kMetadata);
    object[t.name] = {{"dtype", facts(t.type).name},
                      {"shape", std::vector<std::int64_t>(t.shape.begin(), t.shape.end())},
                      {"data_offsets", {t.begin, t.end}}};
  }
  try {
    std::string text = object.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
  } catch (const json::exception&) {
    throw ValueError("save_safetensors: names and metadata must be UTF-8");
  }
}

}  // namespace braid::detail
