#include "probe.h"

#include <algorithm>
#include <functional>

namespace braid::stability {
namespace {

using Json = nlohmann::ordered_json;

Json value(double number) { return number; }
Json value(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

}  // namespace

double activation_norm(const mhc::Connection::Stream& stream) {
  const Tensor x = mhc::value(stream).value();
  const Tensor* all = &x;
  return nn::global_norm({&all, 1}) / std::sqrt(static_cast<double>(x.numel()));
}

Json to_json(const Probe& probe) {
  Json json{{"gradient_norm", probe.gradient_norm}, {"activation_norm", probe.activation_norm}};
  const auto add = [&](const char* key, auto mhc::ConnectionStats::*member) {
    Json& list = json[key] = Json::array();
    for (const mhc::ConnectionStats& stats : probe.connections) list.push_back(value(stats.*member));
  };
  add("forward_gain", &mhc::ConnectionStats::forward_gain);
  add("backward_gain", &mhc::ConnectionStats::backward_gain);
  add("composed_forward_gain", &mhc::ConnectionStats::composed_forward_gain);
  add("composed_backward_gain", &mhc::ConnectionStats::composed_backward_gain);
  add("row_error", &mhc::ConnectionStats::row_error);
  add("column_error", &mhc::ConnectionStats::column_error);
  add("similarity", &mhc::ConnectionStats::similarity);
  return json;
}

Json summary(const Probe& probe) {
  if (probe.connections.empty())
    return {{"forward_gain", nullptr},
            {"backward_gain", nullptr},
            {"row_error", nullptr},
            {"column_error", nullptr},
            {"similarity", nullptr}};
  const auto worst = [&](double mhc::ConnectionStats::*member) {
    return std::invoke(member, std::ranges::max(probe.connections, {}, member));
  };
  return {{"forward_gain", probe.connections.back().composed_forward_gain},
          {"backward_gain", probe.connections.front().composed_backward_gain},
          {"row_error", worst(&mhc::ConnectionStats::row_error)},
          {"column_error", worst(&mhc::ConnectionStats::column_error)},
          {"similarity", value(probe.connections.back().similarity)}};
}

}  // namespace braid::stability
