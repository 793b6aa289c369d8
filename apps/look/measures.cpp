#include "measures.h"

#include <cmath>

#include <fmt/format.h>

#include <braid/autograd/ops.h>

namespace braid::look {
namespace {

using Json = nlohmann::ordered_json;

/// [T] as a list, and [T, ..] as a list of rows over T.
Json row(const Tensor& x) {
  Json list = Json::array();
  for (const double v : x.to_vector<double>()) list.push_back(rounded(v));
  return list;
}
Json rows(const Tensor& x) {
  if (!x.defined()) return nullptr;
  const Tensor flat = x.reshape({x.size(0), x.numel() / x.size(0)});
  Json list = Json::array();
  for (std::int64_t i = 0; i < flat.size(1); ++i) list.push_back(row(flat.select(1, i)));
  return list;
}

Var squares(const Var& x) { return x * x; }

Tensor norms(const Tensor& x) { return sqrt(sum(squares(x.to(DType::f64)), {-1})).value(); }

/// x divided by y, 0 where y is.
Tensor ratio(const Tensor& x, const Tensor& y) {
  const std::vector<double> a = x.to_vector<double>(), b = y.to_vector<double>();
  std::vector<double> c(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) c[i] = b[i] == 0 ? 0 : a[i] / b[i];
  return Tensor::of<double>(x.shape(), c);
}

Tensor shares(const Tensor& norm) {
  const Var parts = squares(norm);
  return ratio(parts.value(), sum(parts, {-1}, true).value().broadcast_to(norm.shape()).contiguous());
}

Json cosines(const Tensor& x, const Tensor& norm) {
  const Var streams = x.to(DType::f64);
  Json list = Json::array();
  for (std::int64_t i = 0; i < x.size(1); ++i)
    for (std::int64_t j = i + 1; j < x.size(1); ++j) {
      const Var product = sum(select(streams, 1, i) * select(streams, 1, j), {-1});
      list.push_back(row(ratio(product.value(), (Var(norm.select(1, i)) * norm.select(1, j)).value())));
    }
  return list;
}

/// The gains of the paths from one site to each.
Json gains(const std::vector<Site>& sites, std::size_t from) {
  Json list = Json::array();
  Tensor weights = sites[from].h_post;
  for (std::size_t to = 0; to < sites.size(); ++to) {
    const bool reached = to > from && sites[to].h_pre.defined();
    list.push_back(reached ? rounded(mean(gain(sites[to], weights)).value().item()) : Json());
    if (to > from && to + 1 < sites.size()) weights = carried(sites[to], weights);
  }
  return list;
}

}  // namespace

Json rounded(double value) { return std::isfinite(value) ? Json(std::stod(fmt::format("{:.5g}", value))) : Json(); }

Json measures(const Seen& seen) {
  Json all;
  for (std::size_t i = 0; i < seen.sites.size(); ++i) {
    const Site& site = seen.sites[i];
    const Tensor norm = norms(site.x);
    all["norm"].push_back(rows(norm));
    all["share"].push_back(rows(shares(norm)));
    all["cosine"].push_back(cosines(site.x, norm));
    all["h_pre"].push_back(rows(site.h_pre));
    if (i + 1 == seen.sites.size()) break;  // the head
    all["h_post"].push_back(rows(site.h_post));
    all["h_res"].push_back(rows(site.h_res));
    all["read"].push_back(row(norms(site.u)));
    all["write"].push_back(row(norms(site.f)));
    all["gain"].push_back(gains(seen.sites, i));
  }
  return all;
}

}  // namespace braid::look
