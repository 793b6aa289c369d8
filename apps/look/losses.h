#pragma once
#include <functional>

#include <nlohmann/json.hpp>

#include "microscope.h"

namespace braid::look {

/// A text for a model: tokens [1, T] and the id after each.
struct Text {
  Tensor tokens;
  std::vector<std::int32_t> targets;
};

/// What changes cost: the mean loss of the text under them.
double loss(const apps::Model& model, const Text& text, const Seen& clean, std::span<const Intervention> changes);

/// The number of evaluations of ablations().
std::int64_t ablation_count(std::int64_t streams, std::int64_t connections);

/// The losses of ablations, each a list over sites; those of streams are lists of such lists:
///
///     once     with one stream zero before one site
///     onward   with one stream zero before this site and all later ones
///     all      with all streams zero before one site
///     alone    the same with one stream rescued
///     write    with the output of one layer zero
///
/// `each` is called after every evaluation.
nlohmann::ordered_json ablations(const apps::Model& model, const Text& text, const Seen& clean,
                                 const std::function<void()>& each);

/// The losses of given changes: each scale and swap by itself and all of them, then each rescue and all of them, with
/// the part of the added loss that comes back.
nlohmann::ordered_json chosen(const apps::Model& model, const Text& text, const Seen& clean, double clean_loss,
                              const std::vector<Intervention>& changes);

}  // namespace braid::look
