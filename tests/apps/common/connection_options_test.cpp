#include <apps/common/connection_options.h>

#include <gmock/gmock.h>

#include <map>

#include <tests/support.h>

namespace braid::apps {
namespace {

/// Another value of each setting that is a text.
const std::map<std::string, std::string> kOtherTexts{
    {"mixing", "newton"},     {"head", "mean"},
    {"skip_mode", "hc"},      {"skip_constraint", "identity"},
    {"skip_init", "uniform"}, {"skip_projection", "none"},
};

nlohmann::json another(const std::string& key, const nlohmann::json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number_float()) return value.get<double>() / 2 + 0.125;
  if (value.is_number()) return value.get<std::int64_t>() + 1;
  return kOtherTexts.at(key);
}

ConnectionOptions of_kind(std::string_view kind) { return {.kind = std::string(kind)}; }

/// The options of a kind with another value of one setting.
ConnectionOptions with(std::string_view kind, const std::string& key, const nlohmann::json& value) {
  nlohmann::json json = to_json(of_kind(kind));
  json[key] = value;
  return connection_options(json);
}

TEST(ConnectionOptions, SurviveARoundTrip) {
  for (const std::string_view kind : mhc::connection_names()) {
    const nlohmann::json usual = to_json(of_kind(kind));
    EXPECT_EQ(nlohmann::json(to_json(connection_options(usual))), usual) << kind;
    for (const auto& [key, value] : usual.items()) {
      if (key == "connection") continue;
      nlohmann::json changed = usual;
      changed[key] = another(key, value);
      EXPECT_EQ(nlohmann::json(to_json(connection_options(changed))), changed) << kind << ' ' << key;
    }
  }
}

TEST(ConnectionOptions, AreRefusedWhereTheyHaveNoEffect) {
  std::map<std::string, nlohmann::json> all;  // settings of any kind
  for (const std::string_view kind : mhc::connection_names()) {
    const nlohmann::json usual = to_json(of_kind(kind));
    for (const auto& [key, value] : usual.items())
      if (key != "connection") all[key] = another(key, value);
  }
  EXPECT_GE(all.size(), 20U);
  EXPECT_EQ(to_json(of_kind("residual")).size(), 1U);  // the kind alone
  EXPECT_TRUE(connection_config(with("skip", "detach_history", true)).skip.detach_history);
  for (const std::string_view kind : mhc::connection_names())
    for (const auto& [key, value] : all) {
      const std::vector<std::string> kinds{std::string(kind)};
      const std::string refusal = message_of([&] { check_all_apply(with(kind, key, value), kinds); });
      const bool applies = to_json(of_kind(kind)).contains(key);
      EXPECT_EQ(refusal.find("has no effect with connection") == std::string::npos, applies)
          << kind << ' ' << key << ": " << refusal;
    }
}

}  // namespace
}  // namespace braid::apps
