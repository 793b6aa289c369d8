#pragma once
#include <span>
#include <vector>

#include "../common/trainer.h"
#include "intervention.h"

namespace braid::look {

/// What is seen for T tokens at a connection, or at the head, which has no maps but h_pre and no output.
struct Site {
  Tensor x = {};                   ///< [T, n, C], the streams before it
  Tensor h_pre = {};               ///< f64 [T, n]; undefined if other than weights of streams make its input
  Tensor h_post = {}, h_res = {};  ///< f64 [T, n], [T, n, n]
  Tensor u = {}, f = {};           ///< [T, C], the input and the output of the layer
};

/// One evaluation of a model.
struct Seen {
  std::vector<Site> sites;  ///< the connections and the head
  Tensor logits;            ///< [T, vocab]
};

/// Throws ValueError unless the model's connections keep streams, or one, between layers.
void check_has_streams(const apps::Model& model);

/// Evaluates the model on tokens [1, T], changed at each site: first what is scaled, then swapped, then rescued, which
/// gets its value in `clean`. A path carries a layer's output by the maps alone: other changes of the streams on its
/// way do not alter it. Without changes, the logits have the bits of model.logits(). Throws ValueError for a path to an
/// input that is no weighted sum of streams.
Seen evaluate(const apps::Model& model, const Tensor& tokens, std::span<const Intervention> changes = {},
              const Seen* clean = nullptr);

/// The weights [T, n] in f64 of a layer's output in the streams behind `site`, from those before it.
Tensor carried(const Site& site, const Tensor& weights);
/// The gain [T] of a path into the input of a site, sum_i h_pre_i weights_i, from the weights before it.
Tensor gain(const Site& site, const Tensor& weights);

/// The logits [T, vocab] if the model's head read the streams x of this site.
Tensor read_by_head(const apps::Model& model, const Site& site);

}  // namespace braid::look
