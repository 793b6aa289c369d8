#include <braid/autograd/ops/detail/window.h>

#include <numeric>

namespace braid::detail {

void check_setting(const char* op, const char* name, std::int64_t value, std::int64_t least) {
  check_value(least <= value && value < std::int64_t{1} << 31, "{}: {} must lie in [{}, 2^31) but is {}", op, name,
              least, value);
}

WindowAxis::WindowAxis(const char* op, std::int64_t in, std::int64_t taps, std::int64_t stride, std::int64_t dilation,
                       std::int64_t front, std::int64_t back)
    : in(in), taps(taps), stride(stride), dilation(dilation), front(front) {
  check_setting(op, "stride", stride, 1);
  check_setting(op, "dilation", dilation, 1);
  const std::int64_t reach = dilation * (taps - 1), padded = in + front + back;
  check_shape(reach < padded || in == 0, "{}: {} taps {} apart reach over more than the {} positions of x", op, taps,
              dilation, padded);
  out = padded > reach ? (padded - reach - 1) / stride + 1 : 0;
}

std::vector<AxisPart> WindowAxis::parts(Way way) const {
  std::vector<std::int64_t> all(static_cast<std::size_t>(taps));
  std::iota(all.begin(), all.end(), 0);
  if (way == Way::reads) return {{0, 1, out, std::move(all)}};
  std::vector<AxisPart> parts;
  for (std::int64_t first = 0; first < std::min(stride, in); ++first) {
    AxisPart part{first, stride, (in - first + stride - 1) / stride, {}};
    for (const std::int64_t k : all)
      if ((first + front - k * dilation) % stride == 0) part.taps.push_back(k);
    if (!part.taps.empty()) parts.push_back(std::move(part));
  }
  return parts;
}

Window window_over(const char* op, const Shape& x, Size2d size, const WindowSettings& s) {
  check_shape(x.rank() == 4, "{}: x must have shape [B, H, W, C] but has {}", op, x);
  for (const std::int64_t taps : {size.h, size.w}) check_setting(op, "size", taps, 1);
  for (const std::int64_t padding : {s.padding.h, s.padding.w}) check_setting(op, "padding", padding, 0);
  return {x[0],
          {op, x[1], size.h, s.stride.h, s.dilation.h, s.padding.h, s.padding.h},
          {op, x[2], size.w, s.stride.w, s.dilation.w, s.padding.w, s.padding.w}};
}

}  // namespace braid::detail
