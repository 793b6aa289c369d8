#include <braid/autograd/ops/embedding.h>

#include <algorithm>

#include <braid/core/parallel.h>

namespace braid {
namespace {

constexpr std::int64_t kRows = 64;     // ids that a thread copies at a time
constexpr std::int64_t kColumns = 64;  // channels that a thread adds at a time

void check_ids(const Tensor& ids, std::int64_t vocab) {
  const auto* id = ids.data<std::int32_t>();
  for (std::int64_t i = 0; i < ids.numel(); ++i)
    check_value(0 <= id[i] && id[i] < vocab, "embedding: ids[{}] is {} but must be in [0, {})", i, id[i], vocab);
}

template <class T>
void copy_rows(const T* weight, const std::int32_t* ids, std::int64_t count, std::int64_t channels, T* y) {
  parallel_for(count, kRows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) std::copy_n(weight + ids[i] * channels, channels, y + i * channels);
  });
}

/// dweight[ids[i], c] += dy[i, c]; a thread owns a strip of columns, so that the order of the sums is that of the ids.
template <class T>
void add_rows(const T* dy, const std::int32_t* ids, std::int64_t count, std::int64_t channels, T* dweight) {
  parallel_for(channels, kColumns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < count; ++i) {
      T* row = dweight + ids[i] * channels;
      for (std::int64_t c = begin; c < end; ++c) row[c] += dy[i * channels + c];
    }
  });
}

}  // namespace

Var embedding(const Var& weight, const Tensor& ids) {
  check_shape(weight.rank() == 2, "embedding: weight must have shape [V, C] but has {}", weight.shape());
  check_dtype(ids.dtype() == DType::i32, "embedding: ids must be i32 but are {}", name(ids.dtype()));
  const Tensor table = weight.value().contiguous(), rows = ids.contiguous();
  check_ids(rows, table.size(0));
  const std::int64_t channels = table.size(1);
  Tensor y(ids.shape().concat({channels}), table.dtype());
  dispatch_float("embedding", table.dtype(), [&](auto zero) {
    using T = decltype(zero);
    copy_rows(table.data<T>(), rows.data<std::int32_t>(), rows.numel(), channels, y.mutable_data<T>());
  });
  return record("embedding", y, {weight}, [rows, channels, shape = table.shape()](const Tensor& dy_in) {
    const Tensor dy = dy_in.contiguous();
    Tensor dweight = zeros(shape, dy.dtype());
    dispatch_float("embedding", dy.dtype(), [&](auto zero) {
      using T = decltype(zero);
      add_rows(dy.data<T>(), rows.data<std::int32_t>(), rows.numel(), channels, dweight.mutable_data<T>());
    });
    return dweight;
  });
}

}  // namespace braid
