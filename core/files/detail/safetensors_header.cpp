#include <braid/core/files/detail/safetensors_header.h>

#include <algorithm>
#include <set>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <braid/core/files/budget.h>

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
const auto& shown(const auto& value) { return value; }

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
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool key(string_t& name) override {
    require(keys_.back().insert(name).second, where_, "the header has the key '{}' twice", name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string& last, const json::exception&) override {
    require(false, where_, "the header must be JSON but has a parse error at byte {}: '{}'", position, last);
    return false;
  }

 private:
  const std::string& where_;
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
};

std::map<std::string, std::string> metadata(const std::string& where, const json& object) {
  require(object.is_object(), where, "{} must be an object but is {}", kMetadata, object);
  for (const auto& [key, value] : object.items())
    require(value.is_string(), where, "{}: '{}' must be a string but is {}", kMetadata, key, value);
  return object.get<std::map<std::string, std::string>>();
}

StoredType stored_type(const std::string& where, const json& dtype) {
  const auto* type = std::ranges::find_if(kStoredTypes, [&](const StoredTypeFacts& t) { return dtype == t.name; });
  require(type != kStoredTypes.end(), where, "dtype must be one of the format's, as F32, but is {}", dtype);
  return static_cast<StoredType>(type - kStoredTypes.begin());
}

std::vector<std::uint64_t> integers(const std::string& where, const char* field, const json& array) {
  const bool ok = array.is_array() && std::ranges::all_of(array, [](const json& v) { return v.is_number_unsigned(); });
  require(ok, where, "{} must hold non-negative integers but is {}", field, array);
  return array.get<std::vector<std::uint64_t>>();
}

StoredTensor stored_tensor(const std::string& file, std::uint64_t data_bytes, const std::string& name,
                           const json& fields) {
  const std::string where = fmt::format("{}: tensor '{}'", file, excerpt(name));
  const bool complete = fields.is_object() && fields.size() == 3 && fields.contains("dtype") &&
                        fields.contains("shape") && fields.contains("data_offsets");
  require(complete, where, "expected dtype, shape and data_offsets but got {}", fields);
  const StoredType type = stored_type(where, fields["dtype"]);
  const auto& [type_name, bits, dtype] = facts(type);
  const Shape shape = checked_shape(where, integers(where, "shape", fields["shape"]));
  const auto offsets = integers(where, "data_offsets", fields["data_offsets"]);
  require(offsets.size() == 2 && offsets[0] <= offsets[1] && offsets[1] <= data_bytes, where,
          "data_offsets must be [begin, end] within {} bytes but are [{}]", data_bytes, offsets);
  const auto count = static_cast<std::uint64_t>(shape.numel());
  const std::uint64_t bytes = count / 8 * bits + (count % 8 * bits + 7) / 8;
  require(offsets[1] - offsets[0] == bytes, where, "{} {} must take {} bytes but data_offsets span {}", type_name,
          shape, bytes, offsets[1] - offsets[0]);
  return {name, type, shape, offsets[0], offsets[1]};
}

void check_coverage(const std::string& where, std::uint64_t data_bytes, const std::vector<StoredTensor>& tensors) {
  std::uint64_t end = 0;
  for (const StoredTensor& t : tensors) {
    require(t.begin == end, where,
            "tensor '{}': data must begin at byte {}, where the tensor before ends, but begins at {}", t.name, end,
            t.begin);
    end = t.end;
  }
  require(end == data_bytes, where, "the tensors must fill the {} bytes after the header but end at {}", data_bytes,
          end);
}

}  // namespace

SafetensorsHeader parse_safetensors_header(const std::string& where, const std::string& text,
                                           std::uint64_t data_bytes) {
  require(text.starts_with('{'), where, "the header must start with '{{'");
  check_nesting(where + ": the header", text);
  Grammar grammar(where);
  json::sax_parse(text, &grammar);
  const json object = json::parse(text);
  SafetensorsHeader header;
  for (const auto& [name, value] : object.items()) {
    if (name == kMetadata)
      header.metadata = metadata(where, value);
    else
      header.tensors.push_back(stored_tensor(where, data_bytes, name, value));
  }
  std::ranges::sort(header.tensors, {}, [](const StoredTensor& t) { return std::pair(t.begin, t.end); });
  check_coverage(where, data_bytes, header.tensors);
  return header;
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
