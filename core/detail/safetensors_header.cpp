#include <braid/core/detail/safetensors_header.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace braid::detail {
namespace {

using nlohmann::json;

constexpr const char* kMetadata = "__metadata__";
constexpr int kMaxDepth = 3;  // {"x": {"shape": [...

struct StoredType {
  std::string_view name;
  DType dtype;
  std::uint64_t item;
};
constexpr std::array<StoredType, 4> kStoredTypes{
    {{"F32", DType::f32, 4}, {"F64", DType::f64, 8}, {"I32", DType::i32, 4}, {"I64", DType::i32, 8}}};

/// Checks one header; every message starts with `where`.
class Parser {
 public:
  Parser(const std::string& where, std::uint64_t data_bytes) : where_(where), data_bytes_(data_bytes) {}

  SafetensorsHeader parse(const std::string& text) const {
    require(text.starts_with('{'), "the header must start with '{{'");
    const json object = parse_json(text);
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
  template <class... Args>
  void require(bool ok, fmt::format_string<Args...> message, Args&&... args) const {
    if (!ok) throw FileError(where_ + ": " + fmt::format(message, std::forward<Args>(args)...));
  }

  json parse_json(const std::string& text) const {
    std::vector<std::set<std::string>> keys;  // of the objects that are open
    const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
      require(depth <= kMaxDepth, "the header must nest at most {} deep", kMaxDepth);
      if (event == json::parse_event_t::object_start) keys.emplace_back();
      if (event == json::parse_event_t::object_end) keys.pop_back();
      if (event == json::parse_event_t::key)
        require(keys.back().insert(parsed.get<std::string>()).second, "the header has the key {} twice", parsed.dump());
      return true;
    };
    try {
      return json::parse(text, watch);
    } catch (const json::exception& error) {
      throw FileError(fmt::format("{}: the header must be JSON but has a {}", where_,
                                  std::string_view(error.what()).substr(std::string_view(error.what()).find(']') + 2)));
    }
  }

  std::map<std::string, std::string> metadata(const json& object) const {
    require(object.is_object(), "{} must be an object but is {}", kMetadata, object.dump());
    for (const auto& [key, value] : object.items())
      require(value.is_string(), "{}: '{}' must be a string but is {}", kMetadata, key, value.dump());
    return object.get<std::map<std::string, std::string>>();
  }

  StoredTensor tensor(const std::string& name, const json& fields) const {
    const bool complete = fields.is_object() && fields.size() == 3 && fields.contains("dtype") &&
                          fields.contains("shape") && fields.contains("data_offsets");
    require(complete, "tensor '{}': expected dtype, shape and data_offsets but got {}", name, fields.dump());
    const StoredType type = stored_type(name, fields["dtype"]);
    const Shape shape = checked_shape(name, integers(name, "shape", fields["shape"]));
    const auto offsets = integers(name, "data_offsets", fields["data_offsets"]);
    require(offsets.size() == 2 && offsets[0] <= offsets[1] && offsets[1] <= data_bytes_,
            "tensor '{}': data_offsets must be [begin, end] within {} bytes but are [{}]", name, data_bytes_,
            fmt::join(offsets, ", "));
    const std::uint64_t bytes = static_cast<std::uint64_t>(shape.numel()) * type.item;
    require(offsets[1] - offsets[0] == bytes, "tensor '{}': {} {} must take {} bytes but data_offsets span {}", name,
            type.name, shape, bytes, offsets[1] - offsets[0]);
    return {name, type.dtype, type.item, shape, offsets[0], offsets[1]};
  }

  StoredType stored_type(const std::string& name, const json& dtype) const {
    const auto* type = std::ranges::find_if(kStoredTypes, [&](const StoredType& t) { return dtype == t.name; });
    require(type != kStoredTypes.end(), "tensor '{}': dtype must be F32, F64, I32 or I64 but is {}", name,
            dtype.dump());
    return *type;
  }

  std::vector<std::uint64_t> integers(const std::string& name, const char* field, const json& array) const {
    const bool ok =
        array.is_array() && std::ranges::all_of(array, [](const json& v) { return v.is_number_unsigned(); });
    require(ok, "tensor '{}': {} must hold non-negative integers but is {}", name, field, array.dump());
    return array.get<std::vector<std::uint64_t>>();
  }

  /// The product of all sizes but zeros stays below 2^60, so that no stride or count of bytes overflows.
  Shape checked_shape(const std::string& name, const std::vector<std::uint64_t>& sizes) const {
    require(sizes.size() <= Shape::kMaxRank, "tensor '{}': shape must have at most {} axes but has {}", name,
            Shape::kMaxRank, sizes.size());
    std::uint64_t product = 1;
    for (const std::uint64_t size : sizes) {
      require(size < (std::uint64_t{1} << 60) / product,
              "tensor '{}': shape must have fewer than 2^60 elements but is [{}]", name, fmt::join(sizes, ", "));
      product *= std::max<std::uint64_t>(size, 1);
    }
    return Shape(std::vector<std::int64_t>(sizes.begin(), sizes.end()));
  }

  void check_coverage(const std::vector<StoredTensor>& tensors) const {
    std::uint64_t end = 0;
    for (const StoredTensor& t : tensors) {
      require(t.begin == end, "tensor '{}': data must begin at byte {}, where the tensor before ends, but begins at {}",
              t.name, end, t.begin);
      end = t.end;
    }
    require(end == data_bytes_, "the tensors must fill the {} bytes after the header but end at {}", data_bytes_, end);
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
    const auto* type =
        std::ranges::find_if(kStoredTypes, [&](const StoredType& s) { return s.dtype == t.dtype && s.item == t.item; });
    object[t.name] = {{"dtype", type->name},
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
