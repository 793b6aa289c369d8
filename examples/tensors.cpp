// Tensors: making, reading, views that share storage, broadcasting, files.
#include <filesystem>
#include <span>

#include <fmt/format.h>

#include <braid/braid.h>

#include "../apps/common/run_main.h"

using namespace braid;

void make_and_read() {
  Rng rng(1);
  const Tensor a = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor noise = randn({2, 3}, rng);  // the same numbers whenever the seed is 1
  fmt::print("a =\n{}\nnoise =\n{}\n", a, noise);
  fmt::print("{} {} of {} elements; a[1, -1] = {}\n\n", to_string(a.shape()), name(a.dtype()), a.numel(),
             a.at({1, -1}));
}

void views() {
  const Tensor grid = arange(12).reshape({3, 4});
  const Tensor columns = grid.transpose();                   // [4, 3]
  const Tensor corner = grid.slice(0, 0, 2).slice(1, 0, 2);  // rows 0 and 1, columns 0 and 1
  const Tensor last = grid[-1];                              // [4]: the axis is gone, as with grid.select(0, -1)
  fmt::print("corner =\n{}\nlast row = {}\ncolumns: strides {} {}, contiguous: {}\n\n", corner, last,
             columns.strides()[0], columns.strides()[1], columns.is_contiguous());
}

void writing() {
  Tensor squares({5}, DType::f32);
  const std::span<float> out(squares.mutable_data<float>(), 5);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(i * i);

  const Tensor shared = squares;  // a second name for the same storage
  try {
    squares.mutable_data<float>();
  } catch (const Error& error) {
    fmt::print("{}\n", error.what());
  }
  Tensor own = shared.clone();
  own.mutable_data<float>()[0] = 100;
  fmt::print("squares = {}\nown     = {}\n\n", squares, own);
}

void computing() {
  const Tensor x = arange(6).reshape({2, 3});
  const Tensor row_mean = mean(x, 1, /*keep_dims=*/true);  // [2, 1]
  const Tensor centered = x - row_mean;                    // broadcasts to [2, 3]
  fmt::print("centered =\n{}\nlargest {}, at {}\n", centered, reduce_max(x).item(), argmax(x, 1));
  const Tensor mask = x > 1.5;  // [2, 3] of i32: 1 where it holds, else 0
  fmt::print("mask =\n{}\n{}\n", mask, where(mask, x, -1.0));
  const Tensor gram = einsum("ik,jk->ij", x, x);
  fmt::print("gram =\n{}\n\n", gram);
  try {
    matmul(x, x);
  } catch (const ShapeError& error) {
    fmt::print("{}\n\n", error.what());
  }
}

void files() {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "braid_tensors.safetensors";
  save_safetensors(path, {{"mask", eye(2)}, {"ids", arange(3, DType::i32)}});
  for (const auto& [name, tensor] : load_safetensors(path).tensors) fmt::print("{}: {}\n", name, tensor);
  std::filesystem::remove(path);
}

void run() {
  make_and_read();
  views();
  writing();
  computing();
  files();
}

int main(int argc, char** argv) {
  return apps::run_main("tensors", "Tensors, views, broadcasting and files.", argc, argv, run);
}
