#include "exchange.h"

#include <cstring>

#include <nlohmann/json.hpp>

namespace braid::apps {
namespace {

std::size_t bytes_of(const Tensor& t) { return static_cast<std::size_t>(t.numel()) * size_of(t.dtype()); }

}  // namespace

std::vector<std::vector<double>> gather(dist::Communicator& ranks, const std::vector<double>& numbers) {
  std::vector<std::vector<double>> all;
  for (const std::string& bytes :
       ranks.gather({reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double)})) {
    std::vector<double>& list = all.emplace_back(bytes.size() / sizeof(double));
    std::memcpy(list.data(), bytes.data(), bytes.size());
  }
  return all;
}

nn::NamedTensors broadcast(dist::Communicator& ranks, const nn::NamedTensors& tensors) {
  if (ranks.size() == 1) return tensors;
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [name, t] : tensors)
    list.push_back({name, static_cast<int>(t.dtype()), std::vector<std::int64_t>(t.shape().begin(), t.shape().end())});
  list = nlohmann::json::parse(ranks.broadcast(list.dump()));
  nn::NamedTensors all;
  for (const auto& entry : list) {
    const auto sizes = entry[2].get<std::vector<std::int64_t>>();
    Tensor t(Shape(sizes), static_cast<DType>(entry[1].get<int>()));
    std::string bytes;
    if (ranks.rank() == 0) {
      const Tensor mine = tensors.at(entry[0]).contiguous();
      bytes.assign(reinterpret_cast<const char*>(mine.bytes()), bytes_of(mine));
    }
    bytes = ranks.broadcast(bytes);
    std::memcpy(t.mutable_bytes(), bytes.data(), bytes.size());
    all[entry[0]] = t;
  }
  return all;
}

}  // namespace braid::apps
