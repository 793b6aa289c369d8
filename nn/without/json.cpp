// What stands for the parts of nn that read and write JSON where nlohmann-json is absent.
#include <braid/core/error.h>
#include <braid/nn/pretrained/config.h>
#include <braid/nn/verify/recorded_case.h>

namespace braid::nn {

[[noreturn]] static void without_json(const std::string& function) { throw MissingLibrary(function, "nlohmann-json"); }

PretrainedConfig parse_pretrained_config(const std::string& where, const std::string&) { without_json(where); }
PretrainedFamily family_of(const TransformerConfig&) { without_json("family_of"); }
std::string format_pretrained_config(const TransformerConfig&, DType) { without_json("format_pretrained_config"); }

std::map<std::string, std::string> detail::parse_shard_index(const std::string& where, const std::string&) {
  without_json(where);
}
std::string detail::format_shard_index(const std::map<std::string, std::string>&, std::uint64_t) {
  without_json("format_shard_index");
}

std::int64_t CaseSettings::integer(const std::string&, std::int64_t, std::int64_t) const {
  without_json("CaseSettings");
}
double CaseSettings::number(const std::string&) const { without_json("CaseSettings"); }
std::string CaseSettings::text(const std::string&) const { without_json("CaseSettings"); }
std::vector<double> CaseSettings::numbers(const std::string&) const { without_json("CaseSettings"); }
std::vector<std::string> CaseSettings::texts(const std::string&) const { without_json("CaseSettings"); }
std::vector<std::vector<std::string>> CaseSettings::lists(const std::string&) const { without_json("CaseSettings"); }

}  // namespace braid::nn
