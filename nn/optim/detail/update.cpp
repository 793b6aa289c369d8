#include <braid/nn/optim/detail/update.h>

namespace braid::nn {

bool decay_weights_only(std::string_view name, const Tensor& value) {
  return value.rank() >= 2 && (name == "weight" || name.ends_with(".weight"));
}

bool decay_everything(std::string_view, const Tensor&) { return true; }

void check_updates(const char* optimizer, const std::vector<Update>& updates, std::size_t num_grads) {
  check_shape(num_grads == updates.size(), "{}: grads must have the model's {} parameters but have {}", optimizer,
              updates.size(), num_grads);
  for (const Update& u : updates) {
    check_shape(u.grad.defined() && u.grad.shape() == u.value->shape(),
                "{}: the gradient of {} must have shape {} but has {}", optimizer, u.name, u.value->shape(),
                u.grad.shape());
    check_dtype(u.grad.dtype() == u.value->dtype(), "{}: the gradient of {} must be {} but is {}", optimizer, u.name,
                name(u.value->dtype()), name(u.grad.dtype()));
  }
}

std::vector<TensorBlock> blocks_of(const std::vector<Update>& updates) {
  std::vector<std::int64_t> sizes;
  for (const Update& u : updates) sizes.push_back(u.value->numel());
  return cut_into_blocks(sizes);
}

}  // namespace braid::nn
